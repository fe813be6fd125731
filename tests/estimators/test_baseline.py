"""K-means next to a fit."""

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.datasets import load_digits, load_wine
from support import blobs

import reclust
from reclust.data.accept import accept
from reclust.data.preparation import Preparation
from reclust.estimators.baseline import in_common_units, k_means_baseline

X, Y = blobs(n=120)


def test_the_baseline_is_k_means_on_the_standardized_samples(monkeypatch):
    preparation = Preparation.fit(accept(X), standardize=True)
    made = k_means_baseline(X, preparation, 4, seed=0, device=torch.device("cpu"))
    standardized = (X - X.mean(0)) / X.std(0)
    assert made.inertia_ == pytest.approx(SklearnKMeans(4, n_init=10, random_state=0).fit(standardized).inertia_, rel=0.01)
    assert made.labels_.shape == (120,) and made.cluster_centers_.shape == (4, 12)
    monkeypatch.setattr("reclust.estimators.baseline.MAX_ROWS", 50)
    part = k_means_baseline(X, preparation, 4, seed=0, device=torch.device("cpu"))
    own = part.cluster_centers_[part.labels_]
    assert part.labels_.shape == (120,) and ((standardized - own) ** 2).sum() == pytest.approx(part.inertia_, rel=1e-4)


def test_no_more_of_the_samples_becomes_dense_for_it_than_it_looks_at(monkeypatch):
    monkeypatch.setattr("reclust.estimators.baseline.MAX_NUMBERS", 50 * 12)
    monkeypatch.setattr("reclust.estimators.baseline.rows_at_once", lambda *_: 6)
    seen, load = [], Preparation.network_input
    monkeypatch.setattr(Preparation, "network_input", lambda self, rows, *on: seen.append(rows.shape[0]) or load(self, rows, *on))
    preparation = Preparation.fit(accept(X), standardize=True)
    made = k_means_baseline(sparse.csr_matrix(X), preparation, 4, seed=0, device=torch.device("cpu"))
    assert max(seen) == 6 and sum(seen) == 50 + 120, "of 12 numbers each; then all, to be labelled"
    assert reclust.metrics.ari(made.labels_, Y) > 0.9


def test_the_scaling_with_more_structure_is_used():
    digits, wine = load_digits(), load_wine()
    for data, standardize in ((digits, False), (wine, True)):
        made = k_means_baseline(data.data, Preparation.fit(accept(data.data), standardize=True), len(data.target_names), seed=0, device=torch.device("cpu"))
        assert bool((made.weights_ == 1).all()) == standardize
    plain = SklearnKMeans(3, n_init=10, random_state=0).fit_predict((wine.data - wine.data.mean(0)) / wine.data.std(0))
    assert reclust.metrics.ari(made.labels_, plain) > 0.95
    x = torch.from_numpy((wine.data - wine.data.mean(0)) / wine.data.std(0))
    assert (made.assign(x).numpy() == made.labels_).all()


def test_columns_of_one_unit_are_divided_by_one_number_unless_one_of_them_dominates():
    rng = np.random.default_rng(0)
    groups = 6 * rng.normal(size=(3, 12))[rng.integers(3, size=300)] + rng.normal(size=(300, 12))
    pixels = np.column_stack([groups, 0.01 * rng.normal(size=(300, 40)), np.ones(300)])
    different = groups * np.geomspace(1, 1e4, 12)
    for X, together in ((pixels, True), (different, False)):
        found = in_common_units(Preparation.fit(accept(X), standardize=True), X, 3)
        scale = found.first.scale[np.isfinite(found.first.scale)]
        assert len(scale) == X.shape[1] - together and (np.ptp(scale) == 0) == together
        assert found.network_input(X).isfinite().all()
