"""DCN: samples are pulled to their nearest centre, and centres follow their samples in a pass of their own."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor

from ..utils.values import check_float, value
from .base import State, nearest

INITIAL_COUNT = 100.0


@value
class DCNObjective:
    """Squared distance to the assigned centre; centres are not parameters.

    rate: how far a centre moves towards the mean of its samples in a batch.
        "constant": 1/101 of the way (what made the published numbers);
        "counts": with m new samples m / (count + m), the exact running mean of k-means by single samples, from a count of 100.
    reduction: "mean_over_clusters" averages over samples × clusters (what made the published numbers), "mean" over samples,
        "half_sum" is half the sum over the batch, as the paper's formula says.
    """

    weight: float = 0.025
    representation_weight: float = 1.0
    rate: Literal["constant", "counts"] = "constant"
    reduction: Literal["mean_over_clusters", "mean", "half_sum"] = "mean_over_clusters"
    trainable: ClassVar[frozenset[str]] = frozenset()
    per_cluster: ClassVar[frozenset[str]] = frozenset({"centers", "count"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", check_float("weight", self.weight))
        object.__setattr__(self, "representation_weight", check_float("representation_weight", self.representation_weight))
        if self.rate not in ("constant", "counts"):
            raise ValueError(f"rate must be 'constant' or 'counts', got {self.rate!r}.")
        if self.reduction not in ("mean_over_clusters", "mean", "half_sum"):
            raise ValueError(f"reduction must be 'mean_over_clusters', 'mean' or 'half_sum', got {self.reduction!r}.")

    def init(self, centers: Tensor) -> State:
        return {"centers": centers.clone(), "count": torch.full_like(centers[..., 0], INITIAL_COUNT)}

    def loss(self, state: State, z: Tensor) -> Tensor:
        own = state["centers"][self.assign(state, z[0].detach())]
        squared = (z - own).pow(2).sum(-1).mean(0)
        if self.reduction == "half_sum":
            return squared.sum() / 2
        return squared.mean() / (len(state["centers"]) if self.reduction == "mean_over_clusters" else 1)

    def assign(self, state: State, z: Tensor) -> Tensor:
        return nearest(z, state["centers"])

    def update(self, state: State, z: Tensor) -> State:
        # Products with memberships instead of boolean indexing: fixed shapes, so the update can be mapped and captured.
        clusters = torch.arange(len(state["centers"]), device=z.device)
        member = (self.assign(state, z).unsqueeze(-1) == clusters).to(z.dtype)
        arrived = member.sum(0)
        mean = member.T @ z / arrived.clamp(min=1).unsqueeze(-1)
        if self.rate == "constant":
            rate, count = (arrived > 0).to(z.dtype) / (INITIAL_COUNT + 1), state["count"]
        else:
            count = state["count"] + arrived
            rate = arrived / count
        return {"centers": state["centers"].lerp(mean, rate.unsqueeze(-1)), "count": count}
