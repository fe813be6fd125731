// Classes against clusters; the shade is the share of the class.

function confusionView(confusion) {
  const sums = confusion.counts.map((row) => row.reduce((a, b) => a + b, 0));
  const cell = (n, row, column) => {
    const share = sums[row] ? n / sums[row] : 0;
    return el("td", { class: share > 0.55 ? "strong" : null, style: { "--share": `${(100 * share).toFixed(1)}%` },
      title: `${n} of ${sums[row]} samples of class ${confusion.classes[row]} in cluster ${confusion.clusters[column]}` }, n ? String(n) : "");
  };
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Classes against clusters" },
    el("table", { class: "confusion" }, el("caption", {}, "Rows: true classes. Columns: clusters, ordered by the best match."),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "class"), confusion.clusters.map((name) => el("th", { scope: "col" }, String(name))))),
      el("tbody", {}, confusion.counts.map((row, i) => el("tr", {}, el("th", { scope: "row" }, confusion.classes[i]),
        row.map((n, j) => cell(n, i, j)))))));
}
