"""The consensus: names of clusters do not matter, noise is voted out, votes are shares."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import kneighbors_graph
from support import blobs

from reclust import metrics
from reclust.ensemble.consensus import (
    consensus,
    memberships,
    neighbor_graph,
    normalized_cut,
    vote_shares,
)


def members(y, count=12, wrong=0.25, seed=0):
    """Noisy copies of labels under other names."""
    random = np.random.default_rng(seed)
    k = y.max() + 1
    noisy = np.where(random.random((count, len(y))) < wrong, random.integers(k, size=(count, len(y))), y)
    return np.stack([random.permutation(k)[own] for own in noisy])


def test_equal_members_are_their_own_consensus():
    y = blobs(60, k=3)[1]
    found = consensus(np.stack([y, (y + 1) % 3, y]), 3)
    assert metrics.ari(y, found) == 1


def test_noise_is_voted_out_whatever_clusters_are_called():
    y = np.arange(90) % 3
    labels = members(y)
    found = consensus(labels, 3)
    assert metrics.accuracy(y, found) > 0.95 > np.mean([metrics.accuracy(y, own) for own in labels])
    renamed = np.stack([(own + 1) % 3 for own in labels])
    assert metrics.ari(found, consensus(renamed, 3)) == 1


def test_neighbors_help_where_members_are_poor():
    X, y = blobs(150, k=3)
    labels, graph = members(y, count=5, wrong=0.6), neighbor_graph([torch.from_numpy(X)])
    assert metrics.accuracy(y, consensus(labels, 3, graph)) > metrics.accuracy(y, consensus(labels, 3))


def test_the_graph_is_scikit_learns():
    views = [np.random.default_rng(i).normal(size=(40, 3)) for i in range(2)]
    edges = sum(kneighbors_graph(view, 4) for view in views)
    expected = (edges + edges.T).toarray()
    graph = neighbor_graph([torch.from_numpy(view) for view in views], 4)
    np.testing.assert_allclose(graph.toarray(), expected / expected.sum(1, keepdims=True))


def test_votes_are_shares_of_members():
    y = np.arange(90) % 3
    shares = vote_shares(members(y), y, 3)
    np.testing.assert_allclose(shares.sum(1), 1)
    assert (shares.argmax(1) == y).mean() > 0.95
    np.testing.assert_allclose(vote_shares(np.stack([y, (y + 2) % 3]), y, 3), np.eye(3)[y])


def test_memberships_are_one_hot_side_by_side():
    labels = np.array([[0, 1, 1], [2, 0, 1]])
    assert memberships(labels).toarray().tolist() == [[1, 0, 0, 0, 1], [0, 1, 1, 0, 0], [0, 1, 0, 1, 0]]


def test_the_normalized_cut_is_the_mean_share_of_neighbors_in_other_clusters():
    rng = np.random.default_rng(0)
    graph, labels = neighbor_graph([torch.from_numpy(rng.normal(size=(60, 3)))]), rng.integers(3, size=60)
    outside = [1 - graph[labels == k][:, labels == k].sum(1).mean() for k in range(3)]
    assert normalized_cut(labels, graph) == pytest.approx(np.mean(outside))
