"""Custom networks and functions: how they train, what is refused, and how they are saved and loaded."""

import pickle
from dataclasses import replace
from functools import singledispatch

import numpy as np
import pytest
import torch
from support import blobs, small_settings
from torch import nn

import reclust
from reclust import (
    BRB,
    IDEC,
    Autoencoder,
    DECObjective,
    Every,
    Execution,
    KMeans,
    OwnAutoencoder,
    OwnSimCLR,
    Recluster,
    ReclustWarning,
    Result,
    Schedule,
    SoftReset,
    draws,
    train,
    value,
)
from reclust.representations import weights
from reclust.representations.layers import KeyedDropout

X, Y = blobs(n=80)
EXACT = {name: Execution(device="cpu", precision="float64", executor=name) for name in ("plain", "vmap")}


class Projection(nn.Module):
    """Owns its weight, and a buffer that a state_dict leaves out."""

    def __init__(self, wide, narrow):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(wide, narrow) / wide**0.5)
        self.register_buffer("gate", torch.rand(narrow) + 0.5, persistent=False)

    def forward(self, x):
        return x @ self.weight * self.gate


@weights.initial_distributions.register(Projection)
def _(layer):
    return {"weight": weights.Uniform(len(layer.weight) ** -0.5)}


ENCODERS = {
    "bare linear": lambda: nn.Linear(12, 4),
    "nested": lambda: nn.Sequential(nn.Sequential(Projection(12, 8), nn.Tanh()), nn.Linear(8, 4)),
    "PReLU and BatchNorm": lambda: nn.Sequential(nn.Linear(12, 8), nn.PReLU(), nn.BatchNorm1d(8), nn.Linear(8, 4)),
}
every = pytest.mark.parametrize("make", ENCODERS.values(), ids=ENCODERS)
shallow = pytest.mark.filterwarnings("ignore:SoftReset has nothing to reset")
"""For encoders with a single layer, which is the embedding."""


@pytest.fixture
def no_training(monkeypatch):
    monkeypatch.setattr("reclust.training.phase.Phase.run", lambda *_: pytest.fail("training had begun"))


def quick(**changes):
    given = {"n_clusters": 4, "pretrain_epochs": 2, "epochs": 3, "batch_size": 40, "intervention": BRB(2, method=KMeans(n_init=2)),
             "random_state": 0, "device": "cpu"}
    return IDEC(**{**given, **changes})


def quiet_settings(**changes):
    return small_settings(**{"pretraining": None, "intervention": None, "clustering": Schedule(epochs=1), **changes})


def tensors_of(module):
    return {name: tensor.detach().clone() for name, tensor in (*module.named_parameters(), *module.named_buffers())}


@shallow
@every
@pytest.mark.parametrize("start", ["fresh", "given"])
def test_they_train_stacked_as_alone_and_the_users_modules_are_left_alone(make, start):
    representation = OwnAutoencoder(make(), nn.Linear(4, 12), weights=start)
    modules = nn.ModuleList([representation.encoder, representation.decoder]).train()
    before, flags = tensors_of(modules), [(p.requires_grad, p.grad) for p in modules.parameters()]
    settings = small_settings(representation=representation)
    stacked, plain = (train(X, settings, seeds=(3, 1), execution=EXACT[name]) for name in ("vmap", "plain"))
    tolerance = 1e-6 if any(isinstance(module, nn.BatchNorm1d) for module in modules.modules()) else 1e-9
    for name, tensor in stacked.parameters.items():
        torch.testing.assert_close(tensor, plain.parameters[name], rtol=0, atol=tolerance)
    assert stacked.history["clustering"]["fired"].epochs.tolist() == [2, 4]
    assert all(torch.equal(tensor, before[name]) for name, tensor in tensors_of(modules).items())
    assert [(p.requires_grad, p.grad) for p in modules.parameters()] == flags and all(m.training for m in modules.modules())


def test_a_result_is_loaded_without_its_modules_and_used_with_them(tmp_path):
    representation = OwnAutoencoder(ENCODERS["nested"](), nn.Linear(4, 12))
    result = train(X, quiet_settings(representation=representation), seeds=(3, 1), execution=EXACT["vmap"])
    result.save(tmp_path / "r.reclust")
    loaded = Result.load(tmp_path / "r.reclust")
    with pytest.raises(ValueError, match="OwnAutoencoder"):
        loaded.model(1)
    loaded.settings = result.settings
    x = torch.from_numpy(X)
    assert torch.equal(loaded.model(1).embed(x), result.model(1).embed(x))


@shallow
@every
def test_a_model_is_loaded_with_modules_of_the_same_architecture(tmp_path, make):
    model = quick(representation=OwnAutoencoder(make(), nn.Linear(4, 12))).fit(X)
    model.save(tmp_path / "m.reclust")
    with pytest.raises(ValueError, match="representation="):
        reclust.load(tmp_path / "m.reclust")
    loaded = reclust.load(tmp_path / "m.reclust", representation=OwnAutoencoder(make(), nn.Linear(4, 12)))
    for method in ("predict", "predict_proba", "transform"):
        assert (getattr(loaded, method)(X) == getattr(model, method)(X)).all()
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.labels_).all()
    with pytest.raises(ValueError, match="names or shapes of its weights differ"):
        reclust.load(tmp_path / "m.reclust", representation=OwnAutoencoder(nn.Linear(12, 5), nn.Linear(4, 12)))


def shake(x, keys):
    return x + 0.1 * draws.normal(keys, x.shape[keys.ndim:], dtype=x.dtype)


def test_a_model_with_a_custom_augmentation_is_saved_and_loaded(tmp_path):
    model = quick(augment=shake, n_init=2, epochs=2, intervention=None).fit(X)
    model.save(tmp_path / "m.reclust")
    loaded = reclust.load(tmp_path / "m.reclust")
    for method in ("predict", "predict_proba", "transform"):
        assert (getattr(loaded, method)(X) == getattr(model, method)(X)).all()
    assert [replica.score for replica in loaded.replicas_] == [replica.score for replica in model.replicas_]
    with pytest.raises(ValueError, match="augment must be"):  # it has to be given again to fit anew
        loaded.fit(X)
    assert (loaded.set_params(augment=shake).fit(X).labels_ == model.labels_).all()


def tied():
    encoder, decoder = nn.Linear(12, 12), nn.Linear(12, 12)
    decoder.weight = encoder.weight
    return encoder, decoder


class ReturnsTuple(nn.Linear):
    def forward(self, x):
        return super().forward(x), None


@pytest.mark.parametrize(("modules", "message"), [
    (tied, "share a weight tensor"),
    (lambda: (nn.Sequential(nn.Linear(12, 8), nn.RReLU(), nn.Linear(8, 4)), nn.Linear(4, 12)), "dropout"),
    (lambda: (nn.Flatten(), nn.Linear(12, 12)), "encoder has no layer with weights"),
    (lambda: (nn.LazyLinear(4), nn.Linear(4, 12)), "encoder.weight belongs to a lazy layer"),
    (lambda: (nn.Linear(16, 4), nn.Linear(4, 12)), r"The encoder cannot take a tensor of shape \(2, 12\): .*Fit its first layer; nn.Flatten"),
    (lambda: (nn.Linear(12, 4), nn.Linear(5, 12)), r"The decoder cannot take a tensor of shape \(2, 4\): .*Fit its first layer"),
    (lambda: (nn.Linear(12, 4), nn.Linear(4, 13)), r"decoder.*\(2, 13\)"),
    (lambda: (nn.Sequential(nn.Linear(12, 4), nn.Unflatten(1, (2, 2))), nn.Linear(4, 12)), r"encoder.*\(2, 2, 2\)"),
    (lambda: (ReturnsTuple(12, 4), nn.Linear(4, 12)), "The encoder must return one tensor, got tuple"),
], ids=["tied", "dropout", "no weights", "lazy", "encoder", "decoder", "decoder's output", "no rows", "a tuple"])
@pytest.mark.parametrize("seeds", [(1,), (1, 2)], ids=["alone", "stacked"])
def test_modules_that_do_not_work_are_refused_before_training(no_training, modules, message, seeds):
    with pytest.raises(ValueError, match=message):
        train(X, small_settings(representation=OwnAutoencoder(*modules()), intervention=None), seeds=seeds)


@pytest.mark.parametrize(("module", "projector", "message"), [
    (nn.Linear(16, 4), None, r"The encoder cannot take a tensor of shape \(2, 12\)"), (nn.Linear(12, 4), nn.Linear(5, 3), r"The projector cannot take a tensor of shape \(2, 4\)")])
def test_contrastive_modules_that_do_not_fit_are_refused_before_training(no_training, module, projector, message):
    module.train()
    with pytest.raises(ValueError, match=message):
        train(X, small_settings(representation=OwnSimCLR(module, projector), intervention=None), seeds=(1,))
    assert module.training


class Strange(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(12, 4))

    def forward(self, x):
        return x @ self.weight


def test_layers_of_unknown_distribution_are_refused_before_training(no_training):
    with pytest.raises(TypeError, match="distributions of a Strange are unknown: register"):
        train(X, small_settings(representation=OwnAutoencoder(Strange(), nn.Linear(4, 12))), seeds=(0,))
    given = OwnAutoencoder(nn.Sequential(Strange(), nn.Linear(4, 4)), nn.Linear(4, 12), weights="given")
    with pytest.raises(TypeError, match="distributions of a Strange are unknown"):  # the reset draws
        train(X, small_settings(representation=given), seeds=(0,))


def test_training_goes_on_with_a_warning_where_there_is_nothing_to_reset():
    settings = small_settings(representation=Autoencoder(hidden=()))
    with pytest.warns(ReclustWarning, match="SoftReset has nothing to reset in embedding") as seen:
        result = train(X, settings, seeds=(3, 1), execution=EXACT["vmap"])
    assert len(seen) == 1 and result.history["clustering"]["fired"].epochs.tolist() == [2, 4], "it still reclusters"


@pytest.mark.parametrize("executor", ["plain", "vmap"])
@pytest.mark.parametrize("start", ["fresh", "given"])
def test_frozen_layers_are_neither_drawn_nor_trained_nor_reset(executor, start):
    encoder, decoder = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4)), nn.Linear(4, 12)
    encoder[0].requires_grad_(False)
    settings = small_settings(representation=OwnAutoencoder(encoder, decoder, weights=start))
    result = train(X, settings, seeds=(1, 2), execution=Execution(device="cpu", executor=executor))
    assert all(torch.equal(result.parameters[f"encoder.0.{name}"][i], getattr(encoder[0], name)) for name in ("weight", "bias") for i in range(2))
    assert not torch.allclose(result.parameters["encoder.2.weight"][0], encoder[2].weight)
    assert not encoder[0].weight.requires_grad and encoder[2].weight.requires_grad


class Reader(nn.Module):
    """Recurrent: the twelve features are the steps of a series."""

    def __init__(self):
        super().__init__()
        self.rnn, self.last = nn.RNN(1, 6, batch_first=True), nn.Linear(6, 4)

    def forward(self, x):
        return self.last(self.rnn(x.unsqueeze(-1))[0][:, -1])


def test_a_recurrent_encoder_needs_its_distribution_and_then_trains_and_is_reset(monkeypatch):
    settings = small_settings(representation=OwnAutoencoder(Reader(), nn.Linear(4, 12)))
    with pytest.raises(TypeError, match="distributions of a RNN are unknown"):
        train(X, settings, seeds=(3, 1))
    known = singledispatch(weights.initial_distributions)
    known.register(nn.RNN, lambda layer: {name: weights.Uniform(layer.hidden_size**-0.5) for name, _ in layer.named_parameters()})
    monkeypatch.setattr(weights, "initial_distributions", known)
    both = train(X, settings, seeds=(3, 1), execution=Execution(device="cpu", precision="float64"))
    alone = train(X, settings, seeds=(1,), execution=EXACT["plain"])
    plain = train(X, replace(settings, intervention=None), seeds=(1,), execution=EXACT["plain"])
    for name, stack in both.parameters.items():
        torch.testing.assert_close(stack[1], alone.parameters[name][0], rtol=0, atol=1e-9)
        assert not torch.allclose(plain.parameters[name], alone.parameters[name]), f"{name} is as without a reset"
    reader = Reader().double()
    reader.load_state_dict({name: alone.parameters[f"encoder.{name}"][0] for name in reader.state_dict()})
    x = torch.from_numpy(X)
    torch.testing.assert_close(alone.model(0).embed(x), reader(x).detach(), rtol=0, atol=1e-9)


@value
class Counting(DECObjective):
    """A custom objective with a state that `update` changes."""

    def init(self, centers):
        return {**super().init(centers), "seen": torch.zeros((), dtype=centers.dtype), "order": torch.arange(len(centers))}

    def assign(self, state, z):
        return state["order"][super().assign(state, z)]

    def update(self, state, z):
        return {**state, "seen": state["seen"] + len(z)}


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_the_state_of_a_custom_objective_is_kept_updated_and_used_after_training(seeds):
    settings = quiet_settings(objective=Counting(), clustering=Schedule(epochs=3, batch_size=20))
    result = train(X, settings, seeds=seeds, execution=EXACT["vmap"])
    assert result.state["seen"].tolist() == [3 * 80] * len(seeds) and result.state["order"].dtype == torch.int64
    again = train(X, replace(settings, first_centers=None), seeds=seeds, start=result, execution=EXACT["vmap"])
    assert again.state["seen"].tolist() == [6 * 80] * len(seeds)
    model = result.model(0).to("cpu", torch.float64)
    assert model.assign(model.embed(torch.from_numpy(X))).shape == (80,)


@pytest.mark.parametrize(("method", "message"), [
    (lambda z, k, key: z[..., :1, :], r"expected \(2, 4, 4\)"), (lambda z, k, key: z[0, :k], r"expected \(2, 4, 4\)"),
    (lambda z, k, key: z[..., :k, :] / 0, "lambda.*centers that are not finite"),
])
def test_a_custom_reclustering_method_must_return_finite_centers(method, message):
    settings = quiet_settings(clustering=Schedule(epochs=2), intervention=Every(1, (Recluster(method),)))
    with pytest.raises(ValueError, match=message):
        train(X, settings, seeds=[0, 1])


def test_a_method_must_be_an_instance():
    with pytest.raises(TypeError, match=r"such as KMeans\(\)"):
        Recluster(KMeans)


def test_an_unknown_block_is_found_before_training(no_training):
    with pytest.raises(ValueError, match="No block named 'mlp'"):
        train(X, small_settings(intervention=Every(2, (SoftReset({"mlp": 0.5}),))), seeds=(3,))


class Attention(nn.Module):
    """Rows of 12 features as 3 tokens of 4."""

    def __init__(self):
        super().__init__()
        self.attention, self.norm = nn.MultiheadAttention(4, 2, batch_first=True), nn.LayerNorm(4)
        self.drop, self.last = nn.Dropout(0.2), nn.Linear(12, 4)

    def forward(self, x):
        tokens = x.unflatten(1, (3, 4))
        mixed = self.attention(tokens, tokens, tokens, need_weights=False)[0]
        return self.last(self.norm(tokens + self.drop(mixed)).flatten(1))


def with_dropout():
    encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))
    return encoder, nn.Sequential(nn.Dropout(0.1), nn.Linear(4, 12))


@pytest.mark.parametrize("modules", [with_dropout, lambda: (Attention(), nn.Linear(4, 12))], ids=["dropout", "attention"])
def test_dropout_and_attention_train_by_key(modules):
    settings = small_settings(representation=OwnAutoencoder(*modules()))
    torch.manual_seed(0)
    both = train(X, settings, seeds=(1, 2), execution=Execution(precision="float64"))
    torch.manual_seed(1)
    state = torch.get_rng_state()
    alone = train(X, settings, seeds=(2,), execution=Execution(precision="float64"))
    assert torch.equal(torch.get_rng_state(), state), "torch's generator is left alone"
    np.testing.assert_allclose(both.only(1).history["clustering"]["loss"].values, alone.history["clustering"]["loss"].values, rtol=1e-6)
    model = alone.model(0).to("cpu", torch.float32)
    assert torch.equal(model.embed(torch.zeros(3, 12)), model.embed(torch.zeros(3, 12))), "nothing is dropped in predictions"


def test_dropout_drops_the_given_share_and_keeps_the_mean():
    layer, x = KeyedDropout(0.25).train(), torch.ones(400, 100)
    first, second = layer(x), layer(x)
    assert not torch.equal(first, second)
    for y in (first, second):
        assert (y == 0).float().mean() == pytest.approx(0.25, abs=0.01) and y.mean() == pytest.approx(1, abs=0.01)
    assert torch.equal(KeyedDropout(1.0).train()(x), torch.zeros_like(x))


def test_attention_is_initialized_as_in_torch():
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(64, 4)
    drawn = weights.initial_weights(layer, draws.key(0), dtype=torch.float32)
    assert drawn.keys() == dict(layer.named_parameters()).keys()
    for name, weight in list(layer.named_parameters())[:3]:  # the output is a linear layer as any other
        assert drawn[name].std() == pytest.approx(weight.std().item(), rel=0.05) and drawn[name].abs().max() == pytest.approx(weight.abs().max().item(), rel=0.05)
