// Figures of the paper; a click enlarges one.

// Names of studies are in backticks.
const coded = (text) => text.split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));

function figuresView({ drawn, said }) {
  if (!drawn.length) return el("section", {}, said.map(note));
  const picture = (one) => el("img", { src: one.picture, alt: one.about, width: one.width, height: one.height });
  const enlarge = (one) => openDialog(one.name, { class: "large" },
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": one.name, style: { "--natural": `${one.width}px` } }, picture(one)),
    el("p", { class: "about" }, one.about, " ", coded(one.source)));
  const shown = (one) => el("figure", { class: "drawing" },
    el("button", { type: "button", title: "Enlarge", "aria-label": `Enlarge ${one.name}`, onclick: () => enlarge(one) }, picture(one)),
    el("figcaption", {}, el("b", {}, one.name), `: ${one.about} `, coded(one.source)));
  return Object.assign(section("Figures", "Figures of the paper, drawn from all studies in this store.",
    el("div", { class: "drawings" }, drawn.map(shown)), said.map(note)), { id: "figures" });
}

const figuresLink = ({ drawn }) => (drawn.length ? el("a", { href: "#figures", class: "away" }, count(drawn.length, "figure")) : null);
