"""Running a study: what waits is computed, what is done is skipped, what fails is kept and listed."""

from __future__ import annotations

import hashlib
import logging
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from tqdm.auto import tqdm

from ..data import DataError
from ..data.sets.download import check_data_folder
from ..data.sets.load import own_file
from ..training.fingerprint import code_of
from ..training.result import provenance
from ..utils.exceptions import warn
from ..utils.files import write_text
from ..utils.lock import exclusive_lock
from ..utils.progress import ProgressOption, progress_bar
from .backends import Backend, InProcess
from .backends.base import missing_pretraining
from .execute import Attempt, Conditions, Failed, Stopped, kept_state
from .store.store import Outcome, PlannedRun, Store
from .store.summaries import Failure
from .study import Group, Study

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ran:
    """How a call of `run` ended. waiting: runs that it was asked for and did not get to; failures: of the whole study."""

    study: str
    finished: int
    waiting: int
    failures: Sequence[Failure]


_MISSING = DataError.__name__
"""In the traceback of a run whose data was missing; it may be there now, or in another folder."""


def lacked_data(failure: Failure) -> bool:
    """Whether a failed run is tried again by the next call, unasked."""
    return _MISSING in failure.error


def work_folder(store: Path) -> Path:
    """Where shared pretraining and checkpoints are kept unless told otherwise: beside the store."""
    return store.with_name(store.name + ".work")


def run(study: Study, store: Store, *, conditions: Conditions | None = None, backend: Backend = InProcess(),
        datasets: Sequence[str] | None = None, algorithms: Sequence[str] | None = None, pretrained: bool | None = None,
        variants: Sequence[str] | None = None, seeds: Sequence[int] | None = None, progress: ProgressOption = None) -> Ran:
    """Compute the waiting runs of a study and commit each group as it arrives.

    datasets, algorithms, pretrained, variants, seeds: only these for now, and what trains stacked with them; groups are the
    same whether or not the others run. progress: None shows a bar where somebody is watching a terminal; a function is told
    the share that is done. Ctrl-C, SIGTERM, or the end of the time given in `conditions`, stops after the current epoch with
    a checkpoint, from which the next call goes on.
    """
    conditions = conditions or Conditions(work=str(work_folder(store.path)))
    groups = study.groups()
    wanted = only(datasets=datasets, algorithms=algorithms, pretrained=pretrained, variants=variants, seeds=seeds)
    runs = [run for group in groups for run in group.runs]
    check_known(study, wanted)
    check_data_folder(conditions.data)
    where = backend.where(conditions)
    with _only_one(Path(conditions.work), store.path), _Interrupt() as interrupt, ExitStack() as stack:
        _check_own_data(study, conditions, store.path)
        _plan(store, study, runs)
        _warn_of_changed_code(store, study, groups)
        store.retry(study.name, because=_MISSING)
        waiting = store.waiting(study.name)
        asked = [group for group in groups if group.key in waiting and _holds(group, wanted)]
        _warn_of_what_never_fires(study, asked)
        _log_beginning(study, asked, where)
        shown = stack.enter_context(_bar(study, asked, conditions, progress))

        def tick(cost: float, dataset: str) -> None:
            shown.set_description_str(f"{study.name}, {dataset}", refresh=False)
            shown.update(cost)

        finished = 0
        for group, attempt in backend.attempts(backend.ordered(asked), conditions, interrupt.asked, tick):
            finished += _commit(store, group, attempt)
            if isinstance(attempt, Outcome):
                kept_state(group, conditions).remove()  # not before: a kill in between would cost all of it
            shown.set_postfix_str(f"{finished} runs finished", refresh=False)
    waiting = store.waiting(study.name)
    left = sum(len(group.runs) for group in asked if group.key in waiting)
    return Ran(study.name, finished, left, store.failures(study.name))


def _plan(store: Store, study: Study, runs: Sequence[PlannedRun]) -> None:
    """Runs that train stacked are one group, so that other seeds or settings make other runs of all of them."""
    before = {run for (run,) in store.finished(study.name, (), ("run",))} if study.name in store.studies() else set()
    store.plan(study.name, study, runs)
    lost = before - {run.key for run in runs}
    if lost:
        warn(f"{study.name} was planned differently before: {len(lost)} finished runs no longer belong to it and leave its "
             "tables. They stay in the store; give the new plan another name to keep both.")


def _check_own_data(study: Study, conditions: Conditions, store: Path) -> None:
    """Refuse data that changed since the first run: runs are known by the name of their data, and finished ones, encoders and
    checkpoints would be of other samples than those to come."""
    for name in study.datasets:
        file = own_file(name, folder=conditions.data)
        if file is None:
            continue
        noted = Path(conditions.work) / "data" / f"{name}.sha256"
        digest = hashlib.sha256()
        with open(file, "rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
        found = digest.hexdigest()
        if not noted.is_file():
            with suppress(ValueError):  # of what cannot be used nothing will have been computed once it is mended
                study.protocol.sample(name, conditions.data)
                noted.parent.mkdir(exist_ok=True)
                write_text(noted, found)
        elif noted.read_text() != found:
            raise DataError(f"{file} has changed since runs of {name} were computed into {store}, which would be mixed: "
                            "give the new data another name, or use another store.")


def _warn_of_changed_code(store: Store, study: Study, groups: Sequence[Group]) -> None:
    """Runs are known by the names of their parts: of two programs of one name, nothing else would tell the results apart."""
    finished = {run for (run,) in store.finished(study.name, (), ("run",))}
    versions = {name: provenance(torch.device("cpu"))[name] for name in ("python", "torch")}  # others write code otherwise
    changed: dict[str, int] = {}
    for group in groups:
        done = [run.key for run in group.runs if run.key in finished]
        now = code_of(group)
        if done and now:
            noted = store.provenance(done[0])
            before = noted.get("own parts", {}) if versions.items() <= noted.items() else {}
            for name in before:
                if now.get(name, before[name]) != before[name]:
                    changed[name] = changed.get(name, 0) + len(done)
    for name, count in changed.items():
        warn(f"The code of {name} has changed since {count} finished runs of {study.name} were computed with it. They are not "
             "computed again, and those to come would be mixed with them: give the changed part another name, or use another "
             "store.")


Wanted = Mapping[str, Sequence[Any] | None]
"""What a run has to be one of, by the name of the field; None for any."""


def only(*, datasets: Sequence[str] | None, algorithms: Sequence[str] | None, pretrained: bool | None,
         variants: Sequence[str] | None, seeds: Sequence[int] | None) -> Wanted:
    return {"dataset": datasets, "algorithm": algorithms, "pretrained": None if pretrained is None else (pretrained,),
            "variant": variants, "seed": seeds}


def check_known(study: Study, wanted: Wanted) -> None:
    """Refuse what no run of the study has."""
    runs = study.planned() if any(wanted.values()) else []
    for what, some in wanted.items():
        known = dict.fromkeys(getattr(run, what) for run in runs)
        for one in some or ():
            if one not in known and what == "pretrained":
                raise ValueError(f"{study.name} has only runs {'from scratch' if one else 'with pretraining'}.")
            if one not in known:
                raise ValueError(f"{study.name} has no {what} {one!r}; it has {', '.join(map(str, known))}.")


def _holds(group: Group, wanted: Wanted) -> bool:
    """Whether there is a run in it that is wanted."""
    return any(all(some is None or getattr(run, what) in some for what, some in wanted.items()) for run in group.runs)


def _warn_of_what_never_fires(study: Study, groups: Sequence[Group]) -> None:
    """Training says so itself, but what it says is not heard among many runs."""
    epochs = {run.variant: settings.clustering.epochs for group in groups
              for run, settings in zip(group.runs, group.settings, strict=True)
              if settings.clustering is not None and settings.intervention is not None
              and not settings.intervention.fires_within(settings.clustering.epochs)}
    if epochs:
        named = ", ".join(f"{variant!r} ({count} epochs)" for variant, count in epochs.items())
        warn(f"These variants of {study.name} have an intervention that never fires in their epochs and so changes "
             f"nothing: {named}. Train longer, or choose a shorter interval.")


def _log_beginning(study: Study, groups: Sequence[Group], where: str) -> None:
    if groups:
        datasets = ", ".join(dict.fromkeys(group.dataset for group in groups))
        runs = sum(len(group.runs) for group in groups)
        _LOG.info("%s on %s: %d run%s waiting in %d group%s, computed on %s", study.name, datasets, runs, "s" * (runs > 1),
                  len(groups), "s" * (len(groups) > 1), where)


def _commit(store: Store, group: Group, attempt: Attempt) -> int:
    """How many runs finished by it."""
    if isinstance(attempt, Failed):
        variants = list(dict.fromkeys(run.variant for run in group.runs))
        together = f"Of the variants {', '.join(variants)}, which train stacked:\n" if len(variants) > 1 else ""
        store.fail(group.key, [run.key for run in group.runs], together + attempt.error)
        return 0
    if isinstance(attempt, Stopped):
        return 0
    store.add(attempt)
    return len(attempt.runs) - len(attempt.failed)


def _bar(study: Study, groups: Sequence[Group], conditions: Conditions, shown: ProgressOption) -> tqdm:
    """Counts cost, not runs, so that the time left means something."""
    cost = sum(group.cost for group in groups) + sum(one.cost for one in missing_pretraining(groups, conditions))
    return progress_bar(cost, shown, desc=study.name, smoothing=0.05, leave=True,
               bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed}, {remaining} left{postfix}")


@contextmanager
def _only_one(work: Path, store: Path) -> Iterator[None]:
    """Two runners would do everything twice."""
    work.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(work / "lock", f"Another process is running studies into {store}: wait for it, or use another store and "
                                 "merge the two."):
        for unfinished in work.rglob(".*.tmp"):  # what a killed run was writing
            unfinished.unlink(missing_ok=True)
        yield


class _Interrupt:
    """The first Ctrl-C asks to stop, and so does SIGTERM, which clusters send some time before they kill; the second Ctrl-C
    stops at once. Only the main thread can listen for them."""

    def __init__(self) -> None:
        self._asked = False

    def asked(self) -> bool:
        return self._asked

    def __enter__(self) -> _Interrupt:
        listening = threading.current_thread() is threading.main_thread()
        self._before = {number: signal.signal(number, self._note)
                        for number in ((signal.SIGINT, signal.SIGTERM) if listening else ())}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        again, self._asked = self._asked, True
        if again and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not again:  # nor does a second SIGTERM mean more: `timeout` sends two at a time
            tqdm.write("Stopping after this epoch, with a checkpoint. Ctrl-C now stops at once: what was computed since the "
                       "last checkpoint is lost.", file=sys.stderr)
