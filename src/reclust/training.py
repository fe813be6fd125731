"""The only training loop in the house; pretraining is the same loop without an objective."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from . import draws
from .checkpoint import Checkpoint, Progressed, identity, optimizer_tensors, restore_optimizer_
from .clock import Clock
from .data.inputs import Inputs, as_inputs
from .exceptions import ReclustWarning, TrainingFailed
from .interventions import Intervention, Target
from .monitors import Deadline, Measured, Monitor, Snapshot
from .objectives import Objective, State
from .replicas import Captured, Replicas, make_executor, tensor_cores
from .result import Curve, History, Result, provenance, stacked_result_tensors
from .settings import Execution, Schedule, Settings, one_each

CHUNK = 4096
"""Samples embedded at once."""
BLOCK = (2**18, 2**26)
"""Numbers gathered and augmented at once, on a CPU (where they should stay in the cache) and on a GPU."""


def train(
    data: Inputs | Tensor | np.ndarray,
    settings: Settings | Sequence[Settings],
    *,
    seeds: Sequence[int],
    start: Result | None = None,
    monitors: Sequence[Monitor] = (),
    execution: Execution = Execution(),
    checkpoint: Checkpoint | None = None,
) -> Result:
    """Train one replica for each seed, side by side: pretraining, first centres, clustering.

    data: `Inputs`, or scaled samples (n, *sample_shape).
    settings: one for all replicas, or one for each; they may differ in the objective's numbers and in the intervention.
    start: a result to go on from instead of pretraining, each replica from the weights trained with its own seed.
    checkpoint: written between epochs; if it exists already, the run continues from it.
    """
    each = one_each(settings, seeds)
    device, dtype = choose_device(execution.device), getattr(torch, execution.precision)
    inputs = as_inputs(data).to(device, dtype)
    if inputs.n_samples < each[0].n_clusters:
        raise ValueError(
            f"n_clusters={each[0].n_clusters} needs at least {each[0].n_clusters} samples, X has {inputs.n_samples}."
        )
    replicas = Replicas.create(
        each[0].representation, inputs.sample_shape, each[0].n_clusters, seeds=seeds, device=device, dtype=dtype
    )
    if start is not None:
        _adopt(replicas, start)
    return _Run(replicas, inputs, each, monitors, execution, checkpoint).run(pretrained=start is not None)


def choose_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device={name!r} cannot be used here ({str(error).splitlines()[0]}). "
                         "Use 'cpu', or 'auto' for a GPU where there is one.") from error
    return device


def _adopt(replicas: Replicas, start: Result) -> None:
    missing = [seed for seed in replicas.seeds if seed not in start.seeds]
    if missing:
        raise ValueError(f"start has no replica with seed {missing[0]}; it has {', '.join(map(str, start.seeds))}.")
    rows = torch.tensor([start.seeds.index(seed) for seed in replicas.seeds])
    for own, given in ((replicas.parameters, start.parameters), (replicas.buffers, start.buffers)):
        if {name: tuple(t.shape[1:]) for name, t in own.items()} != {name: tuple(t.shape[1:]) for name, t in given.items()}:
            raise ValueError("start comes from another architecture: its weights have other names or shapes.")
        for name, tensor in own.items():
            tensor.copy_(given[name][rows])


@dataclass
class _Run:
    """One call of `train`: replicas, and what is learned about them on the way."""

    replicas: Replicas
    inputs: Inputs
    settings: list[Settings]
    monitors: Sequence[Monitor]
    execution: Execution
    checkpoint: Checkpoint | None
    failed: dict[int, tuple[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    columns: dict[tuple[str, str], list[tuple[int, np.ndarray]]] = field(default_factory=lambda: defaultdict(list))

    def run(self, *, pretrained: bool) -> Result:
        deadline = Deadline(self.execution.time_budget)
        common = self.settings[0]
        resumed = self._resume()
        if common.pretraining is not None and not pretrained and (resumed is None or resumed.phase == "pretraining"):
            _Phase(self, "pretraining", common.pretraining, resumed).run(deadline)
            resumed = None
        labels = None
        if common.clustering is not None:
            if resumed is None:
                self._first_centers()
            clustering = _Phase(self, "clustering", common.clustering, resumed)
            clustering.run(deadline)
            labels = clustering.assign(clustering.embed()).cpu().numpy()
        return self._result(labels)

    def _first_centers(self) -> None:
        """Take the first centres from the embeddings, and the objectives' first state from those."""
        looking = _Phase(self, "clustering", Schedule(epochs=0), None)
        with torch.no_grad():
            width = looking.embed(self.replicas.key.new_zeros(len(self.replicas), 1)).shape[-1]
            centers = torch.zeros(len(self.replicas), self.settings[0].n_clusters, width,
                                  dtype=looking.dtype, device=self.inputs.device)
            with looking.clock("first centers"):
                self.settings[0].first_centers(looking.target(slice(None), centers).at("first centers"))
            objectives = [settings.objective for settings in self.settings]
            states = [objective.init(own) for objective, own in zip(objectives, centers, strict=True)]
        self.replicas.set_objectives(objectives, {name: torch.stack([s[name] for s in states]) for name in states[0]})
        looking.keep_time()

    def record(self, phase: str, epoch: int, measured: Measured) -> None:
        for column, values in measured.items():
            self.columns[phase, column].append((epoch, np.asarray(values)))

    @property
    def history(self) -> History:
        history: History = {}
        for (phase, column), points in self.columns.items():
            epochs, values = zip(*points, strict=True)
            history.setdefault(phase, {})[column] = Curve(np.array(epochs), np.stack(values))
        return history

    def drop_failed(self, phase: str, epoch: int, loss: np.ndarray, schedule: Schedule) -> None:
        """Replicas do not influence each other, so one whose loss is not a number is left to itself and not counted."""
        for replica in np.flatnonzero(~np.isfinite(loss)):
            if int(replica) not in self.failed:
                self.failed[int(replica)] = (phase, epoch)
                warnings.warn(
                    f"The loss of the replica with seed {self.replicas.seeds[replica]} became {loss[replica]} in epoch "
                    f"{epoch} of {phase}: it is dropped. Try a smaller lr (now {schedule.lr:g}) or a smaller clip_norm, "
                    "and check the scale of the data.",
                    ReclustWarning, stacklevel=5,
                )
        if len(self.failed) == len(self.replicas):
            raise TrainingFailed(
                f"The loss of every replica stopped being a number; the last one in epoch {epoch} of {phase}. "
                f"Try a smaller lr (now {schedule.lr:g}), and check the scale of the data."
            )

    def write_checkpoint(self, phase: _Phase, next_epoch: int) -> None:
        if self.checkpoint is not None:
            Progressed(phase.name, next_epoch, stacked_result_tensors(self.replicas), optimizer_tensors(phase.optimizer),
                       self.history, {**self.seconds, **phase.seconds()}, self.failed).write(self.checkpoint, self._identity())

    def _identity(self) -> str:
        return identity(self.settings, self.replicas.seeds, self.inputs)

    def _resume(self) -> Progressed | None:
        if self.checkpoint is None or not self.checkpoint.exists():
            return None
        progressed = Progressed.read(self.checkpoint, self._identity())
        for own, kept in ((self.replicas.parameters, "parameters"), (self.replicas.buffers, "buffers")):
            for name, tensor in own.items():
                tensor.copy_(progressed.tensors[kept][name])
        if progressed.tensors["state"]:
            state = {name: tensor.to(self.inputs.device) for name, tensor in progressed.tensors["state"].items()}
            self.replicas.set_objectives([settings.objective for settings in self.settings], state)
        self.failed, self.seconds = progressed.failed, progressed.seconds
        for phase, columns in progressed.history.items():
            for column, curve in columns.items():
                self.columns[phase, column] = list(zip(curve.epochs.tolist(), curve.values, strict=True))
        return progressed

    def _result(self, labels: np.ndarray | None) -> Result:
        return Result(
            settings=self.settings, seeds=self.replicas.seeds, sample_shape=self.inputs.sample_shape,
            **stacked_result_tensors(self.replicas), labels=labels, history=self.history, seconds=self.seconds,
            failed=self.failed, provenance=provenance(self.inputs.device),
        )


class _Phase:
    """One pass of the loop over its epochs: pretraining (no objective) or clustering."""

    def __init__(self, run: _Run, name: str, schedule: Schedule, resumed: Progressed | None) -> None:
        self.owner, self.name, self.schedule = run, name, schedule
        self.replicas, self.inputs = run.replicas, run.inputs
        self.executor = make_executor(run.replicas, run.execution.executor)
        self.dtype = self.executor.leaves[0].dtype
        self.clock = Clock(run.inputs.device)
        self.key = draws.fold(run.replicas.key, name)
        self.augment = run.settings[0].augment
        self.views = schedule.views if self.augment is not None else ("clean",)
        self.batch_size = min(schedule.batch_size, run.inputs.n_samples)
        self.numbers = math.prod(run.inputs.sample_shape)
        self.interventions = [
            (slice(members[0], members[-1] + 1), intervention) for intervention, members in _runs_of_equals(run.settings)
            if intervention is not None and name == "clustering"
        ]
        learned = [leaf for leaves in run.replicas.state_leaves.values() for leaf in leaves]
        self.optimizer = torch.optim.Adam(
            [*self.executor.leaves, *learned], lr=schedule.lr, fused=True, capturable=run.inputs.device.type == "cuda"
        )
        self._step, self._follow = Captured(self._descend, run.inputs.device), Captured(self._move, run.inputs.device)
        self.first_epoch = 0 if resumed is None else resumed.epoch
        if resumed is not None:
            restore_optimizer_(self.optimizer, resumed.optimizer)

    def run(self, deadline: Deadline) -> None:
        self._look("start", self.first_epoch - 1, {}, np.zeros(len(self.replicas), dtype=bool))
        for epoch in range(self.first_epoch, self.schedule.epochs):
            if deadline.passed:
                warnings.warn(f"The time budget of {self.owner.execution.time_budget:g} s was spent after {epoch} of "
                              f"{self.schedule.epochs} epochs of {self.name}.", ReclustWarning, stacklevel=5)
                break
            fired = self._intervene(epoch)
            with self.clock("training"):
                loss = self._train(epoch)
            with self.clock("centers"):
                self._move_centers(epoch)
            self.owner.drop_failed(self.name, epoch, loss["loss"], self.schedule)
            self.owner.record(self.name, epoch, {**loss, **({"fired": fired} if fired.any() else {})})
            self._look("epoch", epoch, loss, fired)
            last = epoch == self.schedule.epochs - 1
            if self.owner.checkpoint is not None and (last or (epoch + 1) % self.owner.checkpoint.every == 0):
                self.owner.write_checkpoint(self, epoch + 1)
        self._step.release()
        self._follow.release()
        self.keep_time()

    def _intervene(self, epoch: int) -> np.ndarray:
        fired = np.zeros(len(self.replicas), dtype=bool)
        for which, intervention in self.interventions:
            if intervention.fires(epoch):
                fired[which] = intervention(epoch, self.target(which, self.replicas.state["centers"]))
        if fired.any():
            self._look("intervention", epoch, {}, fired)
        return fired

    def _train(self, epoch: int) -> dict[str, np.ndarray]:
        """One epoch of gradient steps; the mean losses, (r,) each."""
        lr = self.schedule.learning_rate(epoch)
        for group in self.optimizer.param_groups:
            if group["lr"] != lr:
                group["lr"] = lr
                self._step.release()  # a captured step has its learning rate built in
        augment_key = draws.fold(self.key, "augment", epoch)
        total = torch.zeros(len(self.replicas), 3, dtype=self.dtype, device=self.inputs.device)
        steps = 0
        with tensor_cores(self.inputs.device):
            for rows in self._blocks(draws.fold(self.key, "order", epoch)):
                for views in zip(*self._views(rows, augment_key), strict=True):
                    total += self._step(*views)
                    steps += 1
        means = (total / steps).cpu().numpy()
        columns = ("loss", "representation_loss", "cluster_loss")[: 3 if self.replicas.objectives else 1]
        return dict(zip(columns, means.T, strict=False))

    def _descend(self, *views: Tensor) -> Tensor:
        """One gradient step on one batch, each view (r, B, *sample_shape); the losses before it, (r, 3)."""
        losses = self.executor.train(self._losses, *views)
        losses[:, 0].sum().backward()  # replicas share no parameter, so the gradient of the sum is each one's own
        if self.schedule.clip_norm is not None:
            self.executor.clip_(self.schedule.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return losses.detach()

    def _losses(self, net: nn.Module, objective: Objective | None, state: State, *views: Tensor) -> Tensor:
        """Total, representation and cluster loss of one replica, (3,)."""
        representation = self.replicas.representation
        z = representation.encode_views(net, views)
        zero = z[0].new_zeros(())
        if objective is None:
            own = representation.loss(net, views, z)
            return torch.stack([own, own, zero])
        cluster = objective.loss(state, z)
        idle = isinstance(objective.representation_weight, float) and objective.representation_weight == 0
        own = zero if idle else representation.loss(net, views, z)
        return torch.stack([objective.representation_weight * own + objective.weight * cluster, own, cluster])

    def _views(self, rows: Tensor, augment_key: Tensor) -> list[Tensor]:
        """The views of a block of batches: rows (b, r, B) -> (b, r, B, *sample_shape) each."""
        x = self.inputs.take(rows)
        made = []
        for number, view in enumerate(self.views):
            if view == "augmented" and self.augment is not None:
                seen = self.augment(x, draws.fold(augment_key.unsqueeze(-1), rows, number))
            else:
                seen = x
            made.append(self.inputs.normalize(seen))
        return made

    def _blocks(self, key: Tensor) -> tuple[Tensor, ...]:
        """Row numbers in a fresh order, several batches at once: (b, r, B). A last short batch is left out.

        Gathering and augmenting many batches at once costs little more than one, where starting an operation is what costs.
        """
        order = self.inputs.order(key)
        whole = self.inputs.n_samples // self.batch_size * self.batch_size
        batches = order[:, :whole].unflatten(1, (-1, self.batch_size)).transpose(0, 1)
        return batches.split(max(1, BLOCK[self.inputs.device.type != "cpu"] // (batches[0].numel() * self.numbers)))

    def _move_centers(self, epoch: int) -> None:
        """The objective's gradient-free update, in a pass of its own; where all of the state is learned there is none."""
        if self.replicas.state.keys() == self.replicas.state_leaves.keys():
            return
        for rows in self._blocks(draws.fold(self.key, "second order", epoch)):
            for x in self.inputs.normalize(self.inputs.take(rows)):
                self._follow(x)

    def _move(self, x: Tensor) -> None:
        """The update on one batch (r, B, *sample_shape)."""
        moved = self.executor.evaluate(self._update, x)
        for name, tensor in self.replicas.state.items():
            if name not in self.replicas.state_leaves:
                tensor.copy_(moved[name])

    def _update(self, net: nn.Module, objective: Objective, state: State, x: Tensor) -> State:
        return objective.update(state, self.replicas.representation.encode(net, x))

    def target(self, which: slice, centers: Tensor) -> Target:
        """What an intervention may touch, for a run of neighbouring replicas."""
        remembered = [self.optimizer.state.get(leaf, {}) for leaf in self.replicas.state_leaves.get("centers", [])[which]]
        return Target(
            blocks=self.replicas.blocks(which),
            centers=centers[which],
            key=self.key[which],
            embedder=lambda rows: self.embed(rows, which),
            assigner=lambda z: self.assign(z, which),
            n_samples=self.inputs.n_samples,
            moments=tuple(entry[name] for entry in remembered for name in entry if name != "step"),
            step_counts=tuple(entry["step"] for entry in remembered if "step" in entry),
            clock=self.clock,
        )

    def embed(self, rows: Tensor | None = None, which: slice = slice(None)) -> Tensor:
        """(r, n, d) of all samples, or (r, m, d) of rows (r, m)."""
        members = len(range(len(self.replicas))[which])
        if rows is None:
            rows = torch.arange(self.inputs.n_samples, device=self.inputs.device)
        parts = []
        for some in rows.split(CHUNK, dim=-1):
            x = self.inputs.normalize(self.inputs.take(some))
            parts.append(self.executor.evaluate(self._encode, x if some.ndim > 1 else x.expand(members, *x.shape), which=which))
        return torch.cat(parts, dim=1)

    def _encode(self, net: nn.Module, objective: Any, state: State, x: Tensor) -> Tensor:
        return self.replicas.representation.encode(net, x)

    def assign(self, z: Tensor, which: slice = slice(None)) -> Tensor:
        """(r, n, d) -> (r, n)."""
        return torch.cat([self.executor.evaluate(_assign, some, which=which) for some in z.split(CHUNK, dim=1)], dim=1)

    def _look(self, moment: Literal["start", "intervention", "epoch"], epoch: int,
              loss: dict[str, np.ndarray], fired: np.ndarray) -> None:
        if not self.owner.monitors:
            return
        snapshot = Snapshot(self.name, moment, epoch, self.schedule.epochs, loss, fired, self.embed, self.assign)
        with self.clock("evaluation"):
            for monitor in self.owner.monitors:
                measured = monitor(snapshot)
                if measured:
                    self.owner.record(self.name, epoch, measured)

    def seconds(self) -> dict[str, float]:
        parts = {f"{self.name}.{part}": spent for part, spent in self.clock.seconds.items()}
        return {part: self.owner.seconds.get(part, 0.0) + spent for part, spent in parts.items()}

    def keep_time(self) -> None:
        self.owner.seconds.update(self.seconds())


def _assign(net: nn.Module, objective: Objective, state: State, z: Tensor) -> Tensor:
    return objective.assign(state, z)


def _runs_of_equals(settings: list[Settings]) -> list[tuple[Intervention | None, list[int]]]:
    """Neighbouring replicas with equal interventions share one call, since slices of the stack can be written in place."""
    return [(intervention, [i for i, _ in members])
            for intervention, members in groupby(enumerate(settings), key=lambda pair: pair[1].intervention)]
