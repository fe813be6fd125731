"""One group of a study, from its data to what is committed: the same work whichever backend asks for it."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .. import metrics
from ..data.inputs import as_inputs
from ..estimators.selection import Candidates
from ..training.checkpoint import Checkpoint
from ..training.fingerprint import code_of
from ..training.history import Curve, History
from ..training.monitors.analysis import Extremes
from ..training.monitors.base import Evaluation, Monitor, Snapshot, WithinEpochMonitor
from ..training.result import Result
from ..training.self_label import self_label
from ..training.settings import Execution
from ..training.train import train
from ..utils.device import choose_device
from ..utils.exceptions import ReclustWarning, StopTraining, TrainingFailed
from ..utils.values import check_int, value
from .measures import LABEL_FREE, MEASURES, shown_rows
from .protocols import Sample
from .store.store import Outcome
from .study import Group, Pretraining

COMMIT = "RECLUST_COMMIT"
"""Environment variable that names the commit where the source is no git checkout."""

BETWEEN = 120.0
"""Seconds between two checkpoints of a group, at least: forty stacked replicas fill more than a gigabyte."""


@value
class Conditions:
    """Where and how groups are computed; none of it is part of a run's identity.

    work: folder of shared pretraining and of checkpoints. data: folder of data sets, None for the usual one.
    until: time (seconds since the epoch) at which to stop. threads: of torch on a CPU, None for its own choice.
    """

    work: str
    data: str | None = None
    device: str = "auto"
    until: float | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            check_int("threads", self.threads, 1)


@dataclass(frozen=True)
class Failed:
    """A group that raised."""

    error: str


@dataclass(frozen=True)
class Stopped:
    """A group that was stopped, or not begun, before it finished; its checkpoint is on the disk."""


Attempt = Outcome | Failed | Stopped
Tick = Callable[[float, str], None]
"""Told how much of the cost was computed, and of which data set."""
Asked = Callable[[], bool]
"""Whether somebody wants the computation to stop."""


def never() -> bool:
    return False


def untold(cost: float, dataset: str) -> None:
    pass


def attempt(group: Group, conditions: Conditions, *, stop: Asked = never, tick: Tick = untold) -> Attempt:
    """Train a group from its pretraining, which is shared, to its scores; whatever happens is an answer."""
    if stop() or over(conditions):
        return Stopped()
    checkpoint = kept_state(group, conditions)
    try:
        start = None if group.pretraining is None else pretrained(group.pretraining, conditions, stop=stop, tick=tick)
        sample = group.protocol.sample(group.dataset, conditions.data)
        with _quietly(conditions):
            watch = _Watch(conditions, stop, lambda cost: tick(cost, group.dataset), *group.stage_costs)
            result = _clustered(group, start, sample, conditions, watch)
            begun = time.perf_counter()
            label_free = _label_free(group, result, sample, conditions)
            spent = {"selection": time.perf_counter() - begun} if label_free else {}
            outcome = _outcome(group, replace(result, seconds={**result.seconds, **spent}), start, sample, label_free)
    except StopTraining:
        return Stopped()
    except Exception as error:
        if isinstance(error, TrainingFailed):
            checkpoint.remove()  # it would lead to the same failure again
        return Failed(traceback.format_exc())
    return outcome


def kept_state(group: Group, conditions: Conditions) -> Checkpoint:
    """From which a group goes on; whoever has stored what came of it removes this."""
    return _checkpoint(conditions, group.key, group.settings[0].clustering)


def _clustered(group: Group, start: Result | None, sample: Sample, conditions: Conditions, watch: _Watch) -> Result:
    """The clustering of a group and, where it has one, its third stage. With that, the clustering is kept in a file, so that
    neither a stop nor another study of the same clustering has to train it again."""
    checkpoint, execution = kept_state(group, conditions), _execution(group, conditions)
    kept = Path(conditions.work) / "clustered" / f"{group.clustering}.reclust"
    monitors: list[Monitor] = [
        Evaluation(sample.classes, every=group.evaluate_every), Extremes(),
        *(MEASURES[name](sample.classes, group.evaluate_every) for name in group.measures), watch]
    if kept.is_file():
        result = Result.load(kept)
        watch.skip()
    else:
        result = train(sample.inputs, group.settings, seeds=group.seeds, start=start, monitors=monitors, execution=execution,
                       checkpoint=checkpoint)
        if group.protocol.keeps_clusterings:
            kept.parent.mkdir(parents=True, exist_ok=True)
            result.save(kept)
    if group.labeling is None:
        return result
    labeled = self_label(sample.inputs, result, group.labeling, monitors=[monitors[0], watch], execution=execution,
                         checkpoint=checkpoint.named("labeling"))
    return replace(labeled, history=result.history | labeled.history, seconds=result.seconds | labeled.seconds)


def attempt_pretraining(pretraining: Pretraining, conditions: Conditions, *, stop: Asked = never,
                        tick: Tick = untold) -> Path | Failed | Stopped:
    """Make sure that the encoders are there; the file that holds them."""
    if stop() or over(conditions):
        return Stopped()
    try:
        pretrained(pretraining, conditions, stop=stop, tick=tick)
    except StopTraining:
        return Stopped()
    except Exception as error:
        if isinstance(error, TrainingFailed):
            _checkpoint(conditions, pretraining.key, pretraining.settings.pretraining).remove()
        return Failed(traceback.format_exc())
    return pretrained_path(pretraining, conditions)


def pretrained(pretraining: Pretraining, conditions: Conditions, *, stop: Asked = never, tick: Tick = untold) -> Result:
    """The encoders that groups start from: read where they were trained before, else trained and written."""
    path = pretrained_path(pretraining, conditions)
    if path.is_file():
        return Result.load(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    checkpoint = _checkpoint(conditions, pretraining.key, pretraining.settings.pretraining)
    inputs = pretraining.protocol.sample(pretraining.dataset, conditions.data).inputs
    watch = _Watch(conditions, stop, lambda cost: tick(cost, pretraining.dataset), pretraining.cost)
    with _quietly(conditions):
        result = train(inputs, pretraining.settings, seeds=pretraining.seeds, execution=_execution(pretraining, conditions),
                       monitors=[watch], checkpoint=checkpoint)
    result.save(path)
    checkpoint.remove()
    return result


def pretrained_path(pretraining: Pretraining, conditions: Conditions) -> Path:
    return Path(conditions.work) / "pretrained" / f"{pretraining.key}.reclust"


class _Watch(WithinEpochMonitor):
    """A monitor that counts what was computed, and ends training when time is up or somebody asks."""

    def __init__(self, conditions: Conditions, stop: Asked, tick: Callable[[float], None], *costs: float) -> None:
        """costs: of the phases to come, in their order."""
        self.conditions, self.stop, self.tick, self.costs = conditions, stop, tick, list(costs)
        self.cost_of_epoch = self.counted = 0.0

    def skip(self) -> None:
        """A phase that somebody computed before."""
        self.tick(self.costs.pop(0))

    def __call__(self, snapshot: Snapshot) -> None:
        if snapshot.moment == "start":
            cost = self.costs.pop(0) if self.costs else 0.0
            self.cost_of_epoch, self.counted = cost / max(1, snapshot.epochs), 0.0
            if snapshot.epoch >= 0:  # what a checkpoint brought
                self.tick(self.cost_of_epoch * (snapshot.epoch + 1))
        if snapshot.moment == "epoch":
            self.within(1.0)
            self.counted = 0.0
            if self.stop() or over(self.conditions):
                raise StopTraining

    def within(self, share: float) -> None:
        self.tick(self.cost_of_epoch * (share - self.counted))
        self.counted = share


def over(conditions: Conditions) -> bool:
    return conditions.until is not None and time.time() >= conditions.until


def _checkpoint(conditions: Conditions, key: str, schedule: Any) -> Checkpoint:
    folder = Path(conditions.work) / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    return Checkpoint(folder / f"{key}.reclust", every=max(1, (schedule.epochs if schedule else 1) // 8), seconds=BETWEEN)


def _execution(task: Group | Pretraining, conditions: Conditions) -> Execution:
    return Execution(device=conditions.device, precision=task.precision)


@contextmanager
def _quietly(conditions: Conditions) -> Iterator[None]:
    """With the wanted threads, and without warnings: replicas that fail are reported as failed runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(conditions.threads or before)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReclustWarning)
            yield
    finally:
        torch.set_num_threads(before)


def _label_free(group: Group, result: Result, sample: Sample, conditions: Conditions) -> dict[str, np.ndarray]:
    """What a choice among the runs of a group may go by, (r,) each; the classes are out of sight."""
    if not group.scores:
        return {}
    inputs = as_inputs(sample.inputs).to(choose_device(conditions.device), torch.float32)
    candidates = Candidates(replace(result, history={}), inputs)
    return {name: LABEL_FREE[name](candidates).numpy() for name in group.scores}


def _outcome(group: Group, result: Result, start: Result | None, sample: Sample,
             label_free: dict[str, np.ndarray]) -> Outcome:
    assert result.labels is not None
    arrays = {"labels": result.labels, "centers": result.state["centers"].numpy()}
    if "embeddings" in group.measures:
        shown = sample.classes[shown_rows(len(sample.classes))]
        arrays["shown_classes"] = np.broadcast_to(shown, (len(result), len(shown)))
    scores = _scores(sample.classes, result.labels)
    if sample.held_out is not None:
        inputs = as_inputs(sample.held_out.inputs)
        arrays["test_labels"] = np.stack([result.model(replica).predict(inputs) for replica in range(len(result))])
        trained_on = {f"train_{name}": values for name, values in scores.items()}
        scores = _scores(sample.held_out.classes, arrays["test_labels"]) | trained_on
    seconds, history = dict(result.seconds), dict(result.history)
    if start is not None:
        seconds |= {part: spent * len(result) / len(start) for part, spent in start.seconds.items()}
        rows = [start.seeds.index(seed) for seed in result.seeds]
        history |= {phase: {name: Curve(curve.epochs, curve.values[:, rows]) for name, curve in columns.items()}
                    for phase, columns in start.history.items()}
    return Outcome(
        group=group.key, runs=[run.key for run in group.runs], settings=group.settings, scores=scores | label_free,
        history=thinned(history, group.evaluate_every),
        arrays=arrays, seconds=seconds, provenance={**result.provenance, **_provenance(group, sample)},
        failed={replica: f"The loss stopped being a number in epoch {epoch} of {phase}."
                for replica, (phase, epoch) in result.failed.items()})


def _scores(classes: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """acc, nmi and ari of labels (r, n), (r,) each."""
    scored = [metrics.scores(classes, own) for own in labels]
    names = (("acc", "accuracy"), ("nmi", "nmi"), ("ari", "ari"))
    return {short: np.array([one[name] for one in scored]) for short, name in names}


def thinned(history: History, every: int) -> History:
    """Losses, of which there is one an epoch, at every so many epochs, at the first and last one, and where anything was
    evaluated, so around interventions; all else as it is."""
    return {phase: {name: _at(curve, _kept(columns, every)) if name.endswith("loss") else curve
                    for name, curve in columns.items()} for phase, columns in history.items()}


def _kept(columns: dict[str, Curve], every: int) -> set[int]:
    evaluated = columns["accuracy"].epochs.tolist() if "accuracy" in columns else []
    epochs = columns["loss"].epochs.tolist() if "loss" in columns else []
    return {*evaluated, *epochs[:1], *epochs[-1:], *(epoch for epoch in epochs if (epoch + 1) % every == 0)}


def _at(curve: Curve, epochs: Iterable[int]) -> Curve:
    rows = np.isin(curve.epochs, list(epochs))
    return Curve(curve.epochs[rows], curve.values[rows])


def _provenance(group: Group, sample: Sample) -> dict[str, Any]:
    samples = np.ascontiguousarray(sample.inputs.samples[:: max(1, len(sample.classes) // 1000)])
    own = code_of(group)
    return {
        "commit": commit(), "system": platform.platform(), "replicas": len(group.seeds),
        "scipy": _version("scipy"), "scikit-learn": _version("scikit-learn"),
        "data": {"name": group.dataset, "samples": len(sample.classes),
                 "sha256": hashlib.sha256(samples.tobytes()).hexdigest()},
        **({"own parts": own} if own else {}),
    }


def commit() -> str | None:
    """The commit of the source that runs, marked where the checkout has changes; None outside of a checkout."""
    if COMMIT in os.environ:
        return os.environ[COMMIT]
    here = Path(__file__).parent
    try:
        found = subprocess.run(["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"], cwd=here, text=True,
                               capture_output=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return found or None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
