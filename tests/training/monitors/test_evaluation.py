"""Scores and label change over training."""

import pytest
from support import blobs, small_settings

import reclust
from reclust import Evaluation, Execution, train

X, Y = blobs(n=60)
SEEDS = (3, 1, 4)
EXACT = Execution(device="cpu", precision="float64", executor="plain")


def test_evaluation_scores_what_the_run_ends_with():
    result = train(X, small_settings(), seeds=SEEDS, monitors=[Evaluation(Y, every=2)])
    curves = result.history["clustering"]
    assert curves["accuracy"].values[-1] == pytest.approx([reclust.metrics.accuracy(Y, own) for own in result.labels])
    assert curves["accuracy"].epochs.tolist() == [-1, 1, 2, 3, 4]  # every second one, after each reset, first and last
    assert (curves["label_change"].values >= 0).all()


def test_a_monitor_begins_anew_with_each_training():
    given, monitor = small_settings(pretraining=None, intervention=None), Evaluation(Y)
    first, second = (train(X, given, seeds=[0], execution=EXACT, monitors=[monitor]).history["clustering"]["label_change"] for _ in range(2))
    assert first.epochs.tolist() == second.epochs.tolist() and (first.values == second.values).all()
