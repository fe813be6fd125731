"""reclust study: run the studies of the paper, or your own, and see how far they are."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .. import studies
from .fit import add_device
from .output import add_json, duration, logged, positive, progress, show

if TYPE_CHECKING:
    from ..studies.backends import Backend

STORE = "studies.sqlite"
STOPPED = "stopped before the end: call again to go on"
EVERY = 10
"""As `Kept` says."""
BASELINES = ("pixels", "umap", "autoencoder")
"""As `METHODS` says."""


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("study", help="run the studies of the paper, or your own",
                                 description="Many runs, planned as one study, kept in one file (the store).")
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = actions.add_parser("list", help="the named studies", description="The studies that ship with reclust.")
    add_json(listing)
    listing.set_defaults(run=_list)
    showing = actions.add_parser("show", help="a study as a TOML file, to be changed",
                                 description="Print a study as TOML: a starting point for a study of your own.")
    _add_study(showing)
    showing.set_defaults(run=_show)
    _add_run(actions)
    _add_baselines(actions)
    status = actions.add_parser("status", help="how far studies are", description="What is planned, finished and failed.")
    status.add_argument("study", nargs="?", metavar="NAME", help="one study only")
    status.add_argument("--failures", action="store_true", help="also print why runs failed")
    retry = actions.add_parser("retry", help="let failed runs wait again",
                               description="Forget the failures of a study, so that the next run tries them again.")
    retry.add_argument("study", metavar="NAME")
    merge = actions.add_parser("merge", help="take over what other stores have",
                               description="Copy finished runs from other stores, as when parts ran on other machines.")
    merge.add_argument("others", nargs="+", metavar="STORE")
    compacting = actions.add_parser(
        "compact", help="make a store small enough to be committed",
        description="Write what stores hold into one small file, the same bytes each time: all scores, settings, times and "
                    "provenance, curves with fewer points and digits, no labels.")
    compacting.add_argument("stores", nargs="+", metavar="STORE")
    compacting.add_argument("-o", "--output", required=True, metavar="FILE")
    compacting.add_argument("--every", type=int, default=EVERY, metavar="N",
                            help="epochs between two points of a curve; around resets there are more (default: %(default)s)")
    compacting.add_argument("--curves", nargs="*", metavar="NAME", help="only these curves, or none (default: all)")
    add_json(compacting)
    compacting.set_defaults(run=_compact)
    exporting = actions.add_parser("export", help="write runs and curves as CSV or Parquet",
                                   description="Write the runs and curves of every study as tables.")
    exporting.add_argument("-o", "--output", required=True, metavar="FOLDER")
    exporting.add_argument("--format", choices=("csv", "parquet"), default="csv", help="(default: %(default)s)")
    for one, command in ((status, _status), (retry, _retry), (merge, _merge), (exporting, _export)):
        _add_store(one)
        add_json(one)
        one.set_defaults(run=command)


def _add_study(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="NAME_OR_FILE", help="a study of `reclust study list`, or a TOML file")
    parser.add_argument("--mini", action="store_true", help="its small form: minutes on two cores, with the embedded digits")


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", default=STORE, metavar="FILE", help="where results are kept (default: %(default)s)")


def _add_run(actions: argparse._SubParsersAction) -> None:
    parser = actions.add_parser(
        "run", help="compute what a study still lacks",
        description="Compute the waiting runs of a study. Finished ones are skipped; after a stop or a kill, call again.")
    _add_study(parser)
    _add_store(parser)
    parser.add_argument("--datasets", "--sets", nargs="+", metavar="SET", help="only these data sets for now")
    parser.add_argument("--algorithms", nargs="+", metavar="NAME", help="only these algorithms for now")
    parser.add_argument("--start", choices=("scratch", "pretrained"), help="only runs that start so for now")
    parser.add_argument("--variants", nargs="+", metavar="NAME", help="only these variants for now, and what trains with them")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="SEED",
                        help="only these seeds for now, and what trains with them")
    parser.add_argument("--precision", choices=("auto", "float32", "float64", "bf16"),
                        help="of the arithmetic, instead of the study's own; runs of another precision are other runs")
    parser.add_argument("--minutes", type=positive, metavar="M",
                        help="stop cleanly after so long, at the end of an epoch or of what is measured; call again to go on")
    parser.add_argument("--retry", action="store_true", help="try failed runs again")
    parser.add_argument("--baselines", action="store_true", help="also k-means on the samples and on the pretrained embeddings")
    where = parser.add_argument_group("where to compute")
    where.add_argument("--on", choices=("here", "processes", "ray"), default="here", help="(default: %(default)s)")
    where.add_argument("--workers", type=int, default=2, metavar="N", help="with --on processes (default: %(default)s)")
    where.add_argument("--address", metavar="ADDRESS", help="of a Ray cluster; auto finds it (default: one on this machine)")
    where.add_argument("--gpus", type=float, default=0.0, metavar="N",
                       help="of each task, with --on ray (default: %(default)s)")
    where.add_argument("--threads", type=int, metavar="N", help="of each task; with --on ray also the CPUs that it is given")
    _add_conditions(where)
    parser.add_argument("--quiet", action="store_true", help="no progress bar, nor lines in its place")
    add_json(parser)
    parser.set_defaults(run=_run, stopped="stopped: call again to go on")


def _add_conditions(parser: argparse._ActionsContainer) -> None:
    add_device(parser)
    parser.add_argument("--data", metavar="FOLDER", help="where data sets are (default: RECLUST_DATA, or your cache)")
    parser.add_argument("--work", metavar="FOLDER", help="for shared pretraining and checkpoints (default: STORE.work)")


def _conditions(arguments: argparse.Namespace, *, threads: int | None = None) -> studies.Conditions:
    from ..data.sets.download import check_data_folder
    from ..studies.runner import work_folder

    check_data_folder(arguments.data)
    return studies.Conditions(
        work=arguments.work or str(work_folder(Path(arguments.store))), data=arguments.data, threads=threads,
        device=arguments.device, until=None if arguments.minutes is None else time.time() + 60 * arguments.minutes)


def _add_baselines(actions: argparse._SubParsersAction) -> None:
    parser = actions.add_parser(
        "baselines", help="what the best preset is held against",
        description="K-means on the pixels, UMAP and a mixture, and k-means on pretrained autoencoders, on the data sets "
                    "of the best preset's table. Finished runs are skipped; after a stop or a kill, call again.")
    _add_store(parser)
    parser.add_argument("--datasets", "--sets", nargs="+", metavar="SET", help="only these data sets for now")
    parser.add_argument("--methods", nargs="+", choices=BASELINES, metavar="METHOD",
                        help=f"only these for now, of {', '.join(BASELINES)}")
    parser.add_argument("--minutes", type=positive, metavar="M", help="begin no run after so long; call again to go on")
    _add_conditions(parser)
    add_json(parser)
    parser.set_defaults(run=_baselines, stopped="stopped: call again to go on")


def _baselines(arguments: argparse.Namespace) -> int:
    from ..studies.baselines import METHODS, best_baselines

    conditions = _conditions(arguments)
    methods = None if arguments.methods is None else [METHODS[name] for name in arguments.methods]
    known = {run.dataset: None for baselines in best_baselines() for *_, run in baselines.runs()}
    for name in arguments.datasets or ():
        if name not in known:
            raise ValueError(f"There are no baselines of {name!r}, only of {', '.join(known)}.")
    with studies.Store(arguments.store) as store:
        rows, left = [], 0
        for baselines in best_baselines():
            finished, waiting = studies.run_baselines(baselines, store, conditions, datasets=arguments.datasets,
                                                      methods=methods)
            (status,) = store.status(baselines.name)
            left += waiting
            rows.append({"study": status.study, "finished now": finished, "finished": status.finished,
                         "waiting": status.waiting})
    show(rows, as_json=arguments.json)
    if left:
        print(STOPPED, file=sys.stderr)
    return 3 if left else 0


def _study(arguments: argparse.Namespace) -> studies.Study:
    path = Path(arguments.study)
    found = studies.read_study(path) if path.suffix == ".toml" else studies.named(arguments.study)
    return found.mini() if arguments.mini else found


def _list(arguments: argparse.Namespace) -> int:
    from ..studies.listing import listed

    show(listed(), as_json=arguments.json)
    return 0


def _show(arguments: argparse.Namespace) -> int:
    print(studies.write_study(_study(arguments)), end="")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from ..studies.runner import check_known, only

    study, begun = _study(arguments), time.time()
    if arguments.precision is not None:
        study = replace(study, precision=arguments.precision)
    conditions, backend = _conditions(arguments, threads=arguments.threads), _backend(arguments)
    some = {"datasets": arguments.datasets, "algorithms": arguments.algorithms, "variants": arguments.variants,
            "pretrained": None if arguments.start is None else arguments.start == "pretrained", "seeds": arguments.seeds}
    check_known(study, only(**some))
    shown = progress(quiet=arguments.quiet or arguments.json)
    told = logged("reclust.studies.runner", shown=shown not in (None, False))
    with studies.Store(arguments.store) as store, told:  # made if it is not there, so what can be refused was
        if arguments.retry and study.name in store.studies():
            store.retry(study.name)
        ran = studies.run(study, store, conditions=conditions, backend=backend, progress=shown, **some)
        _report(ran, time.time() - begun, arguments)
        left = 0
        if arguments.baselines and not ran.waiting:
            _, left = studies.run_baselines(studies.baselines_of(study), store, conditions, datasets=arguments.datasets)
        if left:
            print(STOPPED, file=sys.stderr)
    return 1 if ran.failures else 3 if ran.waiting or left else 0


def _backend(arguments: argparse.Namespace) -> Backend:
    if arguments.on == "ray":
        from ..studies.backends.cluster import ray_itself

        ray_itself()  # raises where it is not installed, before a store is made
        return studies.RayCluster(arguments.address, cpus=arguments.threads, gpus=arguments.gpus)
    return studies.Processes(arguments.workers) if arguments.on == "processes" else studies.InProcess()


def _report(ran: studies.Ran, seconds: float, arguments: argparse.Namespace) -> None:
    if arguments.json:
        show([{"study": ran.study, "finished": ran.finished, "waiting": ran.waiting, "failed": len(ran.failures),
               "seconds": seconds, "store": arguments.store}], as_json=True)
        return
    print(f"{ran.study}: {ran.finished} runs finished in {duration(seconds)}, {ran.waiting} waiting, "
          f"{len(ran.failures)} failed; results are in {arguments.store}")
    for reason, (example, *others) in _by_reason(ran.failures).items():
        variants = [one for one in dict.fromkeys(other.variant for other in others) if one != example.variant]
        more = f" and {len(others)} more" if others else ""
        more += f", also of {', '.join(variants)}" if variants else ""
        print(f"failed: {example.dataset} {example.algorithm} {example.variant}, seed {example.seed}{more}: {reason}",
              file=sys.stderr)
    if ran.waiting:
        print(STOPPED, file=sys.stderr)
    if ran.failures:
        where = "" if arguments.store == STORE else f" --store {shlex.quote(arguments.store)}"
        print(f"{_when_tried_again(ran.failures)}; see `reclust study status {ran.study} --failures{where}`", file=sys.stderr)


def _when_tried_again(failures: Sequence[studies.Failure]) -> str:
    from ..studies.runner import lacked_data

    without = [lacked_data(failure) for failure in failures]
    if all(without):
        return "runs whose data was missing are tried again by the next call"
    if any(without):
        return "runs whose data was missing are tried again by the next call, other failed runs only with --retry"
    return "failed runs are tried again only with --retry"


def _status(arguments: argparse.Namespace) -> int:
    with studies.StoreReader(arguments.store) as store:
        statuses, failures = store.status(arguments.study), store.failures(arguments.study)
    rows = [{"study": one.study, "planned": one.planned, "finished": one.finished, "failed": one.failed, "waiting": one.waiting,
             **({"seconds": one.seconds} if arguments.json else {"time": duration(one.seconds)})} for one in statuses]
    if arguments.json and arguments.failures:
        rows = [{**row, "failures": [asdict(one) for one in failures if one.study == row["study"]]} for row in rows]
    show(rows, as_json=arguments.json, empty="no study was planned yet")
    if arguments.failures and not arguments.json:
        for example, *others in _by_reason(failures).values():
            print(f"\n{len(others) + 1} runs, such as {example.study} {example.dataset} {example.algorithm} {example.variant}, "
                  f"seed {example.seed}:\n{example.error.rstrip()}")
    return 1 if failures else 0


def _by_reason(failures: Sequence[studies.Failure]) -> dict[str, list[studies.Failure]]:
    """Failures by the last line of what went wrong."""
    reasons: dict[str, list[studies.Failure]] = {}
    for failure in failures:
        reasons.setdefault(failure.error.strip().splitlines()[-1], []).append(failure)
    return reasons


def _retry(arguments: argparse.Namespace) -> int:
    with _existing(arguments.store) as store:
        count = store.retry(arguments.study)
    show([{"study": arguments.study, "waiting again": count}], as_json=arguments.json)
    return 0


def _merge(arguments: argparse.Namespace) -> int:
    for other in arguments.others:
        studies.StoreReader(other).close()  # raises where it is none, before a store is made
    with studies.Store(arguments.store) as store:
        show([{"store": other, "runs taken over": store.merge(other)} for other in arguments.others], as_json=arguments.json)
    return 0


def _compact(arguments: argparse.Namespace) -> int:
    curves = None if arguments.curves is None else tuple(arguments.curves)
    studies.compact(arguments.stores, arguments.output, studies.Kept(every=arguments.every, curves=curves))
    before, after = (sum(Path(one).stat().st_size for one in some) for some in (arguments.stores, [arguments.output]))
    show([{"store": arguments.output, "megabytes": after / 1e6, "before": before / 1e6}], as_json=arguments.json)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    with studies.StoreReader(arguments.store) as store:
        written = studies.export(store, arguments.output, kind=arguments.format)
    show([{"file": str(path)} for path in written], as_json=arguments.json)
    return 0


def _existing(path: str) -> studies.Store:
    studies.StoreReader(path).close()  # raises where there is none: a wrong name should not make an empty store
    return studies.Store(path)
