"""Trees of clusters: cut at the fitted number they give the clusters, elsewhere nested ones."""

import numpy as np
import pytest
import torch
from scipy.cluster.hierarchy import cut_tree, is_valid_linkage, linkage
from sklearn.datasets import make_blobs
from support import blobs

from reclust import IDEC, Reclust, load
from reclust.ensemble.tree import cluster_tree, cut, parts_of, similarity


def test_similarity_is_the_share_of_pairs_that_others_put_together():
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 3
    others = [rng.integers(4, size=30), np.where(rng.random(30) < 0.3, -1, rng.integers(3, size=30))]
    slow = np.zeros((2, 3, 3))
    for m, other in enumerate(others):
        for a in range(3):
            for b in range(3):
                pairs = [other[i] == other[j] for i in range(30) for j in range(30)
                         if labels[i] == a and labels[j] == b and other[i] >= 0 and other[j] >= 0]
                slow[m, a, b] = np.mean(pairs)
    np.testing.assert_allclose(similarity(labels, others, 3), slow.mean(0))


def test_clusters_are_between_their_parts_and_what_they_merge_into():
    z, labels = blobs(200, 5, 4)
    leaves, cluster_of = parts_of(torch.from_numpy(z), labels, 4)
    similar = np.array([[1, 0.8, 0.1, 0.1], [0.8, 1, 0.1, 0.1], [0.1, 0.1, 1, 0.5], [0.1, 0.1, 0.5, 1]])
    tree = cluster_tree(similar, leaves.numpy(), cluster_of)
    assert is_valid_linkage(tree) and len(leaves) == 16
    for k in range(1, 17):
        finer, coarser = cut(tree, k), cut(tree, max(1, k - 1))
        assert len(np.unique(finer)) == k
        assert len({*zip(finer, coarser, strict=True)}) == k, "each is inside one of the coarser ones"
    assert len({*zip(cut(tree, 4), cluster_of, strict=True)}) == 4
    two = cut(tree, 2)
    assert {frozenset(cluster_of[two == side].tolist()) for side in (0, 1)} == {frozenset({0, 1}), frozenset({2, 3})}


@pytest.mark.parametrize("decimals", [0, 1, 16])  # few give ties
def test_cuts_are_those_of_scipy(decimals):
    rng = np.random.default_rng(decimals)
    for n in (2, 3, 10, 60):
        tree = linkage(rng.random((n, 2)).round(decimals), "average")
        for k in range(1, n + 1):
            np.testing.assert_array_equal(cut(tree, k), cut_tree(tree, k).ravel())
    assert cut(np.zeros((0, 4)), 1).tolist() == [0]


def test_cutting_takes_time_that_grows_with_the_tree():
    """A chain is the deepest tree; scipy's cut takes minutes."""
    n = 20_000
    chain = np.c_[np.r_[0, np.arange(n, 2 * n - 2)], np.arange(1, n), np.arange(n - 1), np.arange(2, n + 1)].astype(float)
    np.testing.assert_array_equal(cut(chain, 3), np.r_[np.zeros(n - 2), 1, 2])


@pytest.mark.parametrize("model", [Reclust(3, effort="quick", random_state=0), IDEC(3, epochs=2, pretrain_epochs=1, intervention=None, random_state=0)])
def test_fitted_models_are_cut(model, tmp_path):
    X, _ = make_blobs(150, 5, centers=3, random_state=0)
    model.fit(X).save(tmp_path / "a.reclust")
    again = load(tmp_path / "a.reclust")
    own = model.cut(model.n_clusters_)
    assert (own == model.labels_).all() and own is not model.labels_
    for k in range(1, len(model.tree_) + 2):
        labels = model.cut(k)
        assert len(np.unique(labels)) == k and (again.cut(k) == labels).all()
        pairs = {*zip(labels, model.labels_, strict=True)}
        assert len(pairs) == max(k, model.n_clusters_), "nested"
    with pytest.raises(ValueError, match="tree of this fit has 1 to"):
        model.cut(10_000)
