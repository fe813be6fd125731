"""Gradient steps over the batches of an epoch, and the gradient-free update of the centers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.linalg import vector_norm

from .. import draws
from ..objectives import Objective, State
from ..objectives.base import has_update
from .context import RunContext
from .engine.adam import Adam, Leaf
from .engine.batches import Batches
from .engine.compilation import Captured
from .engine.executors import Executor, PlainExecutor, VmapExecutor, executor_kind
from .engine.replicas import NETWORK
from .monitors.analysis import GradientNorms
from .settings import Schedule

LOSS_COLUMNS = ("loss", "representation_loss", "cluster_loss", "gradient_norm")
NORM_COLUMNS = ("gradient_l0_norm", "gradient_l1_norm")
# Compiling a convolutional network takes about a minute and saves a quarter of each step.
STEPS_WORTH_COMPILING = 15_000
VALUES_WORTH_COMPILING = 2 * 10**11  # augmented values in a phase


class GradientDescent:
    """Train all replicas of a run with the optimizer of one phase."""

    def __init__(self, context: RunContext, schedule: Schedule, key: Tensor) -> None:
        self.replicas, self.precision = context.replicas, context.precision
        self.schedule, self.key, self.device = schedule, key, context.inputs.device
        self.ranks = context.ranks
        measured = any(isinstance(monitor, GradientNorms) for monitor in context.monitors)
        self.columns = LOSS_COLUMNS + NORM_COLUMNS if (
            measured and schedule.network == "trained") else LOSS_COLUMNS
        self.batches = Batches(context.inputs, schedule, context.common.augment,
                               context.targets, self.ranks)
        steps, learned = schedule.epochs * self.batches.count, self._learned()
        views = len(self.replicas) * sum(kind != "clean" for kind in self.batches.kinds)
        augmented = steps * self.batches.size * views * math.prod(context.inputs.sample_shape)
        wanted = context.execution.compile
        auto = wanted == "auto" and self.device.type == "cuda"
        if wanted == "always" or (auto and augmented >= VALUES_WORTH_COMPILING):
            self.batches.compile()
        worthwhile = steps >= STEPS_WORTH_COMPILING and not self.replicas.representation.stacks
        compiled = (wanted == "always" or (auto and worthwhile)) and self.ranks.size == 1
        kind = executor_kind(self.replicas, context.execution.executor)
        if kind == "vmap" and self.ranks.size == 1:
            self.executor: Executor = VmapExecutor(self.replicas, frozenset(learned))
        else:
            self.executor = PlainExecutor(self.replicas, frozenset(learned), compiled=compiled)
        self.optimizer = Adam(self._leaves(learned), lr=schedule.lr, clip_norm=schedule.clip_norm,
                              device=self.device)
        self.captured: dict[tuple[str, torch.Size], Captured] = {}

    def _learned(self) -> dict[str, tuple[Tensor, Tensor]]:
        """Tensors that this phase trains: name -> stored values, values that receive gradients."""
        if self.schedule.epochs == 0:
            return {}
        learned = {name: pair for name, pair in self.replicas.learned.items()
                   if self.schedule.network == "trained" or not name.startswith(NETWORK)}
        if not learned:
            raise ValueError("There is nothing to train: the whole network is frozen, by "
                             "network='frozen' or requires_grad=False, and so is the objective.")
        return learned

    def _leaves(self, learned: dict[str, tuple[Tensor, Tensor]]) -> dict[str, Leaf]:
        decay, replicas = self.schedule.weight_decay, self.replicas
        names = replicas.representation.decaying(replicas.net) if decay else ()
        decaying = {f"{NETWORK}/{name}" for name in names}
        return {name: Leaf(stored, None if working is stored else working,
                           decay=decay if name in decaying else 0.0,
                           clipped=name.startswith(NETWORK))
                for name, (stored, working) in learned.items()}

    def train_epoch(self, epoch: int) -> dict[str, np.ndarray]:
        """Take one gradient step per batch; return the mean losses, (r,) each."""
        self.optimizer.lr.fill_(self.schedule.learning_rate(epoch))
        order_key, augment_key = (draws.fold(self.key, use, epoch) for use in ("order", "augment"))
        total = torch.zeros(len(self.replicas), len(self.columns), dtype=self.precision.dtype,
                            device=self.device)
        with self.precision.training():
            for batch in self.batches.views(order_key, augment_key):
                total += self._run(self._descend, *batch)
        means = dict(zip(self.columns, (total / self.batches.count).cpu().numpy().T, strict=True))
        if self.schedule.clip_norm is None or self.schedule.network == "frozen":
            del means["gradient_norm"]
        objectives = self.replicas.objectives
        if not objectives:
            del means["representation_loss"], means["cluster_loss"]
        elif not any(map(_uses_representation_loss, objectives)):
            del means["representation_loss"]
        return means

    def _run(self, step: Callable[..., Any], *batch: Tensor) -> Any:
        """Call a step, captured once for each shape: the last batch may be shorter."""
        if self.ranks.size > 1:
            return step(*batch)
        key = step.__name__, batch[0].shape
        if key not in self.captured:
            self.captured[key] = Captured(step, self.device)
        return self.captured[key](*batch)

    def _descend(self, *batch: Tensor) -> Tensor:
        """Step on views (r, V, B, *sample_shape); return losses and norms, (r, columns)."""
        losses, gradients = self.executor.gradients(self._losses, *batch)
        self.ranks.average_(losses, *gradients.values())
        norms = [sum(vector_norm(part.flatten(1), order, dim=1, dtype=losses.dtype)
                     for name, part in gradients.items() if name.startswith(NETWORK))
                 for order in range(len(self.columns) - len(LOSS_COLUMNS))]
        norm = self.optimizer.step(gradients)
        norm = losses.new_zeros(len(losses)) if norm is None else norm
        return torch.column_stack([losses, norm, *norms])

    def _losses(self, net: nn.Module, objective: Objective | None, state: State,
                views: Tensor, *targets: Tensor) -> Tensor:
        """Return total, representation and cluster loss of one replica, (3,)."""
        representation, dtype = self.replicas.representation, self.precision.dtype
        with self.precision.network():
            with self.ranks.shared_statistics():
                own = self._encode(net, views)
            z = self.ranks.whole(own)
            representation_loss = zero = torch.zeros((), dtype=dtype, device=z.device)
            if objective is None or _uses_representation_loss(objective):
                representation_loss = self.ranks.representation_loss(representation, net, views,
                                                                     own, z)
        if objective is None:
            return torch.stack([representation_loss, representation_loss, zero])
        cluster = objective.loss(state, z.to(dtype), *targets)
        total = objective.representation_weight * representation_loss + objective.weight * cluster
        return torch.stack([total, representation_loss, cluster])

    def _encode(self, net: nn.Module, views: Tensor) -> Tensor:
        """(V, B, *sample_shape) -> (V, B, d), with gradients where the schedule asks for them."""
        encode = self.replicas.representation.encode_views
        if self.schedule.network == "frozen":
            with torch.no_grad():
                return encode(net.eval(), views)
        if self.schedule.encoding == "together and apart":
            with torch.no_grad():
                encode(net, views)
            return torch.cat([encode(net, view) for view in views.split(1)])
        if self.schedule.first_view == "learns" or len(views) == 1:
            return encode(net, views)
        with torch.no_grad():
            deciding = encode(net, views[:1])
        return torch.cat([deciding, encode(net, views[1:])])

    def move_centers(self, epoch: int) -> None:
        """Run the objective's gradient-free update in a second pass, if it has one (DCN)."""
        replicas = self.replicas
        only_gradients = set(replicas.state) == set(replicas.learned_state)
        if only_gradients or not has_update(replicas.objectives[0]):
            return
        order_key, augment_key = (draws.fold(self.key, f"second {use}", epoch)
                                  for use in ("order", "augment"))
        view = "clean" if self.schedule.centers_view == "clean" else self.batches.kinds[0]
        with self.precision.training():
            for x in self.batches.single_views(order_key, augment_key, view):
                self._run(self._move, x)

    def _move(self, x: Tensor) -> None:
        moved = self.executor.evaluate(self._update, x)
        for name, tensor in self.replicas.state.items():
            if name not in self.replicas.learned_state:
                tensor.copy_(moved[name])

    def _update(self, net: nn.Module, objective: Objective, state: State, x: Tensor) -> State:
        with self.precision.network():
            z = self.ranks.whole(self.replicas.representation.encode(net, x))
        return objective.update(state, z.to(self.precision.dtype))


def _uses_representation_loss(objective: Objective) -> bool:
    weight = objective.representation_weight  # a tensor if replicas differ
    return not (isinstance(weight, float) and weight == 0)
