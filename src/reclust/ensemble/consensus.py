"""One clustering from many: a vote, smoothed over neighbors."""

from collections.abc import Callable, Iterable

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from .. import draws, metrics
from ..geometry import nearest_neighbors
from ..interventions.reclustering.kmeans import KMeans
from ..interventions.reclustering.mixture import GaussianMixture

Clustering = Callable[[Tensor, int, Tensor], Tensor]  # rows (n, d), k and key -> labels (n,)


def neighbor_graph(views: Iterable[Tensor], k: int = 10) -> sparse.csr_matrix:
    """Return weights (n, n) of each sample's neighbors in all views, which sum to 1."""
    total: sparse.csr_matrix = 0
    for x in views:
        near = nearest_neighbors(x, k).cpu().numpy()
        starts = np.arange(0, near.size + 1, near.shape[1])
        edges = sparse.csr_matrix((np.ones(near.size), near.ravel(), starts), (len(x), len(x)))
        total = total + edges + edges.T
    return sparse.diags(1 / np.asarray(total.sum(1)).ravel()) @ total


def by_kmeans(x: Tensor, k: int, key: Tensor) -> Tensor:
    return KMeans().fit(x, k, key).labels


def by_mixture(x: Tensor, k: int, key: Tensor) -> Tensor:
    """Cluster by the likeliest of three Gaussian mixtures in at most 20 leading columns."""
    found = zip(*GaussianMixture(3, 1e-2, max_iter=60).labels(x[:, :20], k, key), strict=True)
    return max(found, key=lambda each: (len(each[0].unique()), each[1]))[0]  # no empty clusters


def consensus(labels: np.ndarray, n_clusters: int, graph: sparse.csr_matrix | None = None, *,
              cluster: Clustering = by_kmeans, seed: int = 0) -> np.ndarray:
    """Combine the labels of members (m, n) into one clustering, (n,).

    A sample is described by the cluster it has in each member. In the leading principal components
    of that, the groups of samples that most members keep together are clusters, whatever members
    call them. With a graph samples are first averaged with their neighbors, twice.
    """
    member = memberships(labels)
    mean = np.asarray(member.mean(0)).ravel()
    covariance = (member.T @ member).toarray() - len(labels[0]) * np.outer(mean, mean)
    axes = np.linalg.eigh(covariance)[1][:, : -max(2, n_clusters) - 1 : -1]
    votes = (member @ axes - mean @ axes) / np.sqrt(len(labels))
    for _ in range(0 if graph is None else 2):
        votes = (votes + graph @ votes) / 2
    key = draws.fold(draws.key(seed), "consensus")
    return cluster(torch.from_numpy(votes), n_clusters, key).numpy()


def agreement(labels: np.ndarray, k: int, graph: sparse.csr_matrix | None = None) -> float:
    """Return the mean adjusted Rand index of clusterings (m, n) with their consensus."""
    agreed = consensus(labels, k, graph)
    return float(np.mean([metrics.ari(member, agreed) for member in labels]))


def normalized_cut(labels: np.ndarray, graph: sparse.csr_matrix) -> float:
    """Return the mean over clusters of the share of neighbors that are in another cluster."""
    members = memberships(labels[None])
    sizes = np.asarray(members.sum(0)).ravel()
    inside = np.asarray(members.multiply(graph @ members).sum(0)).ravel()
    return float(1 - (inside / np.maximum(sizes, 1)).mean())


def vote_shares(labels: np.ndarray, reference: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the share of the members' votes for each cluster of the reference, (n, k).

    A member's cluster votes for the reference's clusters in proportion to its samples there.
    """
    member = memberships(labels)
    table = member.T @ np.eye(n_clusters)[reference]
    return member @ (table / np.maximum(table.sum(1, keepdims=True), 1)) / len(labels)


def memberships(labels: np.ndarray) -> sparse.csr_matrix:
    """One-hot encode the labels of members side by side: (m, n) -> (n, clusters of all)."""
    m, n = labels.shape
    starts = np.concatenate([[0], np.cumsum(labels.max(1) + 1)])
    columns = (labels + starts[:-1, None]).T.ravel()
    rows = np.arange(0, m * n + 1, m)
    return sparse.csr_matrix((np.ones(m * n), columns, rows), (n, int(starts[-1])))
