"""The only training loop in the house; pretraining is the same loop without an objective."""

from __future__ import annotations

import gc
import os
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from .. import draws
from ..data import Prepared
from ..data.inputs import Inputs, as_inputs
from ..utils import tensor_file
from ..utils.device import Precision, choose_device
from ..utils.exceptions import TrainingFailed, warn
from ..utils.files import check_writable
from ..utils.values import check_int
from .checkpoint import Checkpoint, TrainingState
from .engine.batches import Batches, try_augmentation
from .engine.executors import executor_kind
from .engine.firing import sharing
from .engine.replicas import Replicas
from .fingerprint import identity
from .history import Curve, History
from .monitors.base import (
    Deadline,
    Measured,
    Monitor,
    StatefulMonitor,
    check_monitors,
    of_each_replica,
)
from .phase import Phase
from .preflight import try_parts
from .result import Result, group_of, joined, provenance, stacked_result_tensors
from .settings import Execution, Schedule, Settings, one_each


def train(
    data: Inputs | Prepared | Tensor | np.ndarray,
    settings: Settings | Sequence[Settings],
    *,
    seeds: Sequence[int],
    start: Result | None = None,
    monitors: Sequence[Monitor] = (),
    execution: Execution = Execution(),
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
) -> Result:
    """Train one replica for each seed, side by side: pretraining, first centres, clustering.

    data: `Inputs`, a prepared data set, or scaled samples (n, *sample_shape).
    settings: one for all replicas, or one for each; they may differ in the objective's numbers and in the intervention.
    start: a result to go on from instead of pretraining, each replica from the weights trained with its own seed; a result
        of one replica serves all of them.
    checkpoint: written between epochs; if it exists already, the run continues from it. A path stands for `Checkpoint.at` it.

    Replicas that do not fit into a GPU's memory side by side train in groups, one after the other (`Result.groups`).
    """
    if isinstance(seeds, int):
        raise TypeError(f"seeds must be a sequence, one seed for each replica, got {seeds!r}: write [{seeds!r}].")
    check_monitors(monitors)
    if not isinstance(execution, Execution):
        raise TypeError(f"execution must be an Execution, got {execution!r}: write Execution(device='cpu') for a device.")
    seeds = [check_int("each seed", seed, 0) for seed in seeds]
    if max(seeds, default=0) >= 2**63:
        raise ValueError(f"Seeds are below 2**63, got {max(seeds)}.")
    each = one_each(settings, seeds)
    _warn_if_it_never_fires(each)
    device = choose_device(execution.device).type
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(device, enabled=False):  # whatever the caller is in
        return _trained(data, each, seeds, start, monitors, execution, Checkpoint.at(checkpoint))


def _warn_if_it_never_fires(each: Sequence[Settings]) -> None:
    epochs = 0 if each[0].clustering is None else each[0].clustering.epochs
    if epochs and any(settings.intervention is not None and not settings.intervention.fires_within(epochs) for settings in each):
        warn(f"The intervention never fires within epochs={epochs}: train longer, choose a shorter interval, or use "
             "intervention=None to say that you want none.")


def _trained(data: Inputs | Prepared | Tensor | np.ndarray, each: list[Settings], seeds: Sequence[int],
             start: Result | None, monitors: Sequence[Monitor], execution: Execution, checkpoint: Checkpoint | None, *,
             is_partial_group: bool = False) -> Result:
    """All replicas side by side, or in groups where memory is short."""
    begun = time.monotonic()
    arithmetic = Precision.choose(choose_device(execution.device), execution.precision)
    inputs = as_inputs(data).to(arithmetic.device, arithmetic.dtype)
    try:
        replicas = _created(inputs, each, seeds, start, arithmetic)
        return Run(replicas, inputs, each, monitors, execution, arithmetic, checkpoint, start, is_partial_group,
                   {} if start is None else _failed_before(replicas, start)).run()
    except torch.OutOfMemoryError as error:
        if len(seeds) == 1:
            raise TrainingFailed(
                f"One replica for samples of shape {inputs.sample_shape} needs more memory than {arithmetic.device} has: take "
                "smaller samples (of a folder of images read(…, size=(64, 64)), on the command line --size 64 64), a smaller "
                "network or batch_size, or another device.") from error
    gc.collect()  # a phase and its captured steps refer to each other
    torch.cuda.empty_cache()
    half = len(seeds) // 2
    warn(f"{len(seeds)} replicas do not fit into the memory of {arithmetic.device} side by side: they train in groups "
         f"of {half} and {len(seeds) - half}, one after the other.")
    parts = []
    for part in (slice(half), slice(half, None)):
        parts.append(_trained(
            inputs, each[part], seeds[part], start if start is None or start.seeds != tuple(seeds) else start.only(part),
            monitors, execution.since(begun), None if checkpoint is None else checkpoint.of(part, seeds),
            is_partial_group=True,
        ))
    result = joined(*parts)
    if len(result.failed) == len(result) and not is_partial_group:
        raise TrainingFailed("The loss of every replica stopped being a number: try a smaller lr, and check the scale of the "
                             "data.")
    return result


def _created(inputs: Inputs, each: Sequence[Settings], seeds: Sequence[int], start: Result | None,
             arithmetic: Precision) -> Replicas:
    """Replicas as training finds them; raises what would go wrong later."""
    first = each[0]
    if inputs.n_samples < first.n_clusters:
        raise ValueError(f"n_clusters={first.n_clusters} needs at least {first.n_clusters} samples, X has {inputs.n_samples}.")
    replicas = Replicas.create(first.representation, inputs.sample_shape, first.n_clusters, seeds=seeds,
                               device=arithmetic.device, dtype=arithmetic.dtype)
    for which, intervention in sharing(each):
        intervention.check(replicas.blocks(which))
    for augment in first.augmentations:
        try_augmentation(augment, inputs)
    for schedule in (first.pretraining, first.clustering):
        if schedule is not None:
            Batches(inputs, schedule, first.augment).check(replicas.net)
    try_parts(replicas, each, inputs, pretrains=start is None and first.pretraining is not None)
    if start is not None:
        if first.clustering is None:
            raise ValueError("There is nothing to do: start has been pretrained, and settings.clustering is None.")
        _adopt(replicas, start)
    if first.first_centers is None and (start is None or start.n_clusters != first.n_clusters):
        found = "there is none" if start is None else f"it has {start.n_clusters or 'none'}"
        raise ValueError(f"first_centers=None takes the {first.n_clusters} centres from start, but {found}.")
    return replicas


def _adopt(replicas: Replicas, start: Result) -> None:
    rows = _rows(replicas, start)
    for own, given in ((replicas.parameters, start.parameters), (replicas.buffers, start.buffers)):
        if {name: tuple(t.shape[1:]) for name, t in own.items()} != {name: tuple(t.shape[1:]) for name, t in given.items()}:
            raise ValueError("start comes from another architecture: its weights have other names or shapes. An autoencoder's "
                             "embedding has as many numbers as there are clusters, unless both say Autoencoder(embedding=10).")
        for name, tensor in own.items():
            tensor.copy_(given[name][rows])


def _rows(replicas: Replicas, start: Result) -> Tensor:
    """Which replica of `start` each of these goes on from: the one of its own seed, or the only one."""
    if len(start) == 1:
        return torch.zeros(len(replicas), dtype=torch.int64)
    if start.seeds == replicas.seeds:  # one of them may be there more than once, in runs of several variants
        return torch.arange(len(replicas))
    wrong = [seed for seed in replicas.seeds if start.seeds.count(seed) != 1]
    if wrong:
        has = "no replica" if wrong[0] not in start.seeds else "several replicas"
        raise ValueError(f"start has {has} with seed {wrong[0]}; its seeds are {', '.join(map(str, start.seeds))}: give "
                         "it one of them to go on from, start.only(0), or train with its seeds.")
    return torch.tensor([start.seeds.index(seed) for seed in replicas.seeds])


def _failed_before(replicas: Replicas, start: Result) -> dict[int, tuple[str, int]]:
    return {own: start.failed[row] for own, row in enumerate(_rows(replicas, start).tolist()) if row in start.failed}


@dataclass
class Run:
    """One call of `train`: replicas, and what is learned about them on the way."""

    replicas: Replicas
    inputs: Inputs
    settings: list[Settings]
    monitors: Sequence[Monitor]
    execution: Execution
    arithmetic: Precision
    checkpoint: Checkpoint | None
    start: Result | None
    is_partial_group: bool = False
    """Whether other replicas train in other groups, which may go on where all of these fail."""
    failed: dict[int, tuple[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    columns: dict[tuple[str, str], list[tuple[int, np.ndarray]]] = field(default_factory=lambda: defaultdict(list))
    _written: float = field(default_factory=time.monotonic)

    def run(self) -> Result:
        deadline = Deadline(self.execution.time_budget)
        common = self.settings[0]
        resumed = self._resume()
        if self.arithmetic.products != self.arithmetic.dtype:
            self.replicas.work_in(self.arithmetic.products)
        if common.pretraining is not None and self.start is None and (resumed is None or resumed.phase == "pretraining"):
            if not Phase(self, "pretraining", common.pretraining, resumed).run(deadline):
                self.checkpoint = None  # the one just written must stay: clustering from here is not what would have been
            resumed = None
        labels = None
        if common.clustering is not None:
            if resumed is None:
                self._first_centers()
            clustering = Phase(self, "clustering", common.clustering, resumed)
            clustering.run(deadline)
            z = clustering.inspection.embed()
            # Weights may be finite and still too large for the embeddings to be.
            wrong = np.where(z.isfinite().all(-1).all(-1).cpu().numpy(), 0.0, np.nan)
            self.drop_failed(clustering.called, clustering.trained - 1, wrong, common.clustering)
            labels = clustering.inspection.assign(z).cpu().numpy()
        return self._result(labels)

    def _first_centers(self) -> None:
        """Take the first centres from the embeddings, and the objectives' first state from those."""
        find = self.settings[0].first_centers
        if find is None:
            self._keep_state()
            return
        looking = Phase(self, "first centers", Schedule(epochs=0), None)
        with torch.no_grad():
            width = looking.inspection.embed(self.replicas.key.new_zeros(len(self.replicas), 1)).shape[-1]
            centers = torch.zeros(len(self.replicas), self.settings[0].n_clusters, width,
                                  dtype=looking.dtype, device=self.inputs.device)
            with looking.clock(find.part):
                find(looking.intervening.target(slice(None), centers))
            self.replicas.start_objectives([settings.objective for settings in self.settings], centers)
        looking.keep_time()

    def _keep_state(self) -> None:
        """Go on with what the objectives of `start` kept; what the new ones need beside it begins from its centres."""
        assert self.start is not None
        rows, like = _rows(self.replicas, self.start), next(iter(self.replicas.parameters.values()))
        known = {name: stack[rows].to(like.device, like.dtype if stack.is_floating_point() else None)
                 for name, stack in self.start.state.items()}
        objectives = [settings.objective for settings in self.settings]
        self.replicas.start_objectives(objectives, known["centers"])
        self.replicas.set_objectives(objectives, {name: known.get(name, own) for name, own in self.replicas.state.items()})

    def record(self, phase: str, epoch: int, measured: Measured) -> dict[str, np.ndarray]:
        """What the history then has of it."""
        made = {}
        for column, values in measured.items():
            points = self.columns[phase, column]
            if points and points[-1][0] == epoch:  # of two monitors that measure the same, the later one is heard
                points.pop()
            made[column] = of_each_replica(column, values, len(self.replicas), [before for _, before in points[:1]])
            points.append((epoch, made[column]))
        return made

    @property
    def history(self) -> History:
        history: History = {}
        for (phase, column), points in self.columns.items():
            epochs, values = zip(*points, strict=True)
            history.setdefault(phase, {})[column] = Curve(np.array(epochs), np.stack(values))
        return history

    def drop_failed(self, phase: str, epoch: int, loss: np.ndarray, schedule: Schedule) -> None:
        """Replicas do not influence each other, but for `Exchange`, so one whose loss is not a number is left to itself and not
        counted."""
        for replica in np.flatnonzero(~np.isfinite(loss)):
            if int(replica) not in self.failed:
                self.failed[int(replica)] = (phase, epoch)
                warn(f"The loss of the replica with seed {self.replicas.seeds[replica]} became {loss[replica]} in epoch "
                     f"{epoch} of {phase}: it is dropped. Try a smaller lr (now {schedule.lr:g}) or a smaller clip_norm, "
                     "and check the scale of the data.")
        if len(self.failed) == len(self.replicas) and not self.is_partial_group:
            raise TrainingFailed(
                f"The loss of every replica stopped being a number; the last one in epoch {epoch} of {phase}. "
                f"Try a smaller lr (now {schedule.lr:g}), and check the scale of the data."
            )

    def keep_progress(self, phase: Phase, next_epoch: int) -> None:
        """Write a checkpoint, unless the last one is too young."""
        if self.checkpoint is not None and time.monotonic() - self._written >= self.checkpoint.seconds:
            self.write_checkpoint(phase, next_epoch)

    def write_checkpoint(self, phase: Phase, next_epoch: int) -> None:
        if self.checkpoint is not None:
            self._written = time.monotonic()
            notes = {whose: monitor.memory for whose, monitor in self._remembering.items()} | phase.intervening.notes
            memory = {f"{whose}/{name}": _remembered(whose, name, tensor)
                      for whose, own in notes.items() for name, tensor in own.items()}
            TrainingState(
                phase.name, next_epoch, stacked_result_tensors(self.replicas), phase.optimizer.tensors(),
                memory, self.history, {**self.seconds, **phase.seconds()}, self.failed,
            ).write(self.checkpoint, self._identity, self.replicas.seeds, self.settings)

    @property
    def _remembering(self) -> dict[str, StatefulMonitor]:
        """By kind and position: whoever is not there when a run goes on leaves nothing to the others."""
        return {f"{type(monitor).__qualname__} {i}": monitor for i, monitor in enumerate(self.monitors)
                if isinstance(monitor, StatefulMonitor)}

    @cached_property
    def _identity(self) -> str:
        kind = executor_kind(self.replicas, self.execution.executor)
        start = self.start
        started = None if start is None else (start.seeds, start.parameters, start.buffers, start.state)
        # Data that stays in a file is visited in another order, so that reading stays local.
        order = self.inputs.order(draws.key(0, device=self.inputs.device))[:1000]
        return identity(self.inputs, self.settings, self.replicas.seeds, kind, self.arithmetic.precision, started, order)

    def _resume(self) -> TrainingState | None:
        if self.checkpoint is None:
            return None
        check_writable(self.checkpoint.path)
        if not self.checkpoint.exists():
            return None
        progressed = TrainingState.read(self.checkpoint, self._identity)
        with tensor_file.explain_errors(self.checkpoint.path):
            self._adopt_progress(progressed)
        return progressed

    def _adopt_progress(self, progressed: TrainingState) -> None:
        progressed.adopt_(self.replicas.parameters, "parameters")
        progressed.adopt_(self.replicas.buffers, "buffers")
        if progressed.phase == "clustering":
            kept = progressed.tensors["state"]
            objectives = [settings.objective for settings in self.settings]
            if kept["centers"].shape[:2] != (len(self.replicas), self.settings[0].n_clusters):
                raise ValueError(f"it has centres of shape {tuple(kept['centers'].shape)}.")
            self.replicas.start_objectives(objectives, kept["centers"].to(self.inputs.device))
            progressed.adopt_(self.replicas.state, "state")
        for whose, monitor in self._remembering.items():
            monitor.memory = group_of(progressed.memory, whose)
        self.failed, self.seconds = progressed.failed, progressed.seconds
        for phase, columns in progressed.history.items():
            for column, curve in columns.items():
                self.columns[phase, column] = list(zip(curve.epochs.tolist(), curve.values, strict=True))

    def _result(self, labels: np.ndarray | None) -> Result:
        return Result(
            settings=self.settings, seeds=self.replicas.seeds, sample_shape=self.inputs.sample_shape,
            **stacked_result_tensors(self.replicas), labels=labels, history=self.history, seconds=self.seconds,
            failed=self.failed, provenance={**provenance(self.inputs.device), "precision": self.arithmetic.precision},
        )


def _remembered(whose: str, name: str, tensor: object) -> Tensor:
    """What a monitor or an intervention remembers, as a checkpoint keeps it: clones, since no file takes one tensor twice."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{whose} remembers {name!r} as a {type(tensor).__name__}: checkpoints keep a memory of tensors, "
                        f"such as torch.as_tensor({name}).")
    return tensor.clone()
