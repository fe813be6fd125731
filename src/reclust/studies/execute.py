"""Training of one group, from its data to its outcome, in whichever process a backend chooses."""

import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ..data import DataError
from ..data.inputs import as_inputs
from ..data.sets.download import data_folder
from ..ensemble.selection import Candidates
from ..training.checkpoint import Checkpoint
from ..training.monitors.analysis import Extremes, FinalKMeans
from ..training.monitors.base import Monitor, Snapshot
from ..training.monitors.evaluation import Evaluation
from ..training.result import Result
from ..training.self_label import self_label
from ..training.settings import Execution
from ..training.train import train
from ..utils.device import choose_device
from ..utils.exceptions import ReclustWarning, StopTraining, TrainingFailed
from ..utils.values import integer, value
from .measures import LABEL_FREE, MEASURES
from .outcome import make_outcome
from .protocols import Sample
from .store.store import Outcome
from .study import Group, Pretraining

CHECKPOINT_SECONDS = 120.0  # at least: forty stacked replicas fill more than a gigabyte


@value
class Conditions:
    """Place and resources of a computation, which do not change the keys of runs.

    Parameters
    ----------
    work, data
        Folders for shared pretraining and checkpoints, and with data sets (None: the default).
    device, threads
        "auto" takes a GPU if there is one; threads of torch on a CPU, None for its default.
    until
        Time at which to stop, in seconds since the epoch.
    """

    work: str
    data: str | None = None
    device: str = "auto"
    until: float | None = None
    threads: int | None = integer(default=None, least=1, optional=True)

    def __post_init__(self) -> None:
        if self.data is not None and not data_folder(self.data).is_dir():
            raise DataError(f"There is no folder {self.data} to look for data sets in.")

    @property
    def out_of_time(self) -> bool:
        return self.until is not None and time.time() >= self.until


@dataclass(frozen=True)
class Failed:
    error: str


@dataclass(frozen=True)
class Stopped:
    """A task that was stopped, or not started; its checkpoint is on disk."""


Task = Pretraining | Group
Attempt = Outcome | Path | Failed | Stopped
Tick = Callable[[float, str], None]  # takes the cost just computed, and the data set
StopRequested = Callable[[], bool]


def attempt(task: Task, conditions: Conditions, *, stop: StopRequested = lambda: False,
            tick: Tick = lambda cost, dataset: None) -> Attempt:
    """Train and score a group, or train encoders and return their file; never raise."""
    if stop() or conditions.out_of_time:
        return Stopped()
    try:
        if isinstance(task, Group):
            return _run_group(task, conditions, stop, tick)
        pretrained(task, conditions, stop=stop, tick=tick)
        return pretrained_path(task, conditions)
    except StopTraining:
        return Stopped()
    except Exception as error:
        if isinstance(error, TrainingFailed):  # continuing would fail again
            checkpoint_of(task, conditions).remove()
        return Failed(traceback.format_exc())


class _Watch:
    """Monitor that reports the cost of each epoch, and stops training on request."""

    def __init__(self, conditions: Conditions, stop: StopRequested,
                 report: Callable[[float], None], *phase_costs: float) -> None:
        self.conditions, self.stop, self.report = conditions, stop, report
        self.phase_costs = list(phase_costs)
        self.epoch_cost = 0.0

    def __call__(self, snapshot: Snapshot) -> None:
        if snapshot.moment == "start":
            cost = self.phase_costs.pop(0) if self.phase_costs else 0.0
            self.epoch_cost = cost / max(1, snapshot.epochs)
            if snapshot.epoch >= 0:  # continued from a checkpoint
                self.report(self.epoch_cost * (snapshot.epoch + 1))
        if snapshot.moment == "epoch":
            self.report(self.epoch_cost)
            if self.stop() or self.conditions.out_of_time:
                raise StopTraining


def _run_group(group: Group, conditions: Conditions, stop: StopRequested, tick: Tick) -> Outcome:
    start = None if group.pretraining is None else pretrained(
        group.pretraining, conditions, stop=stop, tick=tick)
    sample = group.protocol.sample(group.dataset, conditions.data)
    with _quiet(conditions):
        watch = _Watch(conditions, stop, lambda cost: tick(cost, group.dataset), *group.stage_costs)
        result, label_free = _cluster(group, start, sample, conditions, watch), {}
        if group.scores:
            began = time.perf_counter()
            inputs = as_inputs(sample.inputs).to(choose_device(conditions.device), torch.float32)
            candidates = Candidates(replace(result, history={}), inputs)
            label_free = {name: LABEL_FREE[name](candidates).numpy() for name in group.scores}
            seconds = {**result.seconds, "selection": time.perf_counter() - began}
            result = replace(result, seconds=seconds)
        return make_outcome(group, result, start, sample, label_free)


def _cluster(group: Group, start: Result | None, sample: Sample, conditions: Conditions,
             watch: _Watch) -> Result:
    """Cluster and self-label; some protocols keep the clustering for other studies."""
    checkpoint = checkpoint_of(group, conditions)
    execution = Execution(conditions.device, group.precision)
    file = Path(conditions.work) / "clustered" / f"{group.clustering}.reclust"
    evaluation = Evaluation(sample.classes, every=group.evaluate_every)
    if file.is_file():
        result = Result.load(file)
        watch.report(watch.phase_costs.pop(0))
    else:
        measures = [MEASURES[name](sample.classes, group.evaluate_every) for name in group.measures]
        at_end = [Extremes(), FinalKMeans(sample.classes)]
        monitors: list[Monitor] = [evaluation, *at_end, *measures, watch]
        result = train(sample.inputs, group.settings, seeds=group.seeds, start=start,
                       monitors=monitors, execution=execution, checkpoint=checkpoint)
        if group.protocol.keeps_clusterings:
            file.parent.mkdir(parents=True, exist_ok=True)
            result.save(file)
    if group.labeling is None:
        return result
    labeled = self_label(sample.inputs, result, group.labeling, monitors=[evaluation, watch],
                         execution=execution, checkpoint=checkpoint.named("labeling"))
    return replace(labeled, history=result.history | labeled.history,
                   seconds=result.seconds | labeled.seconds)


def pretrained(pretraining: Pretraining, conditions: Conditions, *,
               stop: StopRequested = lambda: False,
               tick: Tick = lambda cost, dataset: None) -> Result:
    path = pretrained_path(pretraining, conditions)
    if path.is_file():
        return Result.load(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    checkpoint = checkpoint_of(pretraining, conditions)
    inputs = pretraining.protocol.sample(pretraining.dataset, conditions.data).inputs
    watch = _Watch(conditions, stop, lambda cost: tick(cost, pretraining.dataset), pretraining.cost)
    with _quiet(conditions):
        result = train(inputs, pretraining.settings, seeds=pretraining.seeds, monitors=[watch],
                       execution=Execution(conditions.device, pretraining.precision),
                       checkpoint=checkpoint)
    result.save(path)
    checkpoint.remove()
    return result


def pretrained_path(pretraining: Pretraining, conditions: Conditions) -> Path:
    return Path(conditions.work) / "pretrained" / f"{pretraining.key}.reclust"


def checkpoint_of(task: Task, conditions: Conditions) -> Checkpoint:
    """Return the checkpoint of a task, to be removed once its result is stored."""
    folder = Path(conditions.work) / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    schedule = (task.settings[0].clustering if isinstance(task, Group)
                else task.settings.pretraining)
    every = max(1, (schedule.epochs if schedule else 1) // 8)
    return Checkpoint(folder / f"{task.key}.reclust", every=every, seconds=CHECKPOINT_SECONDS)


@contextmanager
def _quiet(conditions: Conditions) -> Iterator[None]:
    """Set the number of threads, and silence warnings: failed replicas become failed runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(conditions.threads or before)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReclustWarning)
            yield
    finally:
        torch.set_num_threads(before)
