"""A tree of clusters: coarser ones that contain them, and finer ones within them."""

from collections.abc import Iterable

import numpy as np
import torch
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from torch import Tensor

from .. import draws
from ..interventions.reclustering.kmeans import KMeans

MAX_PARTS, MIN_PART = 4, 10  # parts of each cluster, and samples that a part has on average


def similarity(labels: np.ndarray, others: Iterable[np.ndarray], k: int) -> np.ndarray:
    """Return how often other clusterings of the same samples mix two clusters, (k, k)."""
    total, count = np.zeros((k, k)), 0
    for other in others:
        table = np.zeros((k, int(other.max()) + 1))
        np.add.at(table, (labels[other >= 0], other[other >= 0]), 1)
        share = table / np.maximum(table.sum(1, keepdims=True), 1)
        total, count = total + share @ share.T, count + 1
    return total / max(count, 1)


def parts_of(z: Tensor, labels: np.ndarray, k: int) -> tuple[Tensor, np.ndarray]:
    """Divide each cluster by k-means: centers (leaves, d) and the cluster of each leaf."""
    centers, cluster_of = [], list[int]()
    for cluster in range(k):
        own = z[torch.from_numpy(labels == cluster)]
        parts = int(np.clip(len(own) // MIN_PART, 1, MAX_PARTS))
        key = draws.fold(draws.key(0), "parts", cluster)
        found = KMeans(n_init=3).fit(own, parts, key).centers if parts > 1 else own.mean(0)[None]
        centers.append(found)
        cluster_of += [cluster] * len(found)
    return torch.cat(centers), np.array(cluster_of)


def cluster_tree(similar: np.ndarray, leaves: np.ndarray, cluster_of: np.ndarray) -> np.ndarray:
    """Return a linkage matrix as scipy's over the leaves (L, d), (L - 1, 4).

    Leaves of a cluster merge below height 1, by distance; whole clusters above it, the more similar
    the sooner. Cut at height 1, the tree gives the fitted clusters.
    """
    if len(leaves) == 1:
        return np.zeros((0, 4))
    distance = np.sqrt(np.square(leaves[:, None] - leaves[None]).sum(-1))
    within = cluster_of[:, None] == cluster_of[None]
    scale = distance[within].max()
    inside = distance / (1.01 * scale) if scale else distance
    least, most = similar.min(), similar.max()
    outside = 1 + (most - similar[np.ix_(cluster_of, cluster_of)]) / max(most - least, 1e-12)
    heights = np.where(within, inside, 0.01 + outside)
    np.fill_diagonal(heights, 0)
    return linkage(squareform(heights, checks=False), "average")


def cut(tree: np.ndarray, k: int) -> np.ndarray:
    """Return the cluster of each leaf if there are k, (L,), numbered by their first leaves."""
    n = len(tree) + 1
    pairs, nodes = tree[:, :2].astype(int).tolist(), [2 * n - 2]
    for node in nodes:  # down from the root
        nodes += reversed(pairs[node - n]) if node >= n else ()
    upwards = [node for node in reversed(nodes) if node >= n]
    merges = sorted(upwards, key=lambda node: tree[node - n, 2])[: n - k]
    top = np.arange(2 * n - 1)
    for node in reversed(merges):
        top[pairs[node - n]] = top[node]
    _, first, numbers = np.unique(top[:n], return_index=True, return_inverse=True)
    return first.argsort().argsort()[numbers]
