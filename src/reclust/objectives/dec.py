"""DEC and IDEC: soft assignments are pulled towards a sharpened version of themselves."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from ..utils.values import check_float, value
from .base import GradientOnly, State, nearest, squared_distances


def soft_assignment(z: Tensor, centers: Tensor) -> Tensor:
    """Student-t similarity to each centre, rows sum to one: (..., B, d), (..., k, d) -> (..., B, k)."""
    similarity = 1 / (1 + squared_distances(z, centers))
    return similarity / similarity.sum(-1, keepdim=True)


def target_distribution(q: Tensor) -> Tensor:
    """Squared and divided by the soft cluster sizes, rows sum to one: (..., B, k) -> (..., B, k), no gradient."""
    q = q.detach()
    sharpened = q**2 / q.sum(-2, keepdim=True)
    return sharpened / sharpened.sum(-1, keepdim=True)


@value
class DECObjective(GradientOnly):
    """Cross-entropy from the target distribution to the soft assignments; centres are learned.

    DEC is this alone; IDEC adds the representation loss and weighs this by 0.1.
    """

    weight: float = 1.0
    representation_weight: float = 0.0
    trainable: ClassVar[frozenset[str]] = frozenset({"centers"})
    per_cluster: ClassVar[frozenset[str]] = frozenset({"centers"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", check_float("weight", self.weight))
        object.__setattr__(self, "representation_weight", check_float("representation_weight", self.representation_weight))

    def init(self, centers: Tensor) -> State:
        return {"centers": centers.clone()}

    def loss(self, state: State, z: Tensor) -> Tensor:
        q = soft_assignment(z, state["centers"])
        return -(target_distribution(q[0]) * torch.log(q + 1e-8)).sum(-1).mean()

    def assign(self, state: State, z: Tensor) -> Tensor:
        return nearest(z, state["centers"])


def IDECObjective(weight: float = 0.1) -> DECObjective:
    """DEC beside the representation loss."""
    return DECObjective(weight=weight, representation_weight=1.0)
