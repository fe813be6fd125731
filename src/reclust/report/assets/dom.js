// Elements. Data only becomes text nodes and attributes, nothing is parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, part] of Object.entries(value)) node.style.setProperty(key, part);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

let lastId = 0;
const freshId = (stem) => `${stem}-${++lastId}`;

const known = (number) => number !== null && number !== undefined;
const MISSING = "–";

function percent(share, digits = 1) {
  return known(share) ? (100 * share).toFixed(digits) : MISSING;
}

function number(value) {
  if (!known(value)) return MISSING;
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4)) return Number(value.toPrecision(3)).toExponential();
  return String(Number(value.toPrecision(4)));
}

function duration(seconds) {
  if (!known(seconds)) return MISSING;
  if (seconds < 60) return `${Number(seconds.toPrecision(2))} s`;
  const whole = Math.round(seconds), minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const count = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many || one + "s"}`;

// Colors for color-blind readers; after the last one, lines differ by dashes.
const HUES = 8;
const hue = (i) => `var(--hue-${i % HUES})`;
const DASHES = ["none", "6 3", "2 3", "8 3 2 3"];
const dash = (i) => DASHES[Math.floor(i / HUES) % DASHES.length];

const NARROW = matchMedia("(max-width: 560px)");

const note = (text) => el("p", { class: "note" }, text);

// Closes with its button, Escape, or a click outside.
function openDialog(title, attributes, ...content) {
  const id = freshId("dialog");
  const dialog = el("dialog", { ...attributes, "aria-labelledby": id, onclose: () => dialog.remove(),
    onclick: (event) => { if (event.target === dialog) dialog.close(); } },
  el("div", { class: "sheet" },
    el("header", {}, el("h2", { id }, title), el("button", { type: "button", onclick: () => dialog.close() }, "Close")), content));
  document.body.append(dialog);
  dialog.showModal();
}

function section(title, about, ...content) {
  const id = freshId("section");
  return el("section", { "aria-labelledby": id }, el("h2", { id }, title), about ? el("p", { class: "about" }, about) : null, ...content);
}
