"""DCN: samples are pulled to their nearest center, and centers follow their samples."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from ..utils.values import choice, number, value
from .base import State, membership, nearest

INITIAL_COUNT = 100.0


@value
class DCNObjective:
    """Objective of DCN: squared distance of samples to their nearest center.

    Centers are not trained by gradients; they follow the means of their samples.

    Parameters
    ----------
    weight, representation_weight : float, default=0.025, 1.0
        Weights of the clustering loss and of the representation's own loss, such as reconstruction.
    rate : {"constant", "counts"}, default="constant"
        How far a center moves toward the mean of its samples in a batch: 1/101 of the way, which
        gives the published numbers, or m / (count + m) for m samples with counts that start at
        100, the running mean of online k-means.
    reduction : {"mean_over_clusters", "mean", "half_sum"}, default="mean_over_clusters"
        Mean over samples and clusters, which gives the published numbers, mean over samples, or
        half the sum over the batch as in the paper's formula.

    Examples
    --------
    >>> import torch
    >>> from reclust import DCNObjective
    >>> objective = DCNObjective(rate="counts")
    >>> state = objective.init(torch.eye(3))
    >>> objective.update(state, torch.ones(10, 3))["centers"].shape
    torch.Size([3, 3])
    """

    weight: float = number(default=0.025)
    representation_weight: float = number(default=1.0)
    rate: Literal["constant", "counts"] = choice("constant", "counts", default="constant")
    reduction: Literal["mean_over_clusters", "mean", "half_sum"] = choice(
        "mean_over_clusters", "mean", "half_sum", default="mean_over_clusters")
    trainable: ClassVar[frozenset[str]] = frozenset()
    per_cluster: ClassVar[frozenset[str]] = frozenset({"centers", "count"})

    def init(self, centers: Tensor) -> State:
        count = torch.full_like(centers[..., 0], INITIAL_COUNT)
        return {"centers": centers.clone(), "count": count}

    def loss(self, state: State, z: Tensor) -> Tensor:
        assigned = state["centers"][self.assign(state, z[0].detach())]
        squared = (z - assigned).pow(2).sum(-1).mean(0)
        if self.reduction == "half_sum":
            return squared.sum() / 2
        k = len(state["centers"]) if self.reduction == "mean_over_clusters" else 1
        return squared.mean() / k

    def assign(self, state: State, z: Tensor) -> Tensor:
        return nearest(z, state["centers"])

    def update(self, state: State, z: Tensor) -> State:
        # Fixed shapes, unlike boolean indexing, so that vmap and CUDA graphs can run it.
        member = membership(self.assign(state, z), len(state["centers"])).to(z.dtype)
        new = member.sum(0)
        mean = member.T @ z / new.clamp(min=1).unsqueeze(-1)
        if self.rate == "constant":
            rate, count = (new > 0).to(z.dtype) / (INITIAL_COUNT + 1), state["count"]
        else:
            count = state["count"] + new
            rate = new / count
        return {"centers": state["centers"].lerp(mean, rate.unsqueeze(-1)), "count": count}
