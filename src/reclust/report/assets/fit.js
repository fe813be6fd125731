// The page of a single fit: what to doubt, k-means beside it, clusters, embedding, curves, replicas.

const KINDS = { same: "K-means would do", deep: "Probably worth it", "k-means": "K-means looks better", unclear: "No clear winner" };
const two = (value) => (known(value) ? (Math.abs(value) < 0.005 ? 0 : value).toFixed(2) : MISSING);

function factsView(facts) {
  return el("dl", { class: "facts" }, facts.map(([value, title]) => el("div", {}, el("dd", {}, value), el("dt", {}, title))));
}

function remarksView(remarks) {
  if (!remarks.length) return section("What to doubt", null, note("Nothing stands out: no cluster died or is very small, replicas agree, labels had settled."));
  return section("What to doubt", null, el("ul", { class: "remarks" }, remarks.map((one) => el("li", { class: one.weight === "warning" ? "warning" : null },
    el("strong", {}, `${one.weight === "warning" ? "⚠ " : ""}${one.title}.`), el("span", {}, ` ${one.text}`)))));
}

function verdictView(verdict) {
  return section("Was the deep model worth it?", null, el("p", { class: `verdict ${verdict.kind}` }, el("strong", {}, `${KINDS[verdict.kind]}.`), ` ${verdict.words}`),
    table("Deep model and k-means", [
      { title: "Evidence without labels", wide: true, show: (row) => [row.what, el("span", { class: "about block" }, row.about)] },
      { title: "This model", numeric: true, show: (row) => two(row.deep) },
      { title: "K-means", numeric: true, show: (row) => two(row.plain) },
    ], verdict.rows), note(verdict.cannot));
}

function clustersView(report) {
  const all = report.clusters.reduce((sum, one) => sum + one.size, 0), most = Math.max(...report.clusters.map((one) => one.size));
  const mean = (name, title, hint) => (report.clusters.some((one) => known(one[name])) ? [{ title, hint, numeric: true, show: (one) => two(one[name]), key: (one) => one[name] }] : []);
  const columns = [
    { title: "Cluster", numeric: true, show: (one) => String(one.cluster), key: (one) => one.cluster },
    { title: "Samples", numeric: true, show: (one) => meter(one.size / most, one.size.toLocaleString("en")), key: (one) => one.size },
    { title: "Share %", numeric: true, show: (one) => percent(one.size / all), key: (one) => one.size },
    ...mean("confidence", "Confidence", "mean soft assignment to the own cluster"),
    ...mean("ratio", "Distance ratio", "mean distance to the own centre over that to the next"),
    ...mean("silhouette", "Silhouette", "mean, in the embedding"),
    ...mean("agreement", "Agreement", "share of the other replicas that put these samples in one cluster, too"),
  ];
  const samples = report.samples;
  const shown = typeof samples === "string" ? note(samples) : samples.kind === "sheet" ? sheetView(samples) : profilesView(samples, report.clusters);
  const about = typeof samples === "string" ? null : samples.kind === "sheet" ? "Samples around the centres"
    : "Features that differ most from the mean of all samples, in standard deviations";
  return section("Clusters", null, table("Clusters", columns, report.clusters), el("section", { class: "part" }, about ? el("h3", {}, about) : null, shown));
}

function insideView(report) {
  const map = sceneView(report.map);
  return section("Where samples lie", null, el("div", { class: "pair" },
    el("section", { class: "part" }, el("h3", {}, "Embedding"), map),
    el("section", { class: "part stack" },
      histogramView("Confidence", "Soft assignment to the own cluster: near 1 samples are sure, near 1 / k they could be anywhere.", report.confidence, "soft assignment"),
      report.ratio ? histogramView("Distance ratio", "Distance to the own centre over that to the next one: near 0 samples sit on their centre, near 1 between two.", report.ratio, "d₁ / d₂") : null)),
  report.looked_at ? note(`Computed from ${count(report.looked_at, "sample")} drawn at random.`) : null);
}

function linesView(curves) {
  const metrics = Object.keys(curves.lines);
  if (!metrics.length) return section("Learning curves", null, note("No curves were recorded."));
  const drawn = (id, scale, line, title, color, band) => {
    const mean = line.mean.map((y) => y * scale), std = line.std.map((y) => (band ? y * scale : 0));
    return { title, color, dash: "none", x: line.x, mean, std, low: mean.map((y, i) => y - std[i]), high: mean.map((y, i) => y + std[i]) };
  };
  const one = (id) => {
    const { kept, all } = curves.lines[id], scale = metricScale(id);
    const lines = [...(all ? [drawn(id, scale, all, "mean of replicas", hue(6), true)] : []), drawn(id, scale, kept, all ? "kept replica" : "this fit", hue(0), false)];
    return panel(metricTitle(id), lines, "", id.startsWith("clustering.") ? curves.resets : [], range(lines));
  };
  const wished = ["clustering.accuracy", "clustering.loss", "clustering.label_change", "pretraining.loss"].filter((id) => metrics.includes(id));
  const chosen = (wished.length ? wished : metrics).slice(0, 3);
  const panels = el("div", { class: "panels" }), rest = metrics.filter((id) => !chosen.includes(id));
  panels.append(...chosen.map(one));
  const more = rest.length ? el("button", { type: "button", class: "more", onclick: () => { panels.append(...rest.map(one)); more.remove(); } },
    `Show ${count(rest.length, "more curve")}`) : null;
  return section("Learning curves", `Over epochs.${curves.resets.length ? ` Ticks on the axis mark ${count(curves.resets.length, "reset")}; a vertical step is what one did.` : ""}` +
    (curves.lines[metrics[0]].all ? " Blue is the replica that was kept, grey the mean of all with one standard deviation." : ""), panels, more);
}

function betweenView(replicas) {
  const name = (i) => String(replicas.places[i]);
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "NMI between replicas" },
    el("table", { class: "confusion" }, el("caption", {}, "NMI between each two replicas."),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, ""), replicas.places.map((place) => el("th", { scope: "col" }, String(place))))),
      el("tbody", {}, replicas.between.map((row, i) => el("tr", {}, el("th", { scope: "row" }, name(i)), row.map((nmi, j) =>
        el("td", { class: nmi > 0.55 ? "strong" : null, style: { "--share": `${(100 * nmi).toFixed(1)}%` }, title: `replicas ${name(i)} and ${name(j)}: ${two(nmi)}` }, i === j ? "" : two(nmi))))))));
}

function replicasView(replicas) {
  const rows = replicas.rows;
  if (rows.length < 2) return section("Stability", null, note("One replica was trained, so nothing is known about what other seeds would find. n_init=4 trains four side by side and keeps the best."));
  const columns = [
    { title: "Replica", numeric: true, show: (row) => String(row.replica), key: (row) => row.replica },
    { title: "Seed", numeric: true, show: (row) => String(row.seed), key: (row) => row.seed },
    { title: "Score", numeric: true, hint: "label-free, the higher the better", show: (row) => (row.kept ? el("b", {}, number(row.score)) : number(row.score)), key: (row) => row.score },
    { title: "NMI with the kept one", numeric: true, show: (row) => (row.kept ? MISSING : two(row.nmi)), key: (row) => row.nmi },
    ...(rows.some((row) => known(row.accuracy)) ? [{ title: "Accuracy %", numeric: true, show: (row) => percent(row.accuracy), key: (row) => row.accuracy }] : []),
    { title: "", show: (row) => (row.kept ? "kept" : row.failed ? el("span", { class: "state failed" }, `failed: ${row.failed}`) : "") },
  ];
  return section("Stability", replicas.exchanged
    ? "Poorer replicas went on from copies of better ones while they trained: that they agree says little about what other seeds would find."
    : "Replicas differ in their seed alone. What all of them find, other seeds would probably find, too; what one of them finds may be luck.",
    table("Replicas", columns, rows),
    el("div", { class: "pair" }, replicas.places.length > 1 ? el("section", { class: "part" }, betweenView(replicas)) : null,
      replicas.agreement ? el("section", { class: "part" }, histogramView("Agreement on each sample",
        "Share of the other replicas that put a sample in the same cluster, after clusters were matched.", replicas.agreement, "share of replicas")) : null));
}

function knownView(classes) {
  return section("Known classes", "They had no part in the fit.", table("Scores", [
    { title: "", show: (row) => row.title },
    ...["accuracy", "nmi", "ari"].map((name) => ({ title: `${titled(name)} %`, numeric: true, show: (row) => percent(row.scores[name]), key: (row) => row.scores[name] })),
  ], [{ title: "This model", scores: classes.deep }, { title: "K-means", scores: classes.plain }]),
  el("section", { class: "part" }, confusionView(classes.confusion)));
}

function recordView(report) {
  const list = (title, rows) => el("details", {}, el("summary", {}, title), el("dl", { class: "lines" }, rows.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)])));
  return section("Record", null, list("Settings", report.settings), list("Where and how it was computed", report.provenance));
}

const report = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("main"), body = el("div");
main.append(el("header", { class: "top" }, el("h1", {}, report.title)), body,
  el("footer", {}, el("dl", { class: "lines" }, report.about.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]))));
body.append(factsView(report.facts), remarksView(report.remarks), verdictView(report.verdict), clustersView(report), insideView(report),
  linesView(report.curves), replicasView(report.replicas), report.known ? knownView(report.known) : el("span"), recordView(report));
document.documentElement.dataset.ready = "yes";
