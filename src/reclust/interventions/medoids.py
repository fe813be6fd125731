"""K-medoids: centres that are samples themselves."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import draws
from ..kmeans import KMeansPlusPlus
from ..objectives import nearest
from ..values import value, whole

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
            object.__setattr__(self, name, whole(name, getattr(self, name), 1))

    @torch.no_grad()
    def __call__(self, z: Tensor, k: int, key: Tensor) -> Tensor:
        seeds = [KMeansPlusPlus()(z, k, draws.fold(key, "medoids", start)) for start in range(self.n_init)]
        starts = torch.stack(seeds, -3).reshape(-1, self.n_init, k, z.shape[-1])
        found = [self._best(x, own) for x, own in zip(z.reshape(-1, *z.shape[-2:]), starts, strict=True)]
        return torch.stack(found).reshape(*z.shape[:-2], k, z.shape[-1])

    def _best(self, x: Tensor, starts: Tensor) -> Tensor:
        """(n, d), (n_init, k, d) -> (k, d)."""
        runs = [self._alternate(x, torch.cdist(seeds, x).argmin(1)) for seeds in starts]
        costs = torch.stack([torch.cdist(x, x[medoids]).amin(1).sum() for medoids in runs])
        return x[runs[int(costs.argmin())]]

    def _alternate(self, x: Tensor, medoids: Tensor) -> Tensor:
        """(n, d), samples (k,) -> (k,)."""
        for _ in range(self.max_iter):
            labels = nearest(x, x[medoids])
            moved = torch.stack([_medoid(x, (labels == j).nonzero()[:, 0], old) for j, old in enumerate(medoids)])
            if torch.equal(moved, medoids):
                break
            medoids = moved
        return medoids


def _medoid(x: Tensor, members: Tensor, old: Tensor) -> Tensor:
    """The member with the least summed distance to all members (m,), or the old one if there are none."""
    if not len(members):  # its sample has a twin that is a medoid as well
        return old
    own = x[members]
    size = max(1, _DISTANCES.get(x.device.type, _DISTANCES["cpu"]) // len(members))
    return members[torch.cat([torch.cdist(part, own).sum(1) for part in own.split(size)]).argmin()]
