"""Running a study: compute what is waiting, skip what is done, and store failures."""

import hashlib
import logging
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from ..data import DataError
from ..data.sets.load import custom_file
from ..training.fingerprint import code_of
from ..utils.exceptions import printable, warn
from ..utils.files import exclusive_lock, write_text
from ..utils.progress import ProgressOption, progress_bar
from .backends import Backend, InProcess
from .backends.local import missing_pretraining
from .execute import Conditions, Failed, checkpoint_of
from .store.reader import Failure
from .store.store import Outcome, Store
from .study import Group, Study

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunSummary:
    """Result of `run`: runs finished and still waiting, and all failures of the study."""

    study: str
    finished: int
    waiting: int
    failures: Sequence[Failure]


def work_folder(store: Path) -> Path:
    return store.with_name(store.name + ".work")


def run(study: Study, store: Store, *, conditions: Conditions | None = None,
        backend: Backend = InProcess(), datasets: Sequence[str] | None = None,
        algorithms: Sequence[str] | None = None, pretrained: bool | None = None,
        variants: Sequence[str] | None = None, seeds: Sequence[int] | None = None,
        progress: ProgressOption = None) -> RunSummary:
    """Compute the waiting runs of a study, and store each group as it finishes.

    Ctrl-C, SIGTERM and the end of the time in `conditions` stop after the current epoch with a
    checkpoint, from which the next call continues. `datasets`, `algorithms`, `pretrained`,
    `variants` and `seeds` restrict the call to some runs and what trains stacked with them.
    """
    selection = _select(study, dataset=datasets, algorithm=algorithms, variant=variants, seed=seeds,
                        pretrained=None if pretrained is None else [pretrained])
    conditions = conditions or Conditions(work=str(work_folder(store.path)))
    where, groups = backend.where(conditions), study.groups()
    work, title = Path(conditions.work), printable(study.name)
    work.mkdir(parents=True, exist_ok=True)
    busy = (f"Another process is running studies into {store.path}: wait for it, or use another "
            "store and merge the two.")
    with exclusive_lock(work / "lock", busy), _interrupts() as stop:
        _check_user_data(study, conditions, store.path)
        _plan(store, study, groups)
        store.retry(study.name, because=DataError.__name__)  # the data may be there now
        waiting = store.waiting(study.name)
        chosen = [group for group in groups if group.key in waiting and any(
            all(getattr(run, name) in some for name, some in selection.items())
            for run in group.runs)]
        _warn_if_never_fired(study, chosen)
        if chosen:
            sets = ", ".join(dict.fromkeys(group.dataset for group in chosen))
            count = sum(len(group.runs) for group in chosen)
            _LOG.info("%s on %s: %d run%s waiting in %d group%s, computed on %s", title,
                      printable(sets), count, "s" * (count > 1), len(chosen),
                      "s" * (len(chosen) > 1), where)
        finished = 0
        cost = sum(group.cost for group in chosen)
        cost += sum(start.cost for start in missing_pretraining(chosen, conditions))
        with progress_bar(
                cost, progress, desc=title, smoothing=0.05, leave=True, bar_format=
                "{desc} {percentage:3.0f}% |{bar}| {elapsed}, {remaining} left{postfix}") as bar:

            def tick(cost: float, dataset: str) -> None:
                bar.set_description_str(f"{title}, {printable(dataset)}", refresh=False)
                bar.update(cost)

            for group, attempt in backend.attempts(chosen, conditions, stop, tick):
                if isinstance(attempt, Failed):
                    variants = ", ".join(dict.fromkeys(run.variant for run in group.runs))
                    store.fail(group.key, [run.key for run in group.runs],
                               f"Variants trained stacked: {variants}\n{attempt.error}")
                elif isinstance(attempt, Outcome):
                    store.add(attempt)
                    checkpoint_of(group, conditions).remove()
                    finished += len(attempt.runs) - len(attempt.failed)
                bar.set_postfix_str(f"{finished} runs finished", refresh=False)
    waiting = store.waiting(study.name)
    left = sum(len(group.runs) for group in chosen if group.key in waiting)
    return RunSummary(study.name, finished, left, store.failures(study.name))


def _select(study: Study, **selection: Sequence[Any] | None) -> dict[str, Sequence[Any]]:
    known: Mapping[str, Sequence[Any]] = {
        "dataset": study.datasets, "algorithm": study.algorithms, "pretrained": study.pretrained,
        "variant": [variant.name for variant in study.variants], "seed": study.seeds}
    chosen = {name: some for name, some in selection.items() if some is not None}
    for name, some in chosen.items():
        for item in some:
            if item not in known[name]:
                others = ", ".join(map(str, known[name]))
                raise ValueError(f"{study.name} has no {name} {item!r}; it has {others}.")
    return chosen


def _check_user_data(study: Study, conditions: Conditions, store: Path) -> None:
    """Refuse data that changed since the first run, since keys hold only its name."""
    for name in study.datasets:
        file = custom_file(name, folder=conditions.data)
        if file is None:
            continue
        noted = Path(conditions.work) / "data" / f"{name}.sha256"
        checksum = hashlib.sha256(file.read_bytes()).hexdigest()
        if not noted.is_file():
            with suppress(ValueError):  # do not note data that cannot be used
                study.protocol.sample(name, conditions.data)
                noted.parent.mkdir(exist_ok=True)
                write_text(noted, checksum)
        elif noted.read_text() != checksum:
            raise DataError(f"{file} has changed since runs of {name} were stored in {store}: "
                            "give the new data another name, or use another store.")


def _plan(store: Store, study: Study, groups: Sequence[Group]) -> None:
    """Store the plan; warn if finished runs leave it or were computed with other code."""
    finished: set[str] = set()
    if study.name in store.studies():
        finished = {run for (run,) in store.finished(study.name, (), ("run",))}
    store.plan(study.name, study, [run for group in groups for run in group.runs])
    lost = finished - {run.key for group in groups for run in group.runs}
    if lost:
        warn(f"{study.name} was planned differently before: {len(lost)} finished runs are no "
             "longer part of it. They stay in the store; use another name to keep both plans.")
    changed: Counter[str] = Counter()
    for group in groups:
        done = [run.key for run in group.runs if run.key in finished]
        if done and (code := code_of(group)):
            before = store.provenance(done[0]).get("own parts", {})
            changed.update({name: len(done) for name in before.keys() & code.keys()
                            if before[name] != code[name]})
    for name, count in changed.items():
        warn(f"The code of {name} has changed since {count} finished runs of {study.name} were "
             "computed with it: rename the class, or use another store, to compute them again.")


def _warn_if_never_fired(study: Study, groups: Sequence[Group]) -> None:
    epochs = {run.variant: settings.clustering.epochs for group in groups
              for run, settings in zip(group.runs, group.settings, strict=True)
              if settings.clustering is not None and settings.intervention is not None
              and not settings.intervention.fires_within(settings.clustering.epochs)}
    if epochs:
        named = ", ".join(f"{variant!r} ({count} epochs)" for variant, count in epochs.items())
        warn(f"These variants of {study.name} have an intervention that never fires in their "
             f"epochs: {named}. Train longer, or choose a shorter interval.")


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C or SIGTERM into a request to stop; a second Ctrl-C stops at once."""
    requested = False

    def handle(number: int, frame: object) -> None:
        nonlocal requested
        again, requested = requested, True
        if again and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not again:  # `timeout` sends SIGTERM twice
            tqdm.write("Stopping after this epoch, with a checkpoint. Ctrl-C again stops at once "
                       "and loses what was computed since the last checkpoint.", file=sys.stderr)

    main = threading.current_thread() is threading.main_thread()  # no other can set handlers
    before = {number: signal.signal(number, handle)
              for number in (signal.SIGINT, signal.SIGTERM)
              if main and signal.getsignal(number) is not None}  # None: not set by Python
    try:
        yield lambda: requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
