"""K-medoids: centres that are samples themselves."""

from __future__ import annotations

import torch
from torch import Tensor

from ... import draws
from ...objectives import nearest
from ...utils.values import check_int, value
from .kmeans import KMeansPlusPlus

_DISTANCES = {"cpu": 2**20, "cuda": 2**26}
"""Held at a time; on a CPU they should stay in the cache."""


@value
class KMedoids:
    """K-medoids as a reclustering method: the samples with the least summed Euclidean distance to their clusters.

    From k-means++ seeds it alternates between assigning samples to medoids and moving each medoid to the best sample of
    its cluster, until none moves; of `n_init` such runs the one with the least sum of distances stays.
    """

    n_init: int = 10
    max_iter: int = 100

    def __post_init__(self) -> None:
        for name in ("n_init", "max_iter"):
            object.__setattr__(self, name, check_int(name, getattr(self, name), 1))

    @torch.no_grad()
    def __call__(self, z: Tensor, k: int, key: Tensor) -> Tensor:
        seeds = [KMeansPlusPlus()(z, k, draws.fold(key, "medoids", start)) for start in range(self.n_init)]
        starts = torch.stack(seeds, -3).reshape(-1, self.n_init, k, z.shape[-1])
        found = [self._best(x, own) for x, own in zip(z.reshape(-1, *z.shape[-2:]), starts, strict=True)]
        return torch.stack(found).reshape(*z.shape[:-2], k, z.shape[-1])

    def _best(self, x: Tensor, starts: Tensor) -> Tensor:
        """(n, d), (n_init, k, d) -> (k, d)."""
        samples, mean = x, x.mean(0)  # products lose digits when the data lies far from the origin
        x = samples - mean
        medoids = torch.cdist(starts - mean, x).argmin(-1)
        moving = torch.arange(len(medoids), device=x.device)
        for _ in range(self.max_iter):
            old = medoids[moving]
            medoids[moving] = _moved(x, old)
            moving = moving[(medoids[moving] != old).any(1)]
            if not len(moving):
                break
        costs = torch.stack([torch.cdist(x, x[own]).amin(1).sum() for own in medoids])
        return samples[medoids[costs.argmin()]]


def _moved(x: Tensor, medoids: Tensor) -> Tensor:
    """Each medoid, samples (s, k), as the member of its cluster with the least summed distance to all members."""
    labels = torch.stack([nearest(x, x[own]) for own in medoids])
    members = labels.unsqueeze(1) == torch.arange(medoids.shape[1], device=x.device).unsqueeze(1)
    sums = (_sums_by_cluster if x.device.type == "cpu" else _sums_at_once)(x, members)
    best = torch.where(members, sums, torch.inf).argmin(-1)
    return torch.where(members.any(-1), best, medoids)  # none: its sample has a twin that is a medoid as well


def _sums_at_once(x: Tensor, members: Tensor) -> Tensor:
    """Summed distances of all samples to the members of each cluster, (n, d), (s, k, n) -> (s, k, n).

    A product more than is needed, which a GPU does sooner than it starts the work on a single cluster.
    """
    chosen = members.flatten(0, 1).to(x.dtype)
    return torch.cat([chosen @ torch.cdist(x, part) for part in x.split(_size(x))], 1).unflatten(0, members.shape[:2])


def _sums_by_cluster(x: Tensor, members: Tensor) -> Tensor:
    """The same, infinite where a sample is no member itself."""
    sums = torch.full(members.shape, torch.inf, dtype=x.dtype, device=x.device)
    for made, chosen in zip(sums.flatten(0, 1), members.flatten(0, 1), strict=True):
        own = x[chosen]
        made[chosen] = torch.cat([torch.cdist(part, own).sum(1) for part in own.split(_size(own))])
    return sums


def _size(x: Tensor) -> int:
    """Of how many samples to hold the distances to all at a time."""
    return max(1, _DISTANCES.get(x.device.type, _DISTANCES["cpu"]) // max(1, len(x)))
