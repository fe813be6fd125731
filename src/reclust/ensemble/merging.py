"""Clusters of uneven size: many small parts, merged where they share many neighbors."""

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from torch import Tensor

from .. import draws
from ..interventions.reclustering.kmeans import KMeans
from .consensus import agreement, memberships, neighbor_graph

PARTS, MIN_PART = 4, 5  # parts per cluster, and samples that a part has on average
CUT_THROUGH = 0.03  # share of neighbors that two clusters have in each other if a group is divided


def even_or_merged(even: np.ndarray, embeddings: Sequence[Tensor], k: int,
                   seeds: Sequence[int]) -> np.ndarray:
    """Return the labels (m, n) of k-means in each embedding (n, d), or those of merged parts.

    K-means prefers clusters of similar size, and divides a group that is much larger. Parts are
    merged if it does, and if the embeddings agree more on them.
    """
    graphs = [neighbor_graph([z]) for z in embeddings]
    shared = [_shared(*_between(labels, graph)).max()
              for labels, graph in zip(even, graphs, strict=True)]
    if np.mean(shared) < CUT_THROUGH:
        return even
    merged = np.stack([merged_parts(z, graph, k, draws.key(seed, device=z.device))
                       for z, graph, seed in zip(embeddings, graphs, seeds, strict=True)])
    return merged if agreement(merged, k) > agreement(even, k) else even


def merged_parts(z: Tensor, graph: sparse.csr_matrix, k: int, key: Tensor) -> np.ndarray:
    """Divide samples (n, d) into parts, and merge the most connected ones until k are left."""
    parts = max(k, min(PARTS * k, len(z) // MIN_PART))
    labels = KMeans(n_init=3).fit(z, parts, key).labels.cpu().numpy()
    between, sizes = _between(labels, graph)
    cluster_of = np.arange(len(sizes))
    for _ in range(len(sizes) - k):
        shared = _shared(between, sizes)
        first, second = sorted(np.unravel_index(shared.argmax(), shared.shape))
        between[first] += between[second]
        between[:, first] += between[:, second]
        sizes[first] += sizes[second]
        between = np.delete(np.delete(between, second, 0), second, 1)
        sizes = np.delete(sizes, second)
        cluster_of[cluster_of == second] = first
        cluster_of[cluster_of > second] -= 1
    return cluster_of[labels]


def _between(labels: np.ndarray, graph: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights between clusters (k, k), and their sizes (k,)."""
    members = memberships(labels[None])
    weights = (members.T @ (graph @ members)).toarray()
    return (weights + weights.T) / 2, np.maximum(np.asarray(members.sum(0)).ravel(), 1)


def _shared(between: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the share of neighbors that two clusters have in each other, 0 on the diagonal."""
    shared = between / np.sqrt(np.outer(sizes, sizes))
    np.fill_diagonal(shared, 0)
    return shared
