"""`reclust study`, `table`, `figure` and `report`: run studies, and show their results."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from .. import studies
from ..utils.choices import PrecisionName
from ..utils.exceptions import printable
from ..utils.progress import duration
from . import common
from .common import CONDITIONS, OPTIONS, STUDY, add_command, add_options, progress, show

if TYPE_CHECKING:
    from ..studies.backends import Backend

EXTENSIONS = {"csv": "csv", "markdown": "md", "latex": "tex", "text": "txt"}
STOPPED = "stopped early: run the same command again to continue"


def add(commands: argparse._SubParsersAction) -> None:
    parser = add_command(commands, "study", _list, "run the studies of the paper or your own",
                         "A study is many trainings, with results in one file, the store.")
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_options(add_command(actions, "list", _list, "list the named studies"), "--json")
    showing = add_command(actions, "show", _show, "print a study as TOML, to start yours from")
    add_options(showing, *STUDY)
    _add_run(actions)
    status = add_command(actions, "status", _status, "show how many runs are finished or failed")
    status.add_argument("study", nargs="?", metavar="NAME", help="only this study")
    status.add_argument("--failures", action="store_true", help="also print why runs failed")
    merge = add_command(actions, "merge", _merge, "copy finished runs from other stores")
    merge.add_argument("others", nargs="+", metavar="STORE")
    export = add_command(actions, "export", _export, "write runs and curves as CSV or Parquet")
    option = export.add_argument
    option("-o", "--output", required=True, metavar="FOLDER")
    option("--format", choices=("csv", "parquet"), default="csv", help="(default: %(default)s)")
    for action in (status, merge, export):
        add_options(action, "--store", "--json")
    compact = add_command(
        actions, "compact", _compact, "make a store small enough to commit",
        "Writes one file with scores, settings, times, provenance and thinned curves, no labels.")
    option = compact.add_argument
    option("stores", nargs="+", metavar="STORE")
    option("-o", "--output", required=True, metavar="FILE")
    option("--every", type=int, default=10, metavar="N", help="epochs between points (default: 10)")
    option("--curves", nargs="*", metavar="NAME", help="only these curves, or none (default: all)")
    add_options(compact, "--json")
    _add_results(commands)


def _add_results(commands: argparse._SubParsersAction) -> None:
    table = add_command(
        commands, "table", _table, "print the tables of a study",
        "Means over seeds beside the paper's, and BRB compared with its baseline seed by seed.")
    add_options(table, "store")
    option = table.add_argument
    option("--study", metavar="NAME", help="(default: all studies but baselines)")
    option("--format", choices=list(EXTENSIONS), default="text", help="(default: %(default)s)")
    option("-o", "--output", metavar="FILE", help="write to a .csv, .md, .tex or .txt file")
    figure = add_command(
        commands, "figure", _figure, "draw the figures of the paper",
        "Draws one figure, or all that the store has runs for, as .pdf, .svg or .png.")
    option = figure.add_argument
    option("store", nargs="?", **OPTIONS["store"])
    option("name", metavar="FIGURE", nargs="?", help="(default: all)")
    option("-o", "--output", metavar="FILE", default="figures", help="or folder (default: figures)")
    option("--list", action="store_true", help="list the figures and their studies")
    option("--epoch", type=int, metavar="E", help="reset to show, in figures of a single one")
    option("--study", metavar="NAME", help="(default: the one with most of the required runs)")
    add_options(figure, "--datasets", "--algorithms", "--variants", "--json")
    report = add_command(
        commands, "report", _report, "write an HTML report of a store",
        "One file that opens offline, with the settings and provenance behind every number.")
    add_options(report, "store", "--folder")
    option = report.add_argument
    option("-o", "--output", default="report.html", metavar="FILE", help="(default: %(default)s)")
    option("--title", help="(default: the name of the store)")
    option("--no-figures", dest="figures", action="store_false", help="omit the paper's figures")


def _add_run(actions: argparse._SubParsersAction) -> None:
    parser = add_command(actions, "run", _run, "compute the missing runs of a study",
                         "If it is interrupted, run it again to continue.", interrupted=STOPPED)
    add_options(parser, *STUDY, "--datasets", "--algorithms", "--variants")
    option = parser.add_argument
    option("--start", choices=("scratch", "pretrained"), help="only runs with this start")
    option("--seeds", nargs="+", type=int, metavar="SEED", help="only these seeds")
    option("--precision", choices=get_args(PrecisionName),
           help="other than the study's: other runs")
    option("--retry", action="store_true", help="also run failed runs again")
    option("--baselines", action="store_true", help="also run k-means on samples and embeddings")
    option("--on", choices=("here", "processes", "ray"), default="here", help="(default: here)")
    option("--workers", type=int, default=2, metavar="N", help="number of processes (default: 2)")
    option("--address", metavar="ADDRESS", help="Ray cluster, or auto (default: start one here)")
    option("--gpus", type=float, default=0.0, metavar="N", help="GPUs per Ray task (default: 0)")
    option("--threads", type=int, metavar="N", help="threads per task, and CPUs per Ray task")
    option("--quiet", action="store_true", help="do not show progress")
    add_options(parser, *CONDITIONS, "--json")


def conditions_of(arguments: argparse.Namespace, threads: int | None = None) -> studies.Conditions:
    from ..studies.runner import work_folder

    deadline = None if arguments.minutes is None else time.time() + 60 * arguments.minutes
    return studies.Conditions(
        work=arguments.work or str(work_folder(Path(arguments.store))), data=arguments.folder,
        threads=threads, device=arguments.device, until=deadline)


def _study(arguments: argparse.Namespace) -> studies.Study:
    path = Path(arguments.study)
    study = studies.read_study(path) if path.suffix == ".toml" else studies.named(path.name)
    return study.mini() if arguments.mini else study


def _list(arguments: argparse.Namespace) -> None:
    show([{"name": row["name"], "runs": int(row["runs"]), "mini": int(row["mini"]),
           "about": row["about"]} for row in studies.published.catalog()], as_json=arguments.json)


def _show(arguments: argparse.Namespace) -> None:
    print(studies.write_study(_study(arguments)), end="")


def _run(arguments: argparse.Namespace) -> int:
    common.check_paths([arguments.study], [arguments.store])
    study, start = _study(arguments), time.time()
    if arguments.precision is not None:
        study = replace(study, precision=arguments.precision)
    conditions, left = conditions_of(arguments, arguments.threads), 0
    quiet = arguments.quiet or arguments.json
    logger, handler = logging.getLogger("reclust.studies"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("reclust: %(message)s"))
    logger.handlers = [] if quiet else [handler]
    logger.setLevel(logging.INFO)
    with studies.Store(arguments.store) as store:
        if arguments.retry and study.name in store.studies():
            store.retry(study.name)
        ran = studies.run(
            study, store, conditions=conditions, backend=_backend(arguments),
            datasets=arguments.datasets, algorithms=arguments.algorithms,
            pretrained=None if arguments.start is None else arguments.start == "pretrained",
            variants=arguments.variants, seeds=arguments.seeds, progress=progress(quiet=quiet))
        if arguments.baselines and not ran.waiting:
            _, left = studies.run_baselines(studies.baselines_of(study), store, conditions,
                                            datasets=arguments.datasets)
    _print_summary(ran, time.time() - start, arguments)
    if ran.waiting or left:
        print(STOPPED, file=sys.stderr)
    return 1 if ran.failures else 3 if ran.waiting or left else 0


def _backend(arguments: argparse.Namespace) -> Backend:
    if arguments.on == "ray":
        return studies.RayCluster(arguments.address, cpus=arguments.threads, gpus=arguments.gpus)
    if arguments.on == "processes":
        return studies.Processes(arguments.workers)
    return studies.InProcess()


def _print_summary(ran: studies.RunSummary, seconds: float, arguments: argparse.Namespace) -> None:
    if arguments.json:
        show([{"study": ran.study, "finished": ran.finished, "waiting": ran.waiting,
               "failed": len(ran.failures), "seconds": seconds, "store": arguments.store}],
             as_json=True)
        return
    common.tell(f"{ran.study}: {ran.finished} runs finished in {duration(seconds)}, {ran.waiting} "
                f"waiting, {len(ran.failures)} failed; results are in {arguments.store}",
                sys.stdout)
    for example, failure in _by_reason(ran.failures):
        common.tell(f"failed: {example}: {failure.error.strip().splitlines()[-1]}", sys.stderr)
    if ran.failures:
        common.tell("failed runs with missing data are retried by the next call, others with "
                    f"--retry; see `reclust study status {ran.study} --failures`", sys.stderr)


def _by_reason(failures: Sequence[studies.Failure]) -> Iterator[tuple[str, studies.Failure]]:
    reasons: dict[str, list[studies.Failure]] = {}
    for failure in failures:
        reasons.setdefault(failure.error.strip().splitlines()[-1], []).append(failure)
    for run, *rest in reasons.values():
        more = f" and {len(rest)} more" if rest else ""
        yield f"{run.dataset} {run.algorithm} {run.variant}, seed {run.seed}{more}", run


@contextmanager
def _reading(path: str) -> Iterator[studies.StoreReader]:
    """Open a store; what wrong values in it raise becomes one sentence that names the file."""
    from ..studies.store.schema import explain_errors

    with explain_errors(Path(path)), studies.StoreReader(path) as store:
        yield store


def _status(arguments: argparse.Namespace) -> int:
    with _reading(arguments.store) as store:
        statuses, failures = store.status(arguments.study), store.failures(arguments.study)
        rows = [{**asdict(status), "waiting": status.waiting} for status in statuses]
        for row in rows:
            if not arguments.json:
                row["time"] = duration(row.pop("seconds"))
            elif arguments.failures:
                row["failures"] = [asdict(failure) for failure in failures
                                   if failure.study == row["study"]]
        show(rows, as_json=arguments.json, empty="no study was planned yet")
        if arguments.failures and not arguments.json:
            for example, failure in _by_reason(failures):
                print(printable(f"\n{failure.study} {example}:\n{failure.error.rstrip()}"))
    return 1 if failures else 0


def _merge(arguments: argparse.Namespace) -> None:
    common.check_paths(arguments.others, [arguments.store])
    with studies.Store(arguments.store) as store:
        show([{"store": path, "runs copied": store.merge(path)} for path in arguments.others],
             as_json=arguments.json)


def _compact(arguments: argparse.Namespace) -> None:
    common.check_paths(arguments.stores, [arguments.output])
    studies.compact(arguments.stores, arguments.output, every=arguments.every,
                    curves=arguments.curves)
    before, after = (sum(Path(path).stat().st_size for path in paths) / 1e6
                     for paths in (arguments.stores, [arguments.output]))
    row = {"store": arguments.output, "megabytes": after, "before": before}
    show([row], as_json=arguments.json)


def _export(arguments: argparse.Namespace) -> None:
    with _reading(arguments.store) as store:
        written = studies.export(store, arguments.output, kind=arguments.format)
    show([{"file": str(path)} for path in written], as_json=arguments.json)


def _table(arguments: argparse.Namespace) -> None:
    from ..studies.tables import render, tables, write

    common.check_paths([arguments.store], [arguments.output])
    with _reading(arguments.store) as store:
        names = [arguments.study] if arguments.study else [
            status.study for status in store.status()
            if status.finished and not status.study.startswith("baselines")]
        result = [table for name in names for table in tables(store, name)]
    if not result:
        raise ValueError(f"{arguments.store} has no finished runs yet")
    if arguments.output:
        write(result, arguments.output)
        print(f"{arguments.output}: {len(result)} tables")
    else:
        bold = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("*", "*")
        print(render(result, EXTENSIONS[arguments.format], bold=bold), end="")


def _figure(arguments: argparse.Namespace) -> int:
    from ..studies.figures import FIGURES, Choice, MissingData, draw

    if arguments.list or arguments.store is None:
        show([{"figure": name, "studies": ", ".join(figure.studies), "about": figure.about}
              for name, figure in FIGURES.items()], as_json=arguments.json)
        return 0
    choice = Choice(arguments.study, datasets=arguments.datasets, variants=arguments.variants,
                    algorithms=arguments.algorithms, epoch=arguments.epoch)
    path = Path(arguments.output)
    to_file, names = arguments.name and path.suffix, [arguments.name] if arguments.name else FIGURES
    files = [path] if to_file else [path / f"{name}.pdf" for name in names]
    common.check_paths([arguments.store], files, None if to_file else path)
    if not to_file:
        path.mkdir(parents=True, exist_ok=True)
    with _reading(arguments.store) as store:
        if arguments.name:
            draw(store, arguments.name, files[0], choice)
            print(files[0])
            return 0
        missing = []
        for name in FIGURES:
            try:
                draw(store, name, path / f"{name}.pdf", choice)
            except MissingData:
                missing.append(name)
    if missing:
        print(f"no runs for: {', '.join(missing)}; `reclust figure {arguments.store} {missing[0]}` "
              "tells which study to run", file=sys.stderr)
    print(f"{path}: {len(FIGURES) - len(missing)} figures")
    return 0 if len(missing) < len(FIGURES) else 1


def _report(arguments: argparse.Namespace) -> None:
    from ..studies.html.report import report

    common.check_paths([arguments.store], [arguments.output])
    output = Path(arguments.output)
    if output.is_file() and output.stat().st_size and not common.is_ours(output):
        raise FileExistsError(f"{output} is no report of reclust: choose another name (-o).")
    with _reading(arguments.store) as store:
        report(store, arguments.output, data=arguments.folder, title=arguments.title,
               figures=arguments.figures, progress=progress())
    print(f"{arguments.output}: {Path(arguments.output).stat().st_size / 1e6:.1f} MB")
