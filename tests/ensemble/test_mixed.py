"""Mixtures of numbers and categories: scikit-learn's mixture without categories, Bayes' rule with them."""

import numpy as np
from sklearn.mixture import GaussianMixture
from support import blobs

from reclust import metrics
from reclust.ensemble.members import REGULARIZATION, mixed_type_mixture


def test_without_categories_it_is_scikit_learns_diagonal_mixture():
    X, y = blobs(200, k=3)
    X = (X - X.mean(0)) / X.std(0)
    noisy = np.where(np.arange(200) % 5, y, (y + 1) % 3)
    labels = mixed_type_mixture(X, np.zeros((200, 0)), noisy, 3)
    oracle = GaussianMixture(3, covariance_type="diag", reg_covar=REGULARIZATION, random_state=0).fit(X)
    assert metrics.ari(labels, oracle.predict(X)) == 1


def test_categories_alone_separate_classes():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    levels = np.concatenate([np.eye(2)[np.where(rng.random(400) < 0.9, y, 1 - y)] for _ in range(6)] + [np.ones((400, 1))], 1)
    start = np.where(rng.random(400) < 0.7, y, 1 - y)
    labels = mixed_type_mixture(np.zeros((400, 0)), levels, start, 2)
    majority = levels[:, 1:12:2].sum(1)  # Bayes' rule for equally good columns
    clear = majority != 3
    assert (labels == (majority > 3))[clear].all() and metrics.accuracy(y, labels) > 0.95


def test_rows_of_shares_are_neutral():
    y = np.arange(60) % 2
    levels = np.eye(2)[y]
    levels[:6] = 0.5
    z = np.where(y, 2.0, -2.0)[:, None]
    assert (mixed_type_mixture(z, levels, y, 2) == y).all()
