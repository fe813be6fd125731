"""Split a cluster that may hold two classes, and merge two that may share one."""

import torch
from torch import Tensor

from .. import draws
from ..objectives.base import nearest
from ..utils.values import integer, number, value
from .reclustering.recluster import OnSamples, group_means
from .target import Target


@value
class SplitMerge(OnSamples):
    """Merge two close clusters, and split a wide one along its widest direction.

    Place it after `Recluster`:
    ``Every(20, (Exchange(), SoftReset(), Recluster(), SplitMerge(), ResetMomentum()))``.
    After an `Exchange` only the copies it made are changed: the next one keeps the better version.
    """

    probability: float = number(default=1.0, least=0, most=1, convert=False)
    # Draw from this many pairs that are cheapest to merge, and this many widest clusters.
    candidates: int = integer(default=3, least=1)
    refine: int = integer(default=3)  # number of k-means steps for the new centers

    def __call__(self, target: Target) -> None:
        k, d = target.centers.shape[-2:]
        if k < 3:
            return
        chance = draws.uniform(draws.fold(target.key, "split and merge"), (3,))
        chance = chance.to(target.centers.device).reshape(-1, 3)
        z = self.embed(target).reshape(len(chance), -1, d)
        before = target.centers.reshape(-1, k, d)
        centers = self._changed(z, before.to(z.dtype), chance[:, 1:])
        for _ in range(self.refine):
            centers = group_means(z, nearest(z, centers), centers)
        chosen = chance[:, 0] < self.probability
        if target.copies is not None:
            chosen &= target.copies.reshape(-1)
        centers = torch.where(chosen.reshape(-1, 1, 1), centers, before)
        target.centers.copy_(centers.reshape(target.centers.shape))

    def _changed(self, z: Tensor, centers: Tensor, chance: Tensor) -> Tensor:
        """Return new centers (r, k, d); chance (r, 2) in [0, 1) chooses among candidates."""
        labels, replicas = nearest(z, centers), torch.arange(len(z), device=z.device)
        means = group_means(z, labels, centers)
        sizes, widths, directions = _shapes(z, labels, means)
        pair = self._choose(-_merge_costs(means, sizes).flatten(1), chance[:, 0])
        first, second = pair // centers.shape[-2], pair % centers.shape[-2]
        scatter = sizes * widths.square()
        scatter[replicas, first] = scatter[replicas, second] = -torch.inf
        wide = self._choose(scatter, chance[:, 1])
        changed = means.clone()
        size, other_size = sizes[replicas, first, None].clamp(min=1), sizes[replicas, second, None]
        total = size * means[replicas, first] + other_size * means[replicas, second]
        changed[replicas, first] = total / (size + other_size)
        offset = widths[replicas, wide].unsqueeze(-1) * directions[replicas, wide]
        changed[replicas, wide] = means[replicas, wide] - offset
        changed[replicas, second] = means[replicas, wide] + offset
        return changed

    def _choose(self, scores: Tensor, chance: Tensor) -> Tensor:
        """Choose among the highest finite scores of each row: (r, m), (r,) -> (r,)."""
        possible = scores.isfinite().sum(-1).clamp(min=1, max=self.candidates)
        best = scores.topk(min(self.candidates, scores.shape[-1]), dim=-1).indices
        return best.gather(-1, (chance * possible).long().unsqueeze(-1)).squeeze(-1)


def _merge_costs(means: Tensor, sizes: Tensor) -> Tensor:
    """Increase of inertia by merging each pair once: (r, k, d), (r, k) -> (r, k, k)."""
    both = sizes.unsqueeze(-1) + sizes.unsqueeze(-2)
    costs = torch.cdist(means, means).square() * sizes.unsqueeze(-1) * sizes.unsqueeze(-2)
    costs = costs / both.clamp(min=1)
    return costs.masked_fill(torch.ones_like(costs, dtype=torch.bool).tril(), torch.inf)


def _shapes(z: Tensor, labels: Tensor, means: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return sizes (r, k), largest standard deviations (r, k) and their directions (r, k, d)."""
    centered = z - means.take_along_dim(labels.unsqueeze(-1), -2)
    # One cluster after another: (r, n, k, d) would be large.
    members = [(labels == cluster).to(z.dtype) for cluster in range(means.shape[-2])]
    sizes = torch.stack([member.sum(-1) for member in members], -1)
    with torch.autocast(z.device.type, enabled=False):
        scatter = torch.stack([(centered * member.unsqueeze(-1)).mT @ centered
                               for member in members], 1)
    # Without NaN, so that a failed replica does not stop the others.
    scatter = (scatter / sizes.clamp(min=1)[..., None, None]).nan_to_num(0, 0, 0)
    values, vectors = torch.linalg.eigh(scatter)
    return sizes, values[..., -1].clamp(min=0).sqrt(), vectors[..., -1]
