// The record behind a number: its runs, their settings, and where they were computed.

function lines(title, rows) {
  return [el("h3", {}, title), el("dl", { class: "lines" }, rows.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]))];
}

function runRows(report, cell) {
  return table("Runs", [
    { title: "Seed", show: (run) => String(run.seed), key: (run) => run.seed },
    { title: "State", show: (run) => run.state, key: (run) => run.state },
    ...scoreColumns((run, name) => run[name]),
    { title: "Finished", show: (run) => (run.finished_at || MISSING).replace("T", " ").replace("+00:00", ""), key: (run) => run.finished_at },
    { title: "Run", show: (run) => el("code", {}, run.run) },
  ], cell.runs.map((i) => report.runs[i]));
}

function scoreColumns(of) {
  return [...["acc", "nmi", "ari"].map((name) => ({ title: `${titled(name)} %`, numeric: true,
    show: (row) => percent(of(row, name)), key: (row) => of(row, name) })),
  { title: "Time", numeric: true, show: (row) => duration(of(row, "seconds")), key: (row) => of(row, "seconds"), hint: "a run's share of what its group took" }];
}

function openRecord(report, study, cell) {
  const runs = cell.runs.map((i) => report.runs[i]), different = (name) => [...new Set(runs.map((run) => run[name]).filter(known))];
  const several = (name, list) => different(name).map((i, at, all) =>
    lines(all.length > 1 ? `${titled(name)} of seeds ${runs.filter((run) => run[name] === i).map((run) => run.seed).join(", ")}` : titled(name), list[i]));
  openDialog(cellName(cell, study.keys), {}, runRows(report, cell),
    different("error").map((i) => [el("h3", {}, "Error"), el("pre", { tabindex: "0" }, report.errors[i])]),
    several("settings", report.settings), several("provenance", report.provenance));
}

const recordButton = (report, study, cell) => el("button", { type: "button", class: "quiet",
  "aria-label": `Record of ${cellName(cell, study.keys)}`, onclick: () => openRecord(report, study, cell) }, "Record");
