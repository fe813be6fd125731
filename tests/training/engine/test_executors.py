"""Stacked replicas compute what each computes alone, whatever their objectives hold."""

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import pytest
import torch
from support import blobs, small_settings
from torch import nn
from torch.nn.utils import parametrizations

from reclust import (
    Autoencoder,
    DECObjective,
    Every,
    Execution,
    IDECObjective,
    train,
    value,
)
from reclust.interventions import ResetMomentum
from reclust.objectives import GradientOnly
from reclust.representations import weights

X, Y = blobs()
X = blobs(80)[0].astype(np.float32)


def exact(executor):
    return Execution(device="cpu", precision="float64", executor=executor)


class Own(GradientOnly):
    weight, representation_weight, per_cluster, trainable = 1.0, 0.0, frozenset(), frozenset({"centers"})

    def init(self, centers):
        return {"centers": centers}

    def assign(self, state, z):
        return torch.cdist(z, state["centers"]).argmin(-1)


@value
class Tempered(Own):
    temperature: float = 1.0

    @cached_property
    def sharpness(self):
        return 1 / self.temperature

    def loss(self, state, z):
        return (torch.cdist(z.flatten(0, 1), state["centers"]).amin(-1).mean() * self.sharpness).tanh()


def _own(sign):
    def loss(self, state, z):
        return torch.cdist(z.flatten(0, 1), state["centers"]).amin(-1).mean()

    def edited(self, state, z):
        return -torch.cdist(z.flatten(0, 1), state["centers"]).amin(-1).mean()

    return value(type("Edited", (Own,), {"loss": loss if sign > 0 else edited, "__module__": __name__, "__qualname__": "Edited"}))


def test_what_an_objective_derives_from_its_numbers_is_each_replicas_own():
    settings = [small_settings(objective=Tempered(temperature=number)) for number in (0.1, 10.0)]
    stacked = train(X, settings, seeds=[1, 1], execution=Execution(executor="vmap"))
    for i, one in enumerate(settings):
        alone = train(X, one, seeds=[1])
        np.testing.assert_allclose(stacked.history["clustering"]["loss"].values[:, i], alone.history["clustering"]["loss"].values[:, 0], rtol=1e-5)


def test_objectives_with_slots_stack():
    import dataclasses

    kind = dataclasses.dataclass(frozen=True, slots=True)(type("Slotted", (Own,), {"loss": _own(1).loss, "__module__": __name__}))
    assert train(X, small_settings(objective=kind()), seeds=[1, 2]).labels.shape == (2, 80)


def test_layers_that_vmap_cannot_map_are_named_with_a_remedy():
    class Spectral(Autoencoder):
        def build(self, sample_shape, n_clusters):
            net = super().build(sample_shape, n_clusters)
            parametrizations.spectral_norm(next(layer for layer in net.encoder if isinstance(layer, nn.Linear)))
            return net

        def initial_weights(self, net, key, dtype):
            return weights.expanded_weights(net, key, dtype=dtype)

    value(Spectral)
    with pytest.raises(RuntimeError, match="cannot be mapped over replicas.*executor='plain'"):
        train(X, small_settings(representation=Spectral((8,)), intervention=Every(1, (ResetMomentum(),))), seeds=[1, 2], execution=Execution(executor="vmap"))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_replicas_with_and_without_the_representations_loss_train_side_by_side(order):
    both = [small_settings(objective=objective, intervention=None) for objective in (DECObjective(), IDECObjective())]
    plain, mapped = (train(X, [both[i] for i in order], seeds=(1, 2), execution=exact(executor)) for executor in ("plain", "vmap"))
    for name, stack in plain.parameters.items():
        torch.testing.assert_close(stack, mapped.parameters[name])


@value
class Pull(GradientOnly):
    """Towards a point."""

    point: object
    trainable: ClassVar = frozenset({"centers"})
    per_cluster: ClassVar = frozenset({"centers"})
    weight = 1.0
    representation_weight = 1.0

    def init(self, centers):
        return {"centers": centers}

    def loss(self, state, z):
        return (z - self.point).square().mean()

    def assign(self, state, z):
        return torch.cdist(z, state["centers"]).argmin(-1)


@pytest.mark.parametrize("executor", ["plain", "vmap"])
def test_objectives_that_hold_tensors_train_side_by_side(executor):
    settings = [replace(small_settings(), objective=Pull(torch.ones(4, dtype=torch.float64))) for _ in range(2)]
    result = train(X, settings, seeds=(1, 2), execution=exact(executor))
    alone = train(X, settings[1], seeds=(2,), execution=exact(executor))
    np.testing.assert_allclose(result.history["clustering"]["loss"].values[:, 1:], alone.history["clustering"]["loss"].values)
    other = replace(settings[0], objective=Pull(torch.zeros(4, dtype=torch.float64)))
    with pytest.raises(ValueError, match="must agree in objective.point"):
        train(X, [settings[0], other], seeds=(1, 2))
