"""Samples that belong nowhere are found by the shapes of clusters."""

import numpy as np
import pytest
import torch
from sklearn.covariance import empirical_covariance
from sklearn.datasets import make_blobs
from sklearn.metrics import roc_auc_score

from reclust import IDEC, Reclust, load
from reclust.ensemble.outliers import OUTLYING, ClusterShapes


def test_the_score_is_the_largest_log_density_of_shrunken_gaussians():
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 2
    x = rng.normal(size=(80, 3)) * [1, 2, 3] + 5 * labels[:, None]
    shapes = ClusterShapes.fit(x, labels, 2)
    means = np.stack([x[labels == c].mean(0) for c in (0, 1)])
    pooled = empirical_covariance(x - means[labels], assume_centered=True)
    pooled += (1e-3 * np.trace(pooled) / 3 + 1e-12) * np.eye(3)
    slow = []
    for c in (0, 1):
        shape = (40 * empirical_covariance(x[labels == c]) + 6 * pooled) / 46 + 1e-3 * pooled
        slow.append([row @ np.linalg.solve(shape, row) + np.log(np.linalg.det(shape)) - 2 * np.log(0.5) for row in x - means[c]])
    slow = np.min(slow, 0)
    low, middle, high = np.percentile(slow, (25, 50, 75))
    np.testing.assert_allclose(shapes.score(torch.from_numpy(x)), (slow - middle) / max(high - middle, middle - low), atol=1e-8)


@pytest.mark.parametrize("model", [Reclust(3, effort="quick", random_state=0), IDEC(3, epochs=2, pretrain_epochs=2, intervention=None, random_state=0)])
def test_noise_is_found(model, tmp_path):
    X, _ = make_blobs(300, 6, centers=3, random_state=0)
    noise = np.random.default_rng(0).uniform(X.min(), X.max(), size=(15, 6))
    model.fit(np.concatenate([X, noise])).save(tmp_path / "a.reclust")
    assert roc_auc_score(np.arange(315) >= 300, model.outlier_score_) > 0.95
    far = np.full((1, 6), 100.0)
    assert model.predict(far, outliers=-1).tolist() == [-1] and model.predict(far)[0] >= 0
    again = load(tmp_path / "a.reclust")
    np.testing.assert_array_equal(again.outlier_score_, model.outlier_score_)
    np.testing.assert_array_equal(again.predict(noise, outliers=-1) == -1, model.outlier_score_[300:] > OUTLYING)
    assert (model.predict(X, outliers=-1) == -1).mean() < 0.05


def test_constant_and_tiny_data_have_finite_scores():
    for x in (np.ones((5, 2)), np.arange(4.0)[:, None], np.ones((1, 3))):
        assert ClusterShapes.fit(x, np.zeros(len(x), dtype=int), 1).score(torch.from_numpy(x)).isfinite().all()
