"""K-means for clusters of uneven size: small parts, merged where they share many neighbors."""

import numpy as np
import torch
from torch import Tensor

from ... import draws
from ...geometry import nearest_neighbors
from ...utils.values import integer, value
from .kmeans import KMeans

PARTS, MIN_PART = 4, 5  # parts per cluster, and samples that a part has on average
CUT_THROUGH = 0.03  # share of neighbors that two clusters have in each other if a group is divided
NEIGHBORS = 10
SMALLEST = 0.1  # size of a cluster, relative to clusters of equal size


@value
class MergedKMeans:
    """Reclustering method: k-means, or merged parts where it divides a large group.

    K-means prefers clusters of similar size. Where two of its clusters have more than 3 % of their
    neighbors in each other, small parts are merged instead if they leave less than a quarter of it.
    """

    subsample: int = integer(default=4096, least=1)  # samples that show which parts are connected

    @torch.no_grad()
    def __call__(self, z: Tensor, k: int, key: Tensor) -> Tensor:
        fit, problems = KMeans().fit(z, k, key), z.reshape(-1, *z.shape[-2:])
        spread = slice(None, None, -(-z.shape[-2] // self.subsample))
        found = zip(problems[:, spread].float(), fit.labels.reshape(problems.shape[:2])[:, spread],
                    fit.centers.reshape(len(problems), k, -1), key.reshape(-1), strict=True)
        return torch.stack([_undivided(*each) for each in found]).reshape(fit.centers.shape)


def _undivided(z: Tensor, labels: Tensor, centers: Tensor, key: Tensor) -> Tensor:
    near, k = nearest_neighbors(z, NEIGHBORS), len(centers)
    if (divided := most_shared(labels, near)) < CUT_THROUGH:
        return centers
    merged = merged_parts(z, near, k, key)
    if merged.amax() < k - 1 or most_shared(merged, near) > divided / 4:
        return centers
    return torch.stack([z[merged == cluster].mean(0) for cluster in range(k)]).to(centers)


def merged_parts(z: Tensor, near: Tensor, k: int, key: Tensor) -> Tensor:
    """Divide samples (n, d) into parts, and merge the most connected ones until k are left.

    near: the neighbors of each sample, (n, m). Very small parts, such as outliers, merge first.
    """
    parts = max(k, min(PARTS * k, len(z) // MIN_PART))
    labels = KMeans(n_init=3).fit(z, parts, draws.fold(key, "parts")).labels.unique(
        return_inverse=True)[1]  # parts of equal samples may be empty
    between, sizes = _between(labels, near)
    cluster_of, smallest = np.arange(len(sizes)), SMALLEST * sizes.sum() / k
    while len(sizes) > k:
        shared = _shared(between, sizes)
        if sizes.min() < smallest:
            shared[sizes > sizes.min()] = -1
        first, second = sorted(np.unravel_index(shared.argmax(), shared.shape))
        between[first] += between[second]
        between[:, first] += between[:, second]
        sizes[first] += sizes[second]
        between = np.delete(np.delete(between, second, 0), second, 1)
        sizes = np.delete(sizes, second)
        cluster_of[cluster_of == second] = first
        cluster_of[cluster_of > second] -= 1
    return torch.from_numpy(cluster_of).to(z.device)[labels]


def most_shared(labels: Tensor, near: Tensor) -> float:
    """Return the largest share of neighbors that two clusters have in each other."""
    return _shared(*_between(labels, near)).max()


def _between(labels: Tensor, near: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return how many neighbors clusters have in each other (k, k), and in all (k,)."""
    k = int(labels.max()) + 1
    pairs = (labels[:, None] * k + labels[near]).flatten()
    counts = torch.bincount(pairs, minlength=k * k).reshape(k, k).double().cpu().numpy()
    return (counts + counts.T) / 2, np.maximum(counts.sum(1), 1)


def _shared(between: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the share of neighbors that two clusters have in each other, -1 on the diagonal."""
    shared = between / np.sqrt(np.outer(sizes, sizes))
    np.fill_diagonal(shared, -1)
    return shared
