// Histograms, bars behind numbers, and cluster profiles.

const BAR_WIDTH = 360, BAR_HEIGHT = 170;

// Histogram over [0, 1] with the median marked.
function histogramView(title, about, histogram, xTitle) {
  const { counts, median } = histogram, most = Math.max(...counts, 1), sum = counts.reduce((a, b) => a + b, 0) || 1;
  const left = 36, right = 8, top = 8, bottom = 34, wide = (BAR_WIDTH - left - right) / counts.length;
  const px = (share) => left + share * (BAR_WIDTH - left - right), py = (n) => top + (1 - n / most) * (BAR_HEIGHT - top - bottom);
  const picture = svg("svg", { viewBox: `0 0 ${BAR_WIDTH} ${BAR_HEIGHT}`, role: "img", "aria-label": `${title}: median ${number(median)}` },
    niceTicks(0, most / sum, 3).map((tick) => [svg("line", { class: "grid", x1: left, x2: BAR_WIDTH - right, y1: py(tick * sum), y2: py(tick * sum) }),
      svg("text", { x: left - 5, y: py(tick * sum) + 4, "text-anchor": "end" }, `${Math.round(100 * tick)} %`)]),
    counts.map((n, i) => svg("rect", { class: "bar", x: left + i * wide + 0.6, y: py(n), width: wide - 1.2, height: BAR_HEIGHT - bottom - py(n) },
      svg("title", {}, `${number(i / counts.length)} to ${number((i + 1) / counts.length)}: ${count(n, "sample")}, ${percent(n / sum)} %`))),
    svg("line", { class: "axis", x1: left, x2: BAR_WIDTH - right, y1: BAR_HEIGHT - bottom, y2: BAR_HEIGHT - bottom }),
    [0, 0.25, 0.5, 0.75, 1].map((x) => svg("text", { x: px(x), y: BAR_HEIGHT - bottom + 14, "text-anchor": x === 0 ? "start" : x === 1 ? "end" : "middle" }, String(x))),
    svg("text", { x: px(0.5), y: BAR_HEIGHT - 5, "text-anchor": "middle" }, xTitle),
    known(median) ? svg("line", { class: "median", x1: px(median), x2: px(median), y1: top, y2: BAR_HEIGHT - bottom }, svg("title", {}, `median ${number(median)}`)) : null);
  return el("figure", { class: "panel" }, el("figcaption", {}, title, known(median) ? el("span", {}, ` · median ${median.toFixed(2)}`) : null),
    el("div", { class: "plot" }, picture), el("p", { class: "note pad" }, about));
}

// A number with a bar behind it; share is between 0 and 1.
const meter = (share, text) => el("span", { class: "meter", style: { "--share": `${(100 * Math.max(0, Math.min(1, share || 0))).toFixed(1)}%` } }, text);

// One card per cluster with the features that deviate most, in standard deviations.
function profilesView(profiles, clusters) {
  const most = Math.max(0.5, ...profiles.clusters.flat().map((one) => Math.abs(one.deviation)));
  const line = (feature) => {
    const share = (50 * Math.abs(feature.deviation)) / most, up = feature.deviation >= 0;
    return el("li", { title: `${feature.name}: mean ${number(feature.mean)}, over all samples ${number(feature.overall)}` },
      el("span", { class: "name" }, feature.name),
      el("span", { class: "track", "aria-hidden": "true" }, el("span", { class: up ? "up" : "down", style: { width: `${share}%`, [up ? "left" : "right"]: "50%" } })),
      el("span", { class: "value" }, `${up ? "+" : "−"}${Math.abs(feature.deviation).toFixed(1)}`));
  };
  return el("div", { class: "cards" }, profiles.clusters.map((features, i) => el("article", { class: "card" }, el("h3", {}, `Cluster ${i}`),
    el("p", {}, count(clusters[i].size, "sample")), features.length ? el("ul", { class: "profile" }, features.map(line)) : note("No feature differs."))));
}
