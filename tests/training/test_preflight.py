"""Parts of one's own, and places to call the library from, that are seldom seen."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pytest
import torch
from support import blobs, small_settings
from torch import nn
from torch.nn.utils import parametrizations

from reclust import (
    BRB,
    IDEC,
    Autoencoder,
    Checkpoint,
    Every,
    Execution,
    IDECObjective,
    Recluster,
    Step,
    Target,
    train,
    value,
)
from reclust.estimators.selection import Silhouette
from reclust.interventions import (
    NativeRecluster,
    RecomputeCenters,
    ResetMomentum,
    SplitMerge,
)
from reclust.objectives import GradientOnly
from reclust.representations import weights
from reclust.representations.autoencoder import EncoderDecoder
from reclust.representations.base import build_network, encoder_blocks
from reclust.utils.values import from_json, to_json

X = blobs(80)[0].astype(np.float32)


def test_attention_without_dropout_and_seeds_put_back_are_no_draws():
    def forked(x, keys):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return x + torch.rand_like(x)

    before = torch.get_rng_state()
    train(X, small_settings(augment=forked), seeds=[1])
    assert torch.equal(before, torch.get_rng_state())
    with pytest.raises(ValueError, match="The augmentation draws from torch's global generator"):
        train(X, small_settings(augment=lambda x, keys: x + torch.rand_like(x)), seeds=[1])
    assert torch.equal(before, torch.get_rng_state())


class Own(GradientOnly):
    weight, representation_weight, per_cluster, trainable = 1.0, 0.0, frozenset(), frozenset({"centers"})

    def init(self, centers):
        return {"centers": centers}

    def assign(self, state, z):
        return torch.cdist(z, state["centers"]).argmin(-1)


class Drawing(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(12, 4)
        self.register_buffer("frequencies", torch.randn(3))
        self.order, self.some, self.more = torch.randperm(4), torch.rand_like(torch.ones(2)), torch.randint(0, 9, (3,))
        nn.init.sparse_(self.linear.weight, 0.5)

    def forward(self, x):
        return self.linear(x)


def test_networks_are_built_without_the_callers_random_state():
    @value
    class Building(Autoencoder):
        def build(self, sample_shape, n_clusters):
            return EncoderDecoder(Drawing(), nn.Linear(4, 12))

    before = torch.get_rng_state()
    first, second = (build_network(Building(), (12,), 4, torch.float32) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first.encoder.frequencies, second.encoder.frequencies) and first.encoder.frequencies.std() > 0


@value
class Tempered(Own):
    temperature: float = 1.0

    @cached_property
    def sharpness(self):
        return 1 / self.temperature

    def loss(self, state, z):
        return (torch.cdist(z.flatten(0, 1), state["centers"]).amin(-1).mean() * self.sharpness).tanh()


def test_what_an_objective_derives_from_its_numbers_is_each_replicas_own():
    settings = [small_settings(objective=Tempered(temperature=number)) for number in (0.1, 10.0)]
    stacked = train(X, settings, seeds=[1, 1], execution=Execution(executor="vmap"))
    for i, one in enumerate(settings):
        alone = train(X, one, seeds=[1])
        np.testing.assert_allclose(stacked.history["clustering"]["loss"].values[:, i], alone.history["clustering"]["loss"].values[:, 0], rtol=1e-5)


class MyNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return self.scale * (x - x.mean(-1, keepdim=True)) + self.shift


@pytest.mark.parametrize("last", [
    lambda: [parametrizations.weight_norm(nn.Linear(8, 4))], lambda: [parametrizations.spectral_norm(nn.Linear(8, 4))],
    lambda: [parametrizations.weight_norm(nn.Linear(8, 4, bias=False))], lambda: [nn.Linear(8, 4), MyNorm(4)],
], ids=["weight norm", "spectral norm", "without a bias", "own norm"])
def test_the_embedding_layer_is_left_alone_with_all_that_belongs_to_it(last):
    encoder = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), *last())
    assert list(encoder_blocks(encoder)) == ["layer1", "embedding"]
    centers = torch.zeros(3, 4)
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    target = Target.of(encoder, centers, embed=lambda: encoder(torch.from_numpy(X)))
    BRB(20)(1, target)
    assert all(torch.equal(before[name], tensor) for name, tensor in encoder.state_dict().items())  # nothing fired
    BRB(20)(20, target)
    changed = {name for name, tensor in encoder.state_dict().items() if not torch.equal(before[name], tensor)}
    assert {"0.weight", "0.bias"} <= changed and not {name for name in changed if "original" in name or name.endswith(("scale", "2.weight"))}


def test_fans_are_those_of_the_weights():
    for layer in (nn.Linear(7, 3), nn.Conv2d(6, 4, (3, 2), groups=2), nn.ConvTranspose2d(6, 4, 3, groups=2), nn.Conv1d(5, 5, 4)):
        assert weights.fan_in(layer) == np.prod(layer.weight.shape[1:])


def _own(sign):
    def loss(self, state, z):
        return torch.cdist(z.flatten(0, 1), state["centers"]).amin(-1).mean()

    def edited(self, state, z):
        return -torch.cdist(z.flatten(0, 1), state["centers"]).amin(-1).mean()

    return value(type("Edited", (Own,), {"loss": loss if sign > 0 else edited, "__module__": __name__, "__qualname__": "Edited"}))


def test_objectives_with_slots_stack():
    import dataclasses

    kind = dataclasses.dataclass(frozen=True, slots=True)(type("Slotted", (Own,), {"loss": _own(1).loss, "__module__": __name__}))
    assert train(X, small_settings(objective=kind()), seeds=[1, 2]).labels.shape == (2, 80)


def test_values_of_a_cell_that_was_run_again_are_written():
    first, again = _own(1)(), _own(1)
    assert type(from_json(to_json(first))) is again


def picky(z, k, key):
    if not z.isfinite().all():
        raise ValueError("Input X contains NaN.")
    return z[..., :k, :].clone()


@pytest.mark.filterwarnings("ignore:The loss of the replica")
def test_a_replica_that_failed_does_not_stop_the_method_of_the_others():
    settings = [small_settings(objective=IDECObjective(weight), intervention=Every(1, (Recluster(picky),)))
                for weight in (1.0, 1e39)]
    result = train(X, settings, seeds=[1, 2])
    assert set(result.failed) == {1} and torch.isfinite(result.state["centers"][0]).all()


@value
class Twice(Step):
    """Notes one tensor under two names, or what is none."""

    tensors: bool = True

    def __call__(self, target):
        target.memory["labels"] = target.centers.detach().clone() if self.tensors else 3
        target.memory["first"] = target.memory["labels"]


def test_notes_of_interventions_are_kept_whatever_they_share(tmp_path):
    def run(step):
        return train(X, small_settings(intervention=Every(1, (step,))), seeds=[1], checkpoint=Checkpoint(tmp_path / f"{step.tensors}", every=1))

    run(Twice())


def own_loop(**given):
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 4))
    centers = nn.Parameter(torch.randn(3, 4, generator=torch.Generator().manual_seed(0)))
    return encoder, centers, lambda **more: Target.of(encoder, centers, **{"embed": lambda: encoder(torch.from_numpy(X))} | given | more)


@pytest.mark.parametrize("step", [NativeRecluster(), RecomputeCenters(), SplitMerge(probability=1.0), Recluster()], ids=lambda step: type(step).__name__)
def test_half_centres_and_autocast_are_welcome(step):
    encoder, centers, target = own_loop()
    with torch.no_grad():
        Every(1, (step,))(1, target())
        plain = centers.detach().clone()
        centers.copy_(torch.randn(3, 4, generator=torch.Generator().manual_seed(0)))
        with torch.autocast("cpu", torch.bfloat16, enabled=True):
            z = nn.functional.linear(torch.ones(1, 1), torch.ones(1, 1))
            assert z.dtype == torch.bfloat16
            exact = torch.from_numpy(X)
            with torch.autocast("cpu", enabled=False):
                exact = encoder(exact)
            Every(1, (step,))(1, target(embed=lambda: exact))
        torch.testing.assert_close(centers.detach(), plain)
        half = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).half()
        Every(1, (step,))(1, Target.of(encoder, half, embed=lambda: exact))
        assert half.isfinite().all()


def test_a_fit_and_its_answers_are_the_same_inside_autocast():
    def answers():
        model = IDEC(3, n_init=2, epochs=6, pretrain_epochs=2, intervention=BRB(2), random_state=0, device="cpu", select=Silhouette()).fit(X)
        return model.labels_, model.transform(X), model.predict_proba(X), model.predict(X[:7]), [one.score for one in model.replicas_]

    plain = answers()
    with torch.autocast("cpu", torch.bfloat16):
        inside = answers()
    for one, other in zip(plain, inside, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode], ids=lambda one: one.__name__)
def test_training_is_the_same_wherever_it_is_called_from(around):
    plain = train(X, small_settings(intervention=BRB(2)), seeds=[1])
    with around():
        again = train(X, small_settings(intervention=BRB(2)), seeds=[1])
    assert (plain.labels == again.labels).all() and all(torch.equal(plain.parameters[name], own) for name, own in again.parameters.items())


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
