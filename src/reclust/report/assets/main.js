// Report of a store: results, curves, run details and all runs of the chosen study.

function facts(study) {
  const { planned, finished, failed, waiting, seconds } = study.status;
  const fact = (value, title) => el("div", {}, el("dd", {}, value), el("dt", {}, title));
  return el("dl", { class: "facts" }, fact(planned.toLocaleString("en"), "runs planned"), fact(finished.toLocaleString("en"), "finished"),
    failed ? fact(failed.toLocaleString("en"), "failed") : null, waiting ? fact(waiting.toLocaleString("en"), "waiting") : null,
    fact(duration(seconds), "of computing"));
}

// Accuracy of every seed as a dot between 0 and 100 %, the mean as a bar.
function strip(runs, mean) {
  const x = (share) => 3 + 94 * share, scores = runs.map((run) => run.acc).filter(known);
  return svg("svg", { viewBox: "0 0 100 14", class: "strip", role: "img", "aria-label": `${scores.length} seeds: ${scores.map((acc) => percent(acc)).join(", ")} %` },
    svg("line", { class: "grid", x1: 3, x2: 97, y1: 7, y2: 7 }), scores.map((acc) => svg("circle", { cx: x(acc), cy: 7, r: 2.4 })),
    known(mean) ? svg("line", { class: "mean", x1: x(mean), x2: x(mean), y1: 1.5, y2: 12.5 }) : null);
}

// One column per key, or a single column on narrow screens.
function keyColumns(names, of) {
  if (!NARROW.matches) return names.map((name) => ({ title: titled(name), key: (row) => of(row).key[name],
    show: (row) => (known(of(row).key[name]) ? worded(name, of(row).key[name]) : MISSING) }));
  return [{ title: "Configuration", wide: true, show: (row) => cellName(of(row), names), key: (row) => cellName(of(row), names) }];
}

function resultsView(report, study) {
  const varying = study.keys.filter((name) => valuesOf(study.cells, name).length > 1), constant = study.keys.filter((name) => !varying.includes(name));
  const names = varying.length ? varying : ["variant"];
  const spread = (cell, name) => [el("b", {}, percent(cell.means[name][0])), " ", known(cell.means[name][1]) ? el("span", { class: "std" }, `±${percent(cell.means[name][1])}`) : null];
  const columns = [
    ...keyColumns(names, (cell) => cell),
    ...["acc", "nmi", "ari"].map((name) => ({ title: `${titled(name)} %`, numeric: true, show: (cell) => spread(cell, name), key: (cell) => cell.means[name][0] })),
    { title: "Best", numeric: true, show: (cell) => percent(cell.means.acc[2]), key: (cell) => cell.means.acc[2], hint: "accuracy of the best seed" },
    { title: "Seeds, 0–100 %", show: (cell) => strip(cell.runs.map((i) => report.runs[i]), cell.means.acc[0]), hint: "accuracy of every seed" },
    { title: "Runs", numeric: true, show: (cell) => { const done = cell.runs.filter((i) => report.runs[i].state === "finished").length;
      return done === cell.runs.length ? String(done) : `${done} of ${cell.runs.length}`; }, key: (cell) => cell.runs.length },
    { title: "Time", numeric: true, show: (cell) => duration(cell.means.seconds[0]), key: (cell) => cell.means.seconds[0], hint: "mean of a run" },
    { title: "", fixed: true, show: (cell) => recordButton(report, study, cell) },
  ];
  const fixed = constant.filter((name) => names.indexOf(name) < 0 && known(study.cells[0] && study.cells[0].key[name])).map((name) => worded(name, study.cells[0].key[name]));
  return section("Results", `Mean over seeds ± standard deviation (n − 1)${fixed.length ? `; all with ${fixed.join(", ")}` : ""}.`,
    table("Results", columns, study.cells, { search: (cell) => cellName(cell, study.keys) }));
}

function runDetailsView(report, study) {
  const cells = study.cells.filter((cell) => known(cell.shown) && report.runs[cell.shown].run in report.run_details);
  if (!cells.length) return section("Run details", null, note("No run of this study has finished yet."));
  const content = el("div", { class: "run-details" });
  const part = (title, view, found) => el("section", { class: "part" }, el("h3", {}, title), typeof found === "string" ? note(found) : view(found));
  const fields = picker(cells, ["dataset", "algorithm", "pretrained", "variant"], ([cell]) => {
    if (!cell) return content.replaceChildren(note("There is no such combination in this study."));
    const run = report.runs[cell.shown], details = report.run_details[run.run];
    content.replaceChildren(
      el("p", { class: "about" }, `Seed ${run.seed}, the first of ${count(cell.runs.length, "run")}: accuracy ${percent(run.acc)} %, NMI ${percent(run.nmi)} %, ARI ${percent(run.ari)} %. `,
        recordButton(report, study, cell)),
      el("div", { class: "pair" }, part("Embeddings", sceneView, details.scene), part("Classes and clusters", confusionView, details.confusion)),
      part("Samples near and far from each center", sheetView, details.sheet));
  });
  return section("Run details", null, el("div", { class: "controls" }, fields), content);
}

function runsView(report, study) {
  const rows = study.cells.flatMap((cell) => cell.runs.map((i) => ({ cell, run: report.runs[i] })));
  const columns = [
    ...keyColumns(study.keys.filter((name) => valuesOf(study.cells, name).length > 1 || name === "variant"), ({ cell }) => cell),
    { title: "Seed", numeric: true, show: ({ run }) => String(run.seed), key: ({ run }) => run.seed },
    { title: "State", show: ({ run }) => el("span", { class: `state ${run.state}` }, run.state), key: ({ run }) => run.state },
    ...scoreColumns(({ run }, name) => run[name]),
    { title: "", fixed: true, show: ({ cell }) => recordButton(report, study, cell) },
  ];
  return section("All runs", null, table("All runs", columns, rows,
    { first: 12, search: ({ cell, run }) => `${cellName(cell, study.keys)} ${run.seed} ${run.state} ${run.run}` }));
}

function studyView(report, study) {
  return [study.about ? el("p", { class: "lead" }, study.about) : null, facts(study),
    study.cells.length ? [resultsView(report, study), curvesView(report, study), runDetailsView(report, study), runsView(report, study)]
      : note("No runs were planned for this study.")].flat();
}

const report = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("main"), body = el("div");
let current = report.studies[0];
const show = (study) => {
  current = study;
  body.replaceChildren(...studyView(report, study).filter(Boolean));
};
const choice = report.studies.length > 1 ? chooser("Study", report.studies.map((study) => ({ value: study, title: study.name })), current, show)
  : report.studies.length ? el("p", { class: "study" }, report.studies[0].name) : null;
main.append(el("header", { class: "top" }, el("h1", {}, report.title), report.figures ? figuresLink(report.figures) : null, choice), body,
  report.figures ? figuresView(report.figures) : el("span"),
  el("footer", {}, el("dl", { class: "lines" }, report.about.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]))));
if (current) show(current); else body.append(note("This store holds no study yet."));
NARROW.addEventListener("change", () => current && show(current));
document.documentElement.dataset.ready = "yes";
