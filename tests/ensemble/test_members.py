"""Members: mixtures are scikit-learn's, seeds matter, failed replicas are left out."""

import numpy as np
import torch
from sklearn.mixture import GaussianMixture as Oracle
from support import blobs

from reclust import Execution, Neighbors, draws, metrics
from reclust.data.inputs import as_inputs
from reclust.ensemble.members import (
    Member,
    MemberTraining,
    kmeans_members,
    mixture_members,
    neighbor_settings,
    trained_members,
    voters,
)
from reclust.interventions.reclustering.mixture import GaussianMixture

CPU = torch.device("cpu")
TRAINING = MemberTraining(3, Execution(device="cpu"), CPU)


def test_labels_of_mixtures_are_scikit_learns():
    X, y = blobs(150, k=3)
    labels = GaussianMixture(1, regularization=1e-3).labels(torch.from_numpy(X)[None], 3, draws.key([0]))[0][0, 0].numpy()
    expected = Oracle(3, reg_covar=1e-3, random_state=0).fit_predict(X)
    assert metrics.ari(labels, expected) == 1 and metrics.ari(labels, y) > 0.95


def test_every_view_and_seed_is_a_member():
    X = blobs(60, k=3)[0]
    found = [*mixture_members({"one": X, "two": X**3}, 3, range(2), CPU), *kmeans_members(torch.from_numpy(X), "rows", 3, range(3))]
    assert [(one.view, one.seed) for one in found] == [("one", 0), ("two", 0), ("one", 1), ("two", 1), *(("rows", i) for i in range(3))]
    assert all(one.labels.shape == (60,) and one.failed is None for one in found)


def test_networks_are_members_and_repeat_themselves():
    X, y = blobs(60, k=3)
    settings = neighbor_settings(Neighbors((16,), 4), 3, 60, steps=40, batch_size=30)
    assert settings.pretraining.epochs == 20
    inputs = as_inputs(X.astype(np.float32))
    runs = [list(trained_members(inputs, settings, [0, 1], "network", "rows", TRAINING)) for _ in range(2)]
    assert [one.seed for one in runs[0]] == [0, 1]
    for one, again in zip(*runs, strict=True):
        assert (one.labels == again.labels).all() and metrics.ari(y, one.labels) > 0.9


def test_the_better_half_of_each_method_votes():
    scores = {"a": [0.1, 0.3, 0.2], "b": [0.9, 0.8], "c": [float("nan")] * 2}
    members = [Member(method, "rows", seed, np.zeros(2), score)
               for method, given in scores.items() for seed, score in enumerate(given)]
    assert [(one.method, one.seed) for one in voters(members)] == [
        ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1)]
