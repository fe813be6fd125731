"""DEC and IDEC: soft assignments are trained toward a sharpened version of themselves."""

import torch
from torch import Tensor

from ..utils.values import Shorthand, number, value
from .base import State, TrainedCenters, squared_distances


def soft_assignment(z: Tensor, centers: Tensor) -> Tensor:
    """Student-t similarities, normalized to sum to one: (..., B, d), (..., k, d) -> (..., B, k)."""
    similarity = 1 / (1 + squared_distances(z, centers))
    return similarity / similarity.sum(-1, keepdim=True)


def target_distribution(q: Tensor) -> Tensor:
    """Square, divide by soft cluster sizes and normalize (..., B, k), without gradients."""
    q = q.detach()
    sharpened = q**2 / q.sum(-2, keepdim=True)
    return sharpened / sharpened.sum(-1, keepdim=True)


@value
class DECObjective(TrainedCenters):
    """Objective of DEC: cross-entropy between the target distribution and the soft assignments.

    The cluster centers are trained with the network.

    Parameters
    ----------
    weight, representation_weight : float, default=1.0, 0.0
        Weights of the clustering loss and of the representation's own loss, such as reconstruction.

    Examples
    --------
    >>> import torch
    >>> from reclust import DECObjective
    >>> objective = DECObjective()
    >>> state = objective.init(torch.eye(3))
    >>> objective.loss(state, torch.ones(1, 10, 3)).shape
    torch.Size([])
    """

    weight: float = number(default=1.0)
    representation_weight: float = number(default=0.0)

    def loss(self, state: State, z: Tensor) -> Tensor:
        q = soft_assignment(z, state["centers"])
        return -(target_distribution(q[0]) * torch.log(q + 1e-8)).sum(-1).mean()


@value
class IDECObjective(Shorthand, DECObjective):
    """Objective of IDEC: that of DEC together with the representation's own loss.

    It equals a `DECObjective` with the same weights, and files store it as such.

    Parameters
    ----------
    weight, representation_weight : float, default=0.1, 1.0
        Weights of the clustering loss and of the representation's own loss, such as reconstruction.

    Examples
    --------
    >>> from reclust import DECObjective, IDECObjective
    >>> IDECObjective(0.5) == DECObjective(weight=0.5, representation_weight=1.0)
    True
    """

    weight: float = number(default=0.1)
    representation_weight: float = number(default=1.0)

    def expand(self) -> DECObjective:
        return DECObjective(self.weight, self.representation_weight)
