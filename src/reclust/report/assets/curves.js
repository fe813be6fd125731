// Curves: one panel per algorithm, one line per variant with the deviation over seeds as a band.

const WIDTH = 360, HEIGHT = 230, LEFT = 44, RIGHT = 16, TOP = 10, BOTTOM = 30;
const SHARES = new Set(["accuracy", "nmi", "ari", "local_purity"]);
const SHOWN_AT_FIRST = 8;

const metricTitle = (id) => {
  const [phase, name] = id.split(/\.(.*)/s);
  return `${titled(name)}${SHARES.has(name) || name === "label_change" ? " (%)" : ""}${phase === "clustering" ? "" : `, ${phase}`}`;
};
const metricScale = (id) => (SHARES.has(id.split(".")[1]) ? 100 : 1);

function niceTicks(low, high, wanted) {
  const rough = (high - low) / wanted || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + 1e-9 * step; tick += step) ticks.push(Number(tick.toPrecision(12)));
  return ticks;
}

function range(lines) {
  const ends = lines.flatMap((line) => [...line.low, ...line.high]);
  const low = Math.min(...ends), high = Math.max(...ends), air = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
  return [low - air, high + air];
}

// lines: [{title, color, dash, x, mean, std, low, high}]
function panel(title, lines, yTitle, resets, [y0, y1]) {
  const xs = lines.flatMap((line) => line.x), x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 1);
  const px = (x) => LEFT + ((x - x0) / (x1 - x0)) * (WIDTH - LEFT - RIGHT);
  const py = (y) => TOP + ((y1 - y) / (y1 - y0)) * (HEIGHT - TOP - BOTTOM);
  const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${px(x).toFixed(1)} ${py(y).toFixed(1)}`).join("");
  const ends = { x1: LEFT, x2: WIDTH - RIGHT };
  const cursor = svg("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
  const dots = lines.map((line) => svg("circle", { r: 3.5, style: { fill: line.color }, visibility: "hidden" }));
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: ${yTitle} over epochs` },
    niceTicks(y0, y1, 5).map((tick) => [svg("line", { class: "grid", ...ends, y1: py(tick), y2: py(tick) }),
      svg("text", { x: LEFT - 6, y: py(tick) + 4, "text-anchor": "end" }, number(tick))]),
    niceTicks(x0, x1, 5).map((tick) => svg("text", { x: px(tick), y: HEIGHT - 12, "text-anchor": "middle" }, number(tick))),
    svg("line", { class: "axis", ...ends, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }),
    resets.filter((epoch) => epoch >= x0 && epoch <= x1).map((epoch) =>
      svg("line", { class: "reset", x1: px(epoch), x2: px(epoch), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 5 })),
    lines.map((line) => svg("path", { class: "band", style: { fill: line.color }, d: path([
      ...line.x.map((x, i) => [x, line.high[i]]), ...line.x.map((x, i) => [x, line.low[i]]).reverse()]) })),
    lines.map((line) => svg("path", { class: "line", style: { stroke: line.color, "stroke-dasharray": line.dash },
      d: path(line.x.map((x, i) => [x, line.mean[i]])) })),
    cursor, dots);
  const tip = el("div", { class: "tip", hidden: true });
  const grid = [...new Set(xs)].sort((a, b) => a - b);
  let at = -1;

  function look(place) {
    at = Math.max(0, Math.min(grid.length - 1, place));
    const x = grid[at], left = px(x) > WIDTH / 2;
    for (const [name, value] of [["x1", px(x)], ["x2", px(x)], ["visibility", "visible"]]) cursor.setAttribute(name, value);
    const values = lines.map((line) => { const i = line.x.lastIndexOf(x); return i < 0 ? null : [line.mean[i], line.std[i]]; });
    dots.forEach((dot, i) => {
      dot.setAttribute("visibility", values[i] ? "visible" : "hidden");
      if (values[i]) { dot.setAttribute("cx", px(x)); dot.setAttribute("cy", py(values[i][0])); }
    });
    const listed = lines.map((line, i) => ({ line, value: values[i] })).filter((one) => one.value).sort((a, b) => b.value[0] - a.value[0]);
    tip.replaceChildren(el("strong", {}, `epoch ${x}`), ...listed.slice(0, 10).map(({ line, value }) => el("div", {},
      el("span", { class: "swatch", style: { background: line.color } }), `${line.title} `, el("b", {}, number(value[0])),
      value[1] ? ` ± ${Number(value[1].toPrecision(2))}` : "")));
    tip.style.setProperty(left ? "right" : "left", `${100 * (left ? 1 - px(x) / WIDTH : px(x) / WIDTH) + 3}%`);
    tip.style.removeProperty(left ? "left" : "right");
    tip.hidden = false;
  }

  function leave() {
    tip.hidden = true;
    for (const mark of [cursor, ...dots]) mark.setAttribute("visibility", "hidden");
  }

  function follow(event) {
    const box = picture.getBoundingClientRect(), x = x0 + (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT) * (x1 - x0);
    look(grid.reduce((best, one, i) => (Math.abs(one - x) < Math.abs(grid[best] - x) ? i : best), 0));
  }

  function step(event) {
    const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: grid.length - 1 };
    if (event.key === "Escape") leave();
    if (!(event.key in moves)) return;
    event.preventDefault();
    look(moves[event.key]);
  }

  return el("figure", { class: "panel" }, el("figcaption", {}, title, yTitle ? el("span", {}, ` · ${yTitle} over epochs`) : null),
    el("div", { class: "plot", tabindex: "0", role: "group", "aria-label": `${title}: arrow keys read values off the curves`,
      onpointermove: follow, onpointerdown: follow, onpointerleave: leave, onblur: leave, onkeydown: step }, picture, tip));
}

function curvesView(report, study) {
  const cells = study.cells.filter((cell) => known(cell.series) && Object.keys(report.series[cell.series].curves).length);
  if (!cells.length) return section("Curves", null, note(study.cells.some((cell) => known(cell.series))
    ? "The store has no curves of this study." : "No curves yet: no run of this study has finished."));
  const variants = valuesOf(cells, "variant"), hidden = new Set(variants.slice(SHOWN_AT_FIRST));
  const metrics = report.metrics.filter((id) => cells.some((cell) => id in report.series[cell.series].curves));
  let metric = metrics.find((id) => id === "clustering.accuracy") || metrics[0], chosen = [];
  const panels = el("div", { class: "panels" }), legend = el("div", { class: "legend", role: "group", "aria-label": "Variants shown" });

  const lineOf = (cell) => {
    const curve = report.series[cell.series].curves[metric], i = variants.indexOf(cell.key.variant), scale = metricScale(metric);
    const mean = curve.mean.map((y) => y * scale), std = curve.std.map((y) => y * scale);
    const [least, most] = scale > 1 ? [0, scale] : [-Infinity, Infinity]; // no band beyond what a share can be
    return { title: cell.key.variant, color: hue(i), dash: dash(i), x: report.grids[curve.grid], mean, std,
      low: mean.map((y, j) => Math.max(y - std[j], Math.min(y, least))), high: mean.map((y, j) => Math.min(y + std[j], Math.max(y, most))) };
  };

  function draw() {
    const drawn = chosen.filter((cell) => !hidden.has(cell.key.variant) && metric in report.series[cell.series].curves);
    const common = metricScale(metric) > 1; // shares compare across algorithms, losses do not
    const made = valuesOf(drawn, "algorithm").map((algorithm) => {
      const own = drawn.filter((cell) => cell.key.algorithm === algorithm), all = own.map(lineOf);
      const resets = metric.startsWith("clustering.") ? [...new Set(own.flatMap((cell) => report.series[cell.series].resets))] : [];
      return panel(worded("algorithm", algorithm), all, metricTitle(metric), resets, range(common ? drawn.map(lineOf) : all));
    });
    panels.replaceChildren(...(made.length ? made : [note("Nothing to draw: choose variants above, or another measure.")]));
  }

  function toggle(some, on) {
    for (const variant of some) on ? hidden.delete(variant) : hidden.add(variant);
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(!hidden.has(variants[i]))));
    draw();
  }

  const buttons = variants.map((variant, i) => el("button", { type: "button", "aria-pressed": String(!hidden.has(variant)),
    onclick: () => toggle([variant], hidden.has(variant)) },
  svg("svg", { width: 22, height: 10, "aria-hidden": "true" }, svg("line", { x1: 0, x2: 22, y1: 5, y2: 5, style: {
    stroke: hue(i), "stroke-width": 2.5, "stroke-dasharray": dash(i) } })), variant));
  const whole = variants.length > SHOWN_AT_FIRST ? [["All", true], ["None", false]].map(([title, on]) =>
    el("button", { type: "button", class: "quiet", onclick: () => toggle(variants, on) }, title)) : [];
  legend.append(...buttons, ...whole);
  const fields = picker(cells, ["dataset", "pretrained"], (found) => { chosen = found; draw(); });
  const measure = chooser("Measure", metrics.map((id) => ({ value: id, title: metricTitle(id) })), metric, (id) => { metric = id; draw(); });
  return section("Curves", "Mean over seeds, with one standard deviation as a band. Ticks on the axis mark resets; vertical steps show their effect.",
    el("div", { class: "controls" }, fields, measure), legend, panels);
}
