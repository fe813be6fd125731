// Select fields, alone or several that together choose the cells of a study.

function chooser(title, options, chosen, onchange) {
  const id = freshId("choice");
  const select = el("select", { id, onchange: () => onchange(options[select.selectedIndex].value) },
    options.map((option) => el("option", { selected: option.value === chosen }, option.title)));
  return el("div", { class: "field" }, el("label", { for: id }, title), select);
}

const TITLES = { dataset: "Data set", algorithm: "Algorithm", pretrained: "Pretraining", variant: "Variant",
  accuracy: "Accuracy", acc: "Accuracy", nmi: "NMI", ari: "ARI" };

function titled(name) {
  const words = name.replaceAll("_", " ");
  return Object.hasOwn(TITLES, name) ? TITLES[name] : words.charAt(0).toUpperCase() + words.slice(1);
}

function worded(name, value) {
  if (name === "pretrained") return value ? "pretrained" : "from scratch";
  if (name === "algorithm") return String(value).toUpperCase();
  return typeof value === "number" ? number(value) : String(value);
}

const valuesOf = (cells, name) => [...new Set(cells.map((cell) => cell.key[name]))];

const cellName = (cell, names) => names.filter((name) => known(cell.key[name])).map((name) => worded(name, cell.key[name])).join(" · ");

// Fields for the `names` in which the cells differ; calls `draw(cells)` with the chosen ones.
function picker(cells, names, draw) {
  const state = Object.fromEntries(names.map((name) => [name, valuesOf(cells, name)[0]]));
  const chosen = () => cells.filter((cell) => names.every((name) => cell.key[name] === state[name]));
  if (cells.length && !chosen().length) Object.assign(state, Object.fromEntries(names.map((name) => [name, cells[0].key[name]])));
  const fields = names.filter((name) => valuesOf(cells, name).length > 1).map((name) => chooser(titled(name),
    valuesOf(cells, name).map((value) => ({ value, title: worded(name, value) })), state[name],
    (value) => { state[name] = value; draw(chosen()); }));
  draw(chosen());
  return fields;
}
