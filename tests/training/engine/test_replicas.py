"""Stacked tensors of replicas."""

import numpy as np
import pytest
import torch
from support import blobs, small_settings

import reclust
from reclust import (
    Autoencoder,
    DECObjective,
    Execution,
    IDECObjective,
    Schedule,
    Settings,
    TrainingFailed,
    train,
)
from reclust.training.engine import replicas
from reclust.training.engine.replicas import Replicas

X, Y = blobs(n=60)


def exact(executor):
    return Execution(device="cpu", precision="float64", executor=executor)


def test_a_state_that_is_not_finite_is_noticed():
    replicas = Replicas.create(Autoencoder(hidden=(4,)), (12,), 4, seeds=[0, 1], device=torch.device("cpu"), dtype=torch.float64)
    replicas.start_objectives([DECObjective()] * 2, torch.zeros(2, 4, 4, dtype=torch.float64))
    assert replicas.finite().all()
    replicas.state["centers"].detach()[1, 0, 0] = torch.nan
    assert replicas.finite().tolist() == [True, False]


def test_networks_that_no_memory_holds_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(replicas, "memory_limit", lambda device: 2**30)
    settings = Settings(2, IDECObjective(), Autoencoder(), pretraining=None, clustering=Schedule(1))
    with pytest.raises(TrainingFailed, match=r"samples of shape \(3, 400, 400\) does not fit into the memory.*--size 64 64"):
        train(torch.zeros(4, 3, 400, 400), settings, seeds=[0])


def test_weights_given_in_another_order_of_memory_train_as_their_copies():
    def losses(order, seeds):
        encoder, decoder = torch.nn.Linear(X.shape[1], 4), torch.nn.Linear(4, X.shape[1])
        weight = torch.arange(4.0 * X.shape[1]).reshape(X.shape[1], 4).sin()
        encoder.weight.data, decoder.weight.data = order(weight.t()), order(weight.t()).t().contiguous()
        own = small_settings(intervention=None, representation=reclust.OwnAutoencoder(encoder, decoder, weights="given"))
        return train(X, own, seeds=seeds, execution=exact("plain")).history["clustering"]["loss"].values

    torch.manual_seed(0)
    state = torch.get_rng_state()
    permuted, copied = (torch.set_rng_state(state) or losses(order, (1, 2)) for order in (lambda t: t, torch.Tensor.contiguous))
    np.testing.assert_allclose(permuted, copied, rtol=1e-9)
