"""`train`: the entry point to training, with one replica per seed."""

import gc
import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import reduce

import numpy as np
import torch
from torch import Tensor

from ..data import Prepared
from ..data.inputs import Inputs, as_inputs
from ..utils.device import Precision, choose_device
from ..utils.exceptions import TrainingFailed, warn
from ..utils.threads import threads_for
from ..utils.values import check_int
from .checkpoint import Checkpoint
from .context import RunContext
from .engine.ranks import Ranks, all_ranks
from .engine.replicas import Replicas
from .fingerprint import fingerprint
from .monitors.base import Monitor
from .result import Result, concatenate
from .run import create_replicas, run
from .settings import Execution, Settings, settings_per_replica


def train(data: Inputs | Prepared | Tensor | np.ndarray, settings: Settings | Sequence[Settings],
          *, seeds: Sequence[int], start: Result | None = None, monitors: Sequence[Monitor] = (),
          execution: Execution = Execution(),
          checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
          targets: Tensor | np.ndarray | None = None) -> Result:
    """Pretrain, find the first centers and cluster, with one replica per seed side by side.

    Replicas that do not fit into GPU memory together train in groups (see `Result.groups`).

    Parameters
    ----------
    data : Inputs, Prepared, Tensor or ndarray of shape (n_samples, *sample_shape)
        Scaled samples, or a prepared data set.
    settings : Settings or sequence of Settings
        One for all or one per seed, which may differ in interventions and floats of the objective.
    seeds : sequence of int
        One per replica. A replica gives the same result alone and next to others.
    start : Result or None, default=None
        Continue from the weights of its replica with the same seed, or of its only replica.
    monitors : sequence of Monitor, default=()
        Called at the start, after each intervention and after each epoch.
    execution : Execution, default=Execution()
        Device, precision and time budget.
    checkpoint : Checkpoint, path-like or None, default=None
        Saves the training state between epochs. If the file exists, the run continues from it.
    targets : Tensor or ndarray of shape (n_samples, ...), optional
        What clustering should learn, such as soft labels; ``objective.loss`` gets those of a batch
        as its third argument.

    Examples
    --------
    >>> import numpy as np
    >>> from reclust import BRB, Autoencoder, IDECObjective, Schedule, Settings, train
    >>> X = np.random.default_rng(0).normal(size=(60, 5)).astype("float32")
    >>> settings = Settings(3, IDECObjective(), Autoencoder((8,)), intervention=BRB(2),
    ...                     pretraining=Schedule(2), clustering=Schedule(4))
    >>> train(X, settings, seeds=[0, 1, 2]).labels.shape
    (3, 60)
    """
    seeds = [check_int("each seed", seed, 0) for seed in seeds]
    per_replica = settings_per_replica(settings, seeds)
    _warn_if_never_firing(per_replica)
    if start is not None:
        start = start.only(_rows_of_start(start, seeds))
    no_autocast = torch.autocast(choose_device(execution.device).type, enabled=False)
    with (torch.inference_mode(False), torch.enable_grad(), no_autocast,  # not the caller's modes
          all_ranks() as ranks):
        return _train_or_split(data, per_replica, seeds, start, monitors, execution,
                               Checkpoint.at(checkpoint), targets, ranks)


def _threads(replicas: Replicas, settings: Settings) -> AbstractContextManager[None]:
    layer = max(replicas.parameters.values(), key=lambda weights: weights[0].numel())
    schedule = settings.clustering or settings.pretraining
    if layer.device.type != "cpu" or layer.ndim < 3 or schedule is None:
        return nullcontext()
    positions = 1 if layer.ndim == 3 else 64  # that a convolution visits, at least
    return threads_for(layer.numel() * schedule.batch_size * positions)


def _rows_of_start(start: Result, seeds: Sequence[int]) -> list[int]:
    """For each seed, the replica of `start` with the same seed, or the only one."""
    if len(start) == 1:
        return [0] * len(seeds)
    if start.seeds == tuple(seeds):  # variants that share a seed are matched by position
        return list(range(len(seeds)))
    for seed in seeds:
        if start.seeds.count(seed) != 1:
            raise ValueError(f"start has {start.seeds.count(seed)} replicas with seed {seed}: use "
                             f"its seeds {start.seeds}, or one replica, as in start.only(0).")
    return [start.seeds.index(seed) for seed in seeds]


def _warn_if_never_firing(settings: Sequence[Settings]) -> None:
    epochs = 0 if settings[0].clustering is None else settings[0].clustering.epochs
    interventions = [item.intervention for item in settings if item.intervention is not None]
    if epochs and not all(intervention.fires_within(epochs) for intervention in interventions):
        warn(f"The intervention never fires within epochs={epochs}: train longer, choose a shorter "
             "interval, or set intervention=None.")


def _train_or_split(data: Inputs | Prepared | Tensor | np.ndarray, settings: list[Settings],
                    seeds: Sequence[int], start: Result | None, monitors: Sequence[Monitor],
                    execution: Execution, checkpoint: Checkpoint | None,
                    targets: Tensor | np.ndarray | None, ranks: Ranks, *,
                    is_partial_group: bool = False) -> Result:
    """Train all replicas side by side, or in groups: one per rank, or halves if memory is short."""
    started = time.monotonic()
    precision = Precision.choose(choose_device(execution.device), execution.precision)
    inputs = as_inputs(data).to(precision.device, precision.dtype)
    if targets is not None:
        targets = torch.as_tensor(targets, dtype=precision.dtype, device=precision.device)

    def train_group(part: slice, ranks: Ranks = ranks) -> Result:
        return _train_or_split(
            inputs, settings[part], seeds[part], None if start is None else start.only(part),
            ranks.observing(monitors), execution.with_time_left(started),
            checkpoint and checkpoint.for_group(part, seeds), targets, ranks, is_partial_group=True)

    if ranks.size > 1:
        apart = ranks.size <= len(seeds) and not any(
            item.intervention.compares_replicas for item in settings if item.intervention)
        schedules = filter(None, () if apart else (settings[0].pretraining, settings[0].clustering))
        ends = inputs.take(torch.tensor([0, inputs.n_samples - 1], device=inputs.device))
        ranks.check((type(inputs).__name__, inputs.n_samples, fingerprint(ends), list(seeds)),
                    [min(schedule.batch_size, inputs.n_samples) for schedule in schedules])
        if apart:
            own = train_group(ranks.part(len(seeds)), Ranks(ranks.group, apart=True))
            groups = ranks.gather(replace(own, settings=[]))  # which may not be picklable
            return _checked(replace(reduce(concatenate, groups), settings=settings))
    try:
        replicas = create_replicas(inputs, settings, seeds, start, precision, targets)
        context = RunContext(replicas, inputs, settings, monitors, execution, precision, start,
                             is_partial_group, targets, ranks)
        with _threads(replicas, settings[0]):
            return run(context, checkpoint)
    except torch.OutOfMemoryError as error:
        if ranks.size > 1:
            raise
        if len(seeds) == 1:
            raise TrainingFailed(
                f"One replica for samples of shape {inputs.sample_shape} does not fit into the "
                "memory: use smaller samples (size=(64, 64), --size 64 64) or a smaller network."
            ) from error
    replicas = context = None  # type: ignore[assignment]
    gc.collect()  # a phase and its captured steps form a reference cycle
    torch.cuda.empty_cache()
    half = len(seeds) // 2
    warn(f"{len(seeds)} replicas do not fit into the memory of {precision.device} side by side: "
         f"they train in groups of {half} and {len(seeds) - half}, one after the other.")
    result = concatenate(train_group(slice(half)), train_group(slice(half, None)))
    return result if is_partial_group else _checked(result)


def _checked(result: Result) -> Result:
    if len(result.failed) == len(result):
        raise TrainingFailed("The loss of every replica stopped being finite: try a smaller lr, "
                             "and check the scale of the data.")
    return result
