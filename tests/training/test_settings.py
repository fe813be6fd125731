"""Settings are checked when they are made, and those of one run must agree."""

from dataclasses import replace

import pytest
from support import blobs, small_settings

from reclust import (
    Autoencoder,
    Checkpoint,
    DCNObjective,
    Execution,
    Schedule,
    train,
)

X, Y = blobs()


@pytest.mark.parametrize(("change", "message"), [
    ({"objective": DCNObjective()}, "must agree in the class of the objective"),
    ({"clustering": Schedule(epochs=7)}, "must agree in clustering"),
    ({"representation": Autoencoder((8,))}, "must agree in representation"),
])
def test_variants_that_cannot_be_stacked_are_refused(change, message):
    base = small_settings()
    with pytest.raises(ValueError, match=message):
        train(X, [base, replace(base, **change)], seeds=[0, 1])
    with pytest.raises(ValueError, match="must agree in objective.rate"):
        train(X, [small_settings(objective=DCNObjective(rate=rate)) for rate in ("constant", "counts")], seeds=[0, 1])


def test_warm_up_rises_linearly_from_one_percent():
    schedule = Schedule(10, lr=2.0, warmup_epochs=4)
    assert [schedule.learning_rate(epoch) for epoch in (0, 2, 4, 9)] == pytest.approx([0.02, 1.01, 2.0, 2.0])


@pytest.mark.parametrize(("make", "message"), [
    (lambda: train(X[:3], small_settings(), seeds=[0]), "n_clusters=4 needs at least 4 samples, X has n_samples=3"),
    (lambda: train(X, small_settings(), seeds=[]), "give one seed or more"),
    (lambda: train(X, [small_settings()] * 2, seeds=[0]), "2 settings for 1 seed"),
    (lambda: train(X, small_settings(), seeds=[0], execution=Execution(device="abacus")), "device='abacus' cannot be used"),
    (lambda: Execution(precision="float8"), "precision must be one of"), (lambda: Execution(time_budget=0), "time_budget"),
    (lambda: Schedule(-1), "epochs must be"), (lambda: Schedule(1, lr=0), "lr must be above 0"),
    (lambda: Schedule(1, batch_size=0), "batch_size must be"), (lambda: Schedule(1, views=("dark",)), "views must be"),
    (lambda: Checkpoint("x", every=0), "every must be an integer"), (lambda: small_settings(n_clusters=0), "n_clusters must be"),
    (lambda: Autoencoder(hidden=(0,)), "at least 1"),
])
def test_mistakes_are_refused_before_training(make, message):
    with pytest.raises(ValueError, match=message):
        make()
