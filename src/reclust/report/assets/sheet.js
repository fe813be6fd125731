// Contact sheet: the samples nearest to each center and farthest from it.

function sheetView(sheet) {
  const [height, width] = sheet.side, columns = sheet.clusters.length ? sheet.clusters[0].samples.length : 0;
  const share = (i, n) => (n > 1 ? `${(100 * i) / (n - 1)}%` : "0%");

  const thumbnail = (cluster, row, column) => {
    const sample = cluster.samples[column];
    if (sample < 0) return null;
    const main = cluster.counts && cluster.counts.length ? cluster.counts[0][0] : null;
    const own = cluster.classes ? String(cluster.classes[column]) : null;
    const says = `sample ${cluster.names ? cluster.names[column] : sample}${own === null ? "" : `, class ${own}`}`;
    return el("li", { class: own !== null && own !== main ? "thumb other" : "thumb", title: says, role: "img", "aria-label": says, style: {
      "background-position": `${share(column, columns)} ${share(row, sheet.clusters.length)}`, "aspect-ratio": `${width} / ${height}` } });
  };

  const card = (cluster, row) => {
    const line = (title, from, to) => [el("h4", {}, title), el("ul", { class: "thumbs" },
      Array.from({ length: to - from }, (_, i) => thumbnail(cluster, row, from + i)))];
    const parts = (cluster.counts || []).map(([name, n]) => `class ${name}: ${((100 * n) / cluster.size).toFixed(0)} %`).join(", ");
    return el("article", { class: "card" }, el("h3", {}, `Cluster ${row}`), el("p", {}, count(cluster.size, "sample"), parts ? ` · ${parts}` : ""),
      line("nearest", 0, sheet.nearest), line("farthest", sheet.nearest, columns));
  };

  const empty = sheet.clusters.map((cluster, i) => (cluster.size ? null : i)).filter(known);
  return el("div", {}, sheet.clusters.some((cluster) => cluster.classes) ? note("Outlined samples have another class than the majority of their cluster.") : null,
    empty.length ? note(`Empty: ${empty.length === 1 ? "cluster" : "clusters"} ${empty.join(", ")}.`) : null,
    el("div", { class: "cards photos", style: { "--picture": `url("${sheet.picture}")`, "--size": `${100 * columns}% ${100 * sheet.clusters.length}%` } },
      sheet.clusters.map((cluster, row) => (cluster.size ? card(cluster, row) : null))));
}
