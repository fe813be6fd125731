"""A way out for clusters that hold two classes while another class is cut in two, where no small step helps."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import draws
from ..objectives.base import nearest
from ..utils.values import check_float, check_int, value
from .reclustering.group_means import group_means
from .reclustering.recluster import OnSamples
from .target import Target


@value
class SplitMerge(OnSamples):
    """Two clusters that are close become one, and a wide one becomes two along the direction in which it is widest.

    Put it behind `Recluster`: `Every(20, (Exchange(), SoftReset(), Recluster(), SplitMerge(), ResetMomentum()))`. Behind an
    `Exchange` only the copies that it made are changed, so that nothing is lost: what came of it shows at the next one, where
    the better replica is copied and the poorer replaced. With fewer than three clusters nothing happens.

    probability: that a replica is changed.
    candidates: the two clusters are drawn from so many pairs, those that cost least to merge, and the wide one from so
        many clusters.
    refine: steps of k-means that the new centres take.
    """

    probability: float = 1.0
    candidates: int = 3
    refine: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= check_float("probability", self.probability) <= 1:
            raise ValueError(f"probability must lie between 0 and 1, got {self.probability!r}.")
        object.__setattr__(self, "candidates", check_int("candidates", self.candidates, 1))
        object.__setattr__(self, "refine", check_int("refine", self.refine, 0))

    def __call__(self, target: Target) -> None:
        k, d = target.centers.shape[-2:]
        if k < 3:
            return
        chance = draws.uniform(draws.fold(target.key, "split and merge"), (3,)).to(target.centers.device).reshape(-1, 3)
        z = self.embed(target).reshape(len(chance), -1, d)
        centers = self._changed(z, target.centers.reshape(-1, k, d).to(z.dtype), chance[:, 1:])
        for _ in range(self.refine):
            centers = group_means(z, nearest(z, centers), centers)
        drawn = chance[:, 0] < self.probability
        if target.copies is not None:
            drawn &= target.copies.reshape(-1)
        drawn = drawn.reshape(-1, 1, 1)
        target.centers.copy_(torch.where(drawn, centers, target.centers.reshape(-1, k, d)).reshape(target.centers.shape))

    def _changed(self, z: Tensor, centers: Tensor, chance: Tensor) -> Tensor:
        """z (r, n, d), centers (r, k, d), chance (r, 2): numbers in [0, 1) that choose among the candidates."""
        labels, replicas = nearest(z, centers), torch.arange(len(z), device=z.device)
        means = group_means(z, labels, centers)
        sizes, widths, directions = _shapes(z, labels, means)
        pair = self._drawn(-_merge_costs(means, sizes).flatten(1), chance[:, 0])
        first, second = pair // centers.shape[-2], pair % centers.shape[-2]
        scatter = sizes * widths.square()
        scatter[replicas, first] = scatter[replicas, second] = -torch.inf
        wide = self._drawn(scatter, chance[:, 1])
        changed = means.clone()
        weights = sizes[replicas, first].clamp(min=1).unsqueeze(-1), sizes[replicas, second].unsqueeze(-1)
        changed[replicas, first] = (weights[0] * means[replicas, first] + weights[1] * means[replicas, second]) / sum(weights)
        apart = widths[replicas, wide].unsqueeze(-1) * directions[replicas, wide]
        changed[replicas, wide] = means[replicas, wide] - apart
        changed[replicas, second] = means[replicas, wide] + apart
        return changed

    def _drawn(self, scores: Tensor, chance: Tensor) -> Tensor:
        """One of the `candidates` highest scores of each row that are possible at all: (r, m), (r,) -> (r,)."""
        possible = scores.isfinite().sum(-1).clamp(min=1, max=self.candidates)
        best = scores.topk(min(self.candidates, scores.shape[-1]), dim=-1).indices
        return best.gather(-1, (chance * possible).long().unsqueeze(-1)).squeeze(-1)


def _merge_costs(means: Tensor, sizes: Tensor) -> Tensor:
    """What k-means would lose by merging each pair: (r, k, d), (r, k) -> (r, k, k), each pair once, infinite elsewhere."""
    both = sizes.unsqueeze(-1) + sizes.unsqueeze(-2)
    costs = torch.cdist(means, means).square() * sizes.unsqueeze(-1) * sizes.unsqueeze(-2) / both.clamp(min=1)
    return costs.masked_fill(torch.ones_like(costs, dtype=torch.bool).tril(), torch.inf)


def _shapes(z: Tensor, labels: Tensor, means: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of every cluster the number of samples (r, k), the largest standard deviation (r, k) and its direction (r, k, d)."""
    k = means.shape[-2]
    own = z - means.take_along_dim(labels.unsqueeze(-1), -2)
    members = [(labels == cluster).to(z.dtype) for cluster in range(k)]  # one after the other: (r, n, k, d) would be large
    sizes = torch.stack([member.sum(-1) for member in members], -1)
    with torch.autocast(z.device.type, enabled=False):  # in which somebody's own loop may be
        scatter = torch.stack([(own * member.unsqueeze(-1)).mT @ own for member in members], 1)
    scatter = (scatter / sizes.clamp(min=1)[..., None, None]).nan_to_num(0, 0, 0)  # a replica that failed is to stop no other
    values, vectors = torch.linalg.eigh(scatter)
    return sizes, values[..., -1].clamp(min=0).sqrt(), vectors[..., -1]
