"""K-medoids: centers that are samples."""

from typing import Literal

import torch
from torch import Tensor

from ... import draws
from ...objectives import nearest
from ...utils.values import choice, integer, value
from .kmeans import KMeansPlusPlus

_DISTANCES = {"cpu": 2**20, "cuda": 2**26}  # held at a time; on a CPU they should fit the cache


@value
class KMedoids:
    """Reclustering method: samples with the least summed distance to their clusters."""

    n_init: int = integer(default=10, least=1)
    max_iter: int = integer(default=100, least=1)
    seeds: Literal["k-means++", "central"] = choice("k-means++", "central", default="k-means++")

    @torch.no_grad()
    def __call__(self, z: Tensor, k: int, key: Tensor) -> Tensor:
        problems = z.reshape(-1, *z.shape[-2:])
        if self.seeds == "central":
            starts = torch.stack([x[_summed_distances(x - x.mean(0)).argsort(stable=True)[:k]]
                                  for x in problems]).unsqueeze(1)
        else:
            seeds = [KMeansPlusPlus()(z, k, draws.fold(key, "medoids", i))
                     for i in range(self.n_init)]
            starts = torch.stack(seeds, -3).reshape(-1, self.n_init, k, z.shape[-1])
        medoids = [self._best(x, seeds) for x, seeds in zip(problems, starts, strict=True)]
        return torch.stack(medoids).reshape(*z.shape[:-2], k, z.shape[-1])

    def _best(self, x: Tensor, starts: Tensor) -> Tensor:
        """Return the best medoids: (n, d), (n_init, k, d) -> (k, d)."""
        samples, mean = x, x.mean(0)  # centered for precision
        x = samples - mean
        medoids = torch.cdist(starts - mean, x).argmin(-1)
        moving = torch.arange(len(medoids), device=x.device)
        for _ in range(self.max_iter):
            old = medoids[moving]
            medoids[moving] = _moved(x, old)
            moving = moving[(medoids[moving] != old).any(1)]
            if not len(moving):
                break
        costs = torch.stack([torch.cdist(x, x[rows]).amin(1).sum() for rows in medoids])
        return samples[medoids[costs.argmin()]]


def _summed_distances(x: Tensor) -> Tensor:
    """Sum the distances of each sample to all others: (n, d) -> (n,)."""
    limit = _DISTANCES.get(x.device.type, _DISTANCES["cpu"])
    parts = x.split(max(1, limit // max(1, len(x))))
    return torch.cat([torch.cdist(part, x).sum(1) for part in parts])


def _moved(x: Tensor, medoids: Tensor) -> Tensor:
    """Move each medoid (s, k) to the member of its cluster with the least summed distance."""
    labels = torch.stack([nearest(x, x[rows]) for rows in medoids])
    clusters = torch.arange(medoids.shape[1], device=x.device)
    members = labels.unsqueeze(1) == clusters.unsqueeze(1)
    sums = torch.full(members.shape, torch.inf, dtype=x.dtype, device=x.device)
    for cluster_sums, chosen in zip(sums.flatten(0, 1), members.flatten(0, 1), strict=True):
        cluster_sums[chosen] = _summed_distances(x[chosen])
    # A cluster is empty if another medoid is equal.
    return torch.where(members.any(-1), sums.argmin(-1), medoids)
