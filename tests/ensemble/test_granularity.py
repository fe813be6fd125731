"""Agreement of clusterings by the number of clusters."""

import matplotlib
import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score
from support import blobs

from reclust import KSuggestion
from reclust.ensemble.consensus import agreement, consensus
from reclust.ensemble.granularity import candidate_ks, labelings, without_clusters

matplotlib.use("Agg")
CPU = torch.device("cpu")


@pytest.mark.parametrize(("n", "range_", "ks"), [
    (200, (), (2, 3, 4, 5, 6, 7, 8, 9, 10)), (8, (), (2,)), (5, (), (2,)), (1000, (3, 13), (3, 4, 5, 6, 7, 8, 9, 10, 12, 13)),
    (100, (4, 4), (4,)), (100, (11,), (11,))])
def test_numbers_to_try(n, range_, ks):
    assert candidate_ks(n, *range_) == ks


@pytest.mark.parametrize(("agreement", "k"), [
    ((0.9, 0.2, 0.7, 0.8, 0.6), 5),  # (0.7 + 0.8 + 0.6) / 3 is the highest mean of three
    ((1.0, 0.96, 1.0, 0.8, 0.6), 4), ((1.0, 0.5, 0.5, 0.5, 0.985), 6), ((1.0, 0.5, 0.5, 0.5, 0.96), 2), ((0.5, 1.0, 0.5, 0.951, 0.6), 3), ((0.9, 0.8, 0.7, 0.6, 0.5), 2)])
def test_the_largest_perfect_number_or_the_highest_peak_wins(agreement, k):
    found = KSuggestion((2, 3, 4, 5, 6), np.array(agreement), 0.3, 100)
    assert found.k == k and found.at_k == agreement[k - 2] and found.clear
    assert f"{k} clusters" in str(found) and str(found).count("<-") == 1


@pytest.mark.parametrize(("agreed", "chance", "clear"), [
    (0.7, 0.5, True), (0.7, 0.64, True), (0.7, 0.66, False), (0.7, 0.9, False), (0.7, np.nan, True),
    (1.0, 0.98, True), (0.99, 0.98, False), (1.0, 1.0, False)])
def test_agreement_as_without_clusters_is_no_evidence(agreed, chance, clear):
    found = KSuggestion((2, 3), np.array([agreed, agreed]), chance, 100)
    assert found.clear == clear and ("no separate clusters" in str(found)) == (not clear)
    assert len(found.plot().lines) == 3


def test_larger_numbers_are_looked_at_if_one_is_nearly_perfect():
    larger = KSuggestion((2, 3, 4, 5), np.array([0.99, 0.955, 0.965, 0.5]), 0.95, 100).larger
    assert larger is not None and larger.ks == (3, 4, 5) and larger.k == 4
    assert KSuggestion((2, 3, 4), np.array([0.98, 0.94, 0.9]), 0.95, 100).larger is None


def test_agreement_is_the_mean_index_with_the_consensus():
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((5, 60)) < 0.2, rng.integers(3, size=(5, 60)), np.arange(60) % 3)
    agreed = consensus(labels, 3)
    assert agreement(labels, 3) == pytest.approx(np.mean([adjusted_rand_score(agreed, member) for member in labels]))


def test_every_view_is_clustered():
    X, _ = blobs(60, 4, 3)
    views = {"a": X.astype(np.float64), "b": np.arcsinh(X)}
    assert labelings(views, 3, 0, CPU, mixtures=False).shape == (2, 60)
    assert labelings(views, 3, 0, CPU, mixtures=True).shape == (2, 60)


def test_rows_without_clusters_have_the_same_covariance():
    X, _ = blobs(1500, 3, 2)
    made = without_clusters(X, 0)
    np.testing.assert_allclose(np.cov(made.T), np.cov(X.T), rtol=0.2, atol=0.2 * np.abs(np.cov(X.T)).max())
