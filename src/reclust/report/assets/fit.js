// Report of a single fit: findings, comparison with k-means, clusters, embedding, curves, replicas.

const KINDS = { same: "K-means would do", deep: "Probably worth it", "k-means": "K-means looks better", unclear: "No clear winner" };
const two = (value) => (known(value) ? (Math.abs(value) < 0.005 ? 0 : value).toFixed(2) : MISSING);

function factsView(facts) {
  return el("dl", { class: "facts" }, facts.map(([value, title]) => el("div", {}, el("dd", {}, value), el("dt", {}, title))));
}

function describedView(described) {
  if (!described.some((one) => one.description)) return el("span");
  return section("The clusters in words", null, table("Clusters in words", [
    { title: "Cluster", numeric: true, show: (one) => String(one.cluster), key: (one) => one.cluster },
    { title: "Samples", numeric: true, show: (one) => one.size.toLocaleString("en"), key: (one) => one.size },
    { title: "Description", wide: true, show: (one) => one.description },
    { title: "Coverage %", hint: "share of the cluster that the description holds for", numeric: true, show: (one) => percent(one.coverage), key: (one) => one.coverage },
    { title: "Precision %", hint: "share of the samples it holds for that are in the cluster", numeric: true, show: (one) => percent(one.precision), key: (one) => one.precision },
    { title: "Typical", hint: "samples of the highest confidence", show: (one) => one.typical.join(", ") },
    { title: "Doubtful", hint: "samples of the lowest confidence", show: (one) => one.doubtful.join(", ") },
  ], described));
}

function findingsView(findings) {
  if (!findings.length) return section("Findings", null, note("No problems found: no empty or very small clusters, replicas agree, labels had settled."));
  return section("Findings", null, el("ul", { class: "findings" }, findings.map((one) => el("li", { class: one.level === "warning" ? "warning" : null },
    el("strong", {}, `${one.level === "warning" ? "⚠ " : ""}${one.title}.`), el("span", {}, ` ${one.text}`)))));
}

function verdictView(verdict) {
  return section("Is it better than k-means?", null, el("p", { class: `verdict ${verdict.kind}` }, el("strong", {}, `${KINDS[verdict.kind]}.`), ` ${verdict.words}`),
    table("Deep model and k-means", [
      { title: "Measured without labels", wide: true, show: (row) => [row.what, el("span", { class: "about block" }, row.about)] },
      { title: "This model", numeric: true, show: (row) => two(row.deep) },
      { title: "K-means", numeric: true, show: (row) => two(row.plain) },
    ], verdict.rows), note(verdict.caveat));
}

function clustersView(report) {
  const all = report.clusters.reduce((sum, one) => sum + one.size, 0), most = Math.max(...report.clusters.map((one) => one.size));
  const mean = (name, title, hint) => (report.clusters.some((one) => known(one[name])) ? [{ title, hint, numeric: true, show: (one) => two(one[name]), key: (one) => one[name] }] : []);
  const columns = [
    { title: "Cluster", numeric: true, show: (one) => String(one.cluster), key: (one) => one.cluster },
    { title: "Samples", numeric: true, show: (one) => meter(one.size / most, one.size.toLocaleString("en")), key: (one) => one.size },
    { title: "Share %", numeric: true, show: (one) => percent(one.size / all), key: (one) => one.size },
    ...mean("confidence", "Confidence", "mean probability of the assigned cluster"),
    ...mean("ratio", "Distance ratio", "mean distance to the own center, divided by that to the next"),
    ...mean("silhouette", "Silhouette", "mean, in the embedding"),
    ...mean("agreement", "Agreement", "share of the other replicas that agree on these samples"),
  ];
  const samples = report.samples;
  const shown = typeof samples === "string" ? note(samples) : samples.kind === "sheet" ? sheetView(samples) : profilesView(samples, report.clusters);
  const about = typeof samples === "string" ? null : samples.kind === "sheet" ? "Samples near and far from each center"
    : "Features that deviate most from the overall mean, in standard deviations";
  return section("Clusters", null, table("Clusters", columns, report.clusters), el("section", { class: "part" }, about ? el("h3", {}, about) : null, shown));
}

function embeddingView(report) {
  const map = sceneView(report.map);
  return section("Embedding", null, el("div", { class: "pair" },
    el("section", { class: "part" }, el("h3", {}, "Map"), map),
    el("section", { class: "part stack" },
      histogramView("Confidence", "Probability of the assigned cluster: 1 is certain, 1 / k a guess.", report.confidence, "probability"),
      report.ratio ? histogramView("Distance ratio", "Distance to the own center, divided by that to the next: 0 is on the center, 1 halfway between two.", report.ratio, "d₁ / d₂") : null)),
  report.used ? note(`Based on ${count(report.used, "sample")} drawn at random.`) : null);
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
  const preferred = ["clustering.accuracy", "clustering.loss", "clustering.label_change", "pretraining.loss"].filter((id) => metrics.includes(id));
  const chosen = (preferred.length ? preferred : metrics).slice(0, 3);
  const panels = el("div", { class: "panels" }), rest = metrics.filter((id) => !chosen.includes(id));
  panels.append(...chosen.map(one));
  const more = rest.length ? el("button", { type: "button", class: "more", onclick: () => { panels.append(...rest.map(one)); more.remove(); } },
    `Show ${count(rest.length, "more curve")}`) : null;
  return section("Learning curves", `Over epochs.${curves.resets.length ? ` Ticks on the axis mark ${count(curves.resets.length, "reset")}; vertical steps show their effect.` : ""}` +
    (curves.lines[metrics[0]].all ? " Blue: the kept replica. Gray: mean and standard deviation of all." : ""), panels, more);
}

function nmiView(replicas) {
  const name = (i) => String(replicas.places[i]);
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "NMI between replicas" },
    el("table", { class: "confusion" }, el("caption", {}, "NMI between pairs of replicas."),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, ""), replicas.places.map((place) => el("th", { scope: "col" }, String(place))))),
      el("tbody", {}, replicas.nmi.map((row, i) => el("tr", {}, el("th", { scope: "row" }, name(i)), row.map((nmi, j) =>
        el("td", { class: nmi > 0.55 ? "strong" : null, style: { "--share": `${(100 * nmi).toFixed(1)}%` }, title: `replicas ${name(i)} and ${name(j)}: ${two(nmi)}` }, i === j ? "" : two(nmi))))))));
}

function replicasView(replicas) {
  const rows = replicas.rows, member = replicas.noun === "member";
  if (rows.length < 2) return section("Stability", null, note("Only one replica was trained, so other seeds may find other clusters. n_init=4 trains four and keeps the best."));
  const columns = [
    { title: member ? "Member" : "Replica", numeric: true, show: (row) => String(row.replica), key: (row) => row.replica },
    ...(member ? [{ title: "Method and view", show: (row) => row.name, key: (row) => row.name }] : []),
    { title: "Seed", numeric: true, show: (row) => String(row.seed), key: (row) => row.seed },
    { title: "Score", numeric: true, hint: member ? "adjusted Rand index with the consensus" : "label-free, higher is better", show: (row) => (row.kept ? el("b", {}, number(row.score)) : number(row.score)), key: (row) => row.score },
    { title: member ? "NMI with result" : "NMI with kept", numeric: true, show: (row) => (row.kept ? MISSING : two(row.nmi)), key: (row) => row.nmi },
    ...(rows.some((row) => known(row.accuracy)) ? [{ title: "Accuracy %", numeric: true, show: (row) => percent(row.accuracy), key: (row) => row.accuracy }] : []),
    { title: "", show: (row) => (row.kept ? "kept" : row.failed ? el("span", { class: "state failed" }, `failed: ${row.failed}`) : "") },
  ];
  return section("Stability", replicas.exchanged
    ? "Poor replicas were replaced by copies of better ones during training, so their agreement says little about other seeds."
    : member ? "Members are clusterings by different methods, of different views of the samples, with different seeds. Clusters that most of them find are probably real."
    : "Replicas differ only in their seed. Clusters that all of them find are probably real; those that only one finds may be chance.",
    table(member ? "Members" : "Replicas", columns, rows),
    el("div", { class: "pair" }, replicas.places.length > 1 ? el("section", { class: "part" }, nmiView(replicas)) : null,
      replicas.agreement ? el("section", { class: "part" }, histogramView("Agreement on each sample",
        `Share of the ${member ? "members" : "other replicas"} that assign a sample to the same cluster, after matching clusters.`, replicas.agreement, `share of ${replicas.noun}s`)) : null));
}

function knownView(classes) {
  return section("Known classes", "They were not used in the fit.", table("Scores", [
    { title: "", show: (row) => row.title },
    ...["accuracy", "nmi", "ari"].map((name) => ({ title: `${titled(name)} %`, numeric: true, show: (row) => percent(row.scores[name]), key: (row) => row.scores[name] })),
  ], [{ title: "This model", scores: classes.deep }, { title: "K-means", scores: classes.plain }]),
  el("section", { class: "part" }, confusionView(classes.confusion)));
}

function recordView(report) {
  const list = (title, rows) => el("details", {}, el("summary", {}, title), el("dl", { class: "lines" }, rows.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)])));
  return section("Record", null, list("Settings", report.settings), list("Provenance", report.provenance));
}

const report = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("main"), body = el("div");
main.append(el("header", { class: "top" }, el("h1", {}, report.title)), body,
  el("footer", {}, el("dl", { class: "lines" }, report.about.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]))));
body.append(factsView(report.facts), describedView(report.described), findingsView(report.findings), numberView(report.number), verdictView(report.verdict), clustersView(report),
  treeView(report.tree), embeddingView(report),
  linesView(report.curves), replicasView(report.replicas), report.known ? knownView(report.known) : el("span"), recordView(report));
document.documentElement.dataset.ready = "yes";
