"""Distillation: a network learns soft labels that it is given."""

from typing import ClassVar

from torch import Tensor

from ..utils.values import value
from .base import State, TrainedCenters


def prototype_logits(z: Tensor, centers: Tensor) -> Tensor:
    """Return negative squared distances up to a constant: (..., B, d), (k, d) -> (..., B, k)."""
    return 2 * z @ centers.mT - centers.square().sum(-1)


@value
class DistillationObjective(TrainedCenters):
    """Cross-entropy of soft labels, the `targets`, and a softmax of negative squared distances."""

    weight: ClassVar[float] = 1.0
    representation_weight: ClassVar[float] = 0.0

    def loss(self, state: State, z: Tensor, targets: Tensor | None = None) -> Tensor:
        assert targets is not None
        logits = prototype_logits(z, state["centers"])
        return -(targets * logits.log_softmax(-1)).sum(-1).mean()
