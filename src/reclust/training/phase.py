"""One phase of training, epoch by epoch: the loop itself."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor, nn

from .. import draws
from ..data.augmentation.affine import perturbation_of
from ..objectives import Objective, Staged, State
from ..objectives.base import has_update
from ..utils.exceptions import StopTraining, warn
from ..utils.timer import Timer
from .checkpoint import TrainingState
from .engine.adam import Adam, Leaf
from .engine.batches import Batches
from .engine.cuda_graph import Captured
from .engine.embedding import Embedder
from .engine.executors import make_executor
from .engine.firing import InterventionRunner
from .engine.replicas import NETWORK
from .monitors.base import Deadline, Measured, Snapshot, WithinEpochMonitor
from .settings import Schedule

if TYPE_CHECKING:
    from .train import Run

LOSSES = ("loss", "representation_loss", "cluster_loss", "gradient_norm")
"""Columns of the history that training fills itself, beside "fired"."""

EXPLODED = 1000
"""Times the norm that gradients are clipped to."""

LONG = 15_000
"""Steps of a convolutional network that repay compiling it."""

MANY = 2 * 10**11
"""Numbers in augmented samples that repay compiling the augmentation."""

BETWEEN_WORDS = 0.5
"""Seconds from one word about how far an epoch is to the next."""


class Phase:
    """One pass of the loop over its epochs: pretraining (no objective) or clustering."""

    def __init__(self, run: Run, name: str, schedule: Schedule, resumed: TrainingState | None) -> None:
        """name: of its draws and checkpoints, and what it is called unless the objective is of a stage of its own."""
        self.owner, self.name, self.schedule = run, name, schedule
        objective = run.settings[0].objective
        self.called = objective.stage if name == "clustering" and isinstance(objective, Staged) else name
        self.replicas, self.inputs = run.replicas, run.inputs
        self.batches = Batches(run.inputs, schedule, run.settings[0].augment)
        if self._worth_compiling_views(run.execution.compile):
            self.batches.compile()
        learned = self._learned()
        self.executor = make_executor(run.replicas, run.execution.executor, frozenset(learned),
                                      compiled=self._worth_compiling(run.execution.compile))
        self.inspection = Embedder(run.replicas, run.inputs, self.executor,
                                     run.settings[0].augment or perturbation_of(run.inputs.sample_shape))
        self.arithmetic = run.arithmetic
        self.dtype = run.arithmetic.dtype
        self.clock = Timer(run.inputs.device)
        self.key = draws.fold(run.replicas.key, name)
        self.optimizer = Adam(self._leaves(learned), lr=schedule.lr, clip_norm=schedule.clip_norm, device=run.inputs.device)
        self.intervening = InterventionRunner(run.settings if name == "clustering" else (), run.replicas, self.inspection,
                                       self.optimizer, self.key, self.clock)
        self._step, self._follow = (Captured(work, run.inputs.device, self.executor.forget_gradients)
                                   for work in (self._descend, self._move))
        self._exploded = False
        self._told_within = [monitor for monitor in run.monitors if isinstance(monitor, WithinEpochMonitor)]
        self._last_word = time.monotonic()
        self.first_epoch = self.trained = 0 if resumed is None else resumed.epoch
        self.resumed = resumed is not None
        if resumed is not None:
            self.optimizer.restore_(resumed.optimizer)
            self.intervening.restore_(resumed.memory)

    def _worth_compiling(self, wanted: str) -> bool:
        """Compiling a convolutional network takes about a minute and saves a quarter of a step: "auto" wants a long phase."""
        long = self.schedule.epochs * self.batches.count >= LONG and self.inputs.device.type == "cuda"
        return wanted == "always" or (wanted == "auto" and long and not self.replicas.representation.stacks)

    def _worth_compiling_views(self, wanted: str) -> bool:
        changed = sum(kind != "clean" for kind in self.batches.kinds)
        numbers = math.prod((self.schedule.epochs, self.batches.count, self.batches.size, len(self.replicas), changed,
                             *self.inputs.sample_shape))
        return wanted == "always" or (wanted == "auto" and self.inputs.device.type == "cuda" and numbers >= MANY)

    def _learned(self) -> dict[str, tuple[Tensor, Tensor]]:
        """What this phase trains: what is kept and what gradients are taken of."""
        if self.schedule.epochs == 0:
            return {}
        learned = {name: pair for name, pair in self.replicas.learned.items()
                   if self.schedule.network == "trained" or not name.startswith(NETWORK)}
        if not learned:
            raise ValueError("Every layer of the network is frozen (requires_grad=False), so there is nothing to train: "
                             "leave at least one of them free.")
        return learned

    def _leaves(self, learned: dict[str, tuple[Tensor, Tensor]]) -> dict[str, Leaf]:
        decay, replicas = self.schedule.weight_decay, self.replicas
        decaying = {f"{NETWORK}/{name}" for name in replicas.representation.decaying(replicas.net)} if decay else set()
        return {name: Leaf.of(kept, None if working is kept else working, decay=decay if name in decaying else 0.0,
                              clipped=name.startswith(NETWORK))
                for name, (kept, working) in learned.items()}

    def run(self, deadline: Deadline) -> bool:
        """Whether all epochs were trained; the alternative is that time ran out."""
        self._look("start", self.first_epoch - 1, {}, np.zeros(len(self.replicas), dtype=bool))
        if not self.resumed:
            self.owner.keep_progress(self, 0)  # a full disk is found before an epoch is lost, unless it is to be written seldom
        for epoch in range(self.first_epoch, self.schedule.epochs):
            if deadline.passed:
                warn(f"The time budget was spent after {epoch} of {self.schedule.epochs} epochs of {self.called}.")
                self.owner.write_checkpoint(self, epoch)
                finished = False
                break
            self.trained = epoch + 1
            fired = self._intervene(epoch)
            with self.clock("training"):
                loss = self._train(epoch)
            with self.clock("centers"):
                self._move_centers(epoch)
            self.owner.drop_failed(self.called, epoch, loss["loss"], self.schedule)
            self._warn_of_explosion(epoch, loss)
            self.owner.record(self.called, epoch, {**loss, **({"fired": fired} if fired.any() else {})})
            try:
                self._look("epoch", epoch, loss, fired)
            except StopTraining:
                self.owner.write_checkpoint(self, epoch + 1)
                raise
            last = epoch == self.schedule.epochs - 1
            if self.owner.checkpoint is not None and (last or (epoch + 1) % self.owner.checkpoint.every == 0):
                self.owner.keep_progress(self, epoch + 1)
        else:
            finished = True
        self._step.release()
        self._follow.release()
        self.keep_time()
        # Losses are taken before a step, so only what was learned tells what the last one did.
        self.owner.drop_failed(self.called, self.trained - 1, self.replicas.damage(), self.schedule)
        return finished

    def _warn_of_explosion(self, epoch: int, loss: dict[str, np.ndarray]) -> None:
        """Once a phase, where clipping leaves next to nothing of gradients."""
        limit, norm = self.schedule.clip_norm, loss.get("gradient_norm")
        if self._exploded or limit is None or norm is None or not (norm > EXPLODED * limit).any():
            return
        self._exploded = True
        warn(f"Gradients explode in epoch {epoch} of {self.called}: their norm is {np.nanmax(norm):.3g}, and they are "
             f"clipped to {limit:g}. Scale the data (estimators do with standardize=True), or try a smaller lr "
             f"(now {self.schedule.lr:g}).")

    def _intervene(self, epoch: int) -> np.ndarray:
        fired = self.intervening.take(epoch)
        if fired.any():
            self.replicas.refresh_working_()
            self._look("intervention", epoch, {}, fired)
        return fired

    def _train(self, epoch: int) -> dict[str, np.ndarray]:
        """One epoch of gradient steps; the mean losses, (r,) each."""
        self.optimizer.lr = self.schedule.learning_rate(epoch)
        augment_key = draws.fold(self.key, "augment", epoch)
        total = torch.zeros(len(self.replicas), 4, dtype=self.dtype, device=self.inputs.device)
        with self.arithmetic.training():
            for begun, views in enumerate(self.batches.views(draws.fold(self.key, "order", epoch), augment_key), start=1):
                total += self._step(views)
                self._tell_how_far(begun / self.batches.count)
        means = dict(zip(LOSSES, (total / self.batches.count).cpu().numpy().T, strict=True))
        if self.schedule.clip_norm is None or self.schedule.network == "frozen":
            del means["gradient_norm"]
        objectives = self.replicas.objectives
        if not objectives:
            del means["representation_loss"], means["cluster_loss"]
        elif all(_idle(objective) for objective in objectives):
            del means["representation_loss"]
        return means

    def _tell_how_far(self, share: float) -> None:
        """Between steps, not within them, and without waiting for a GPU to end them: all it costs is a look at the clock."""
        if self._told_within and share < 1 and time.monotonic() - self._last_word >= BETWEEN_WORDS:
            self._last_word = time.monotonic()
            for monitor in self._told_within:
                monitor.within(share)

    def _descend(self, views: Tensor) -> Tensor:
        """One gradient step on one batch (r, V, B, *sample_shape); losses and gradient norm before it, (r, 4)."""
        losses, gradients = self.executor.gradients(self._losses, views)
        norms = self.optimizer.step(gradients)
        return torch.column_stack([losses, losses.new_zeros(len(losses)) if norms is None else norms])

    def _losses(self, net: nn.Module, objective: Objective | None, state: State, views: Tensor) -> Tensor:
        """Total, representation and cluster loss of one replica, (3,)."""
        representation = self.replicas.representation
        with self.arithmetic.network():
            z = self._encoded(net, views)
            own = zero = torch.zeros((), dtype=self.dtype, device=z.device)
            if objective is None or not _idle(objective):
                own = representation.loss(net, views, z)
        if objective is None:
            return torch.stack([own, own, zero])
        cluster = objective.loss(state, z.to(self.dtype))
        return torch.stack([objective.representation_weight * own + objective.weight * cluster, own, cluster])

    def _encoded(self, net: nn.Module, views: Tensor) -> Tensor:
        """(V, B, *sample_shape) -> (V, B, d), with gradients where the schedule wants them."""
        encode = self.replicas.representation.encode_views
        if self.schedule.network == "frozen":
            with torch.no_grad():
                return encode(net.eval(), views)
        if self.schedule.first_view == "learns" or len(views) == 1:
            return encode(net, views)
        with torch.no_grad():
            deciding = encode(net, views[:1])
        return torch.cat([deciding, encode(net, views[1:])])

    def _move_centers(self, epoch: int) -> None:
        """The objective's gradient-free update, in a pass of its own; where only gradients move the state there is none."""
        if set(self.replicas.state) == set(self.replicas.learned_state) or not has_update(self.replicas.objectives[0]):
            return
        with self.arithmetic.training():
            for x in self.batches.clean(draws.fold(self.key, "second order", epoch)):
                self._follow(x)

    def _move(self, x: Tensor) -> None:
        """The update on one batch (r, B, *sample_shape)."""
        moved = self.executor.evaluate(self._update, x)
        for name, tensor in self.replicas.state.items():
            if name not in self.replicas.learned_state:
                tensor.copy_(moved[name])

    def _update(self, net: nn.Module, objective: Objective, state: State, x: Tensor) -> State:
        with self.arithmetic.network():
            z = self.replicas.representation.encode(net, x)
        return objective.update(state, z.to(self.dtype))

    def _look(self, moment: Literal["start", "intervention", "epoch"], epoch: int,
              loss: dict[str, np.ndarray], fired: np.ndarray) -> None:
        if not self.owner.monitors:
            return
        parameters, state = ({name: stack.detach() for name, stack in stacks.items()}
                             for stacks in (self.replicas.parameters, self.replicas.state))
        fires_next = self.intervening.fires(epoch + 1) & (epoch + 1 < self.schedule.epochs)
        snapshot = Snapshot(
            self.called, moment, epoch, self.schedule.epochs, loss, fired, self.inspection.embed, self.inspection.assign,
            fires_next=fires_next, parameters=parameters, centers=state.get("centers"),
            representation_loss=lambda: self.inspection.representation_loss(vars(snapshot).get("embeddings")),
            n_samples=self.inputs.n_samples, state=state,
        )
        stop = None
        with self.clock("evaluation"):
            for monitor in self.owner.monitors:
                try:
                    measured = monitor(snapshot)
                except StopTraining as asked:  # heeded when the others have seen this epoch, too
                    measured, stop = None, stop or asked
                if measured and not (moment == "start" and self.resumed):  # recorded before the run was stopped
                    _check_columns(measured)
                    snapshot.measured.update(self.owner.record(self.called, epoch, measured))
        if stop is not None:
            raise stop

    def seconds(self) -> dict[str, float]:
        parts = {f"{self.called}.{part}": spent for part, spent in self.clock.seconds.items()}
        return {part: self.owner.seconds.get(part, 0.0) + spent for part, spent in parts.items()}

    def keep_time(self) -> None:
        self.owner.seconds.update(self.seconds())


def _check_columns(measured: Measured) -> None:
    if not isinstance(measured, Mapping):
        raise TypeError(f"A monitor must give a dict of columns, or None, got {type(measured).__name__}.")
    own = [column for column in measured if column in (*LOSSES, "fired")]
    if own:
        raise ValueError(f"A monitor measures {own[0]!r}, a column that training fills itself: give it another name.")


def _idle(objective: Objective) -> bool:
    """Whether the representation's own loss plays no part, so that a decoder need not even run."""
    return isinstance(objective.representation_weight, float) and objective.representation_weight == 0
