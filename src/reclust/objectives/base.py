"""What an objective is: four small pure functions on one model."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor

State = dict[str, Tensor]
"""What an objective keeps between steps: 'centers' (k, d) and whatever else it needs, one tensor each."""


@runtime_checkable
class Objective(Protocol):
    """A frozen dataclass. The trainer minimises representation_weight × representation loss + weight × `loss`.

    Shapes: V views of each sample, B batch, d embedding size, k clusters. Written for one model; to train many at once the
    trainer maps these functions over replicas and may replace float fields by 0-d tensors, so they must not branch on tensor
    values.
    """

    trainable: ClassVar[frozenset[str]]
    """Keys of the state that receive gradients. The others are moved by `update`."""

    per_cluster: ClassVar[frozenset[str]]
    """Keys of the state whose first axis counts clusters."""

    @property
    def weight(self) -> float: ...

    @property
    def representation_weight(self) -> float: ...

    def init(self, centers: Tensor) -> State:
        """(k, d) -> the first state."""
        ...

    def loss(self, state: State, z: Tensor) -> Tensor:
        """(V, B, d) -> scalar. The first view decides the assignment, all views learn from it."""
        ...

    def assign(self, state: State, z: Tensor) -> Tensor:
        """(B, d) -> (B,) labels."""
        ...

    def update(self, state: State, z: Tensor) -> State:
        """Gradient-free, in a pass of its own after the epoch, on (B, d) from the frozen network in eval mode."""
        ...


class GradientOnly:
    """An objective whose state nothing but gradients moves, so that the trainer need not make a second pass for `update`."""

    def update(self, state: State, z: Tensor) -> State:
        return state


def has_update(objective: Objective) -> bool:
    """Whether it has an `update` of its own, be it a child of one that has none."""
    return not (isinstance(objective, GradientOnly) and type(objective).update is GradientOnly.update)


class Staged:
    """An objective of a stage after clustering, which trains as clustering does: history, progress, seconds and warnings call
    its epochs by this name."""

    stage: ClassVar[str]


def squared_distances(z: Tensor, centers: Tensor) -> Tensor:
    """(..., B, d), (..., k, d) -> (..., B, k), by differences: exact where z meets a centre, and safe to differentiate."""
    return (z.unsqueeze(-2) - centers.unsqueeze(-3)).pow(2).sum(-1)


def nearest(z: Tensor, centers: Tensor) -> Tensor:
    """(..., B, d), (..., k, d) -> (..., B); without the (B, k, d) differences, and exact all the same."""
    return torch.cdist(z, centers, compute_mode="donot_use_mm_for_euclid_dist").argmin(-1)
