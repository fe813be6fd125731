"""Networks and functions of one's own: what is taken, what is refused and why, and how they come through a file."""

import copy
import pickle
from dataclasses import replace
from functools import singledispatch
from typing import ClassVar

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
    KaimingNoise,
    KMeans,
    OwnAutoencoder,
    OwnSimCLR,
    ReclustWarning,
    Result,
    Schedule,
    SoftReset,
    Target,
    draws,
    train,
    value,
    weights,
)
from reclust.interventions import DisentangledReset, Perturb, Shrink, WhenSettled, noise, soft_reset
from reclust.objectives import Still, squared_distances
from reclust.replicas import Replicas

X, Y = blobs(n=80)
EXACT = {name: Execution(device="cpu", precision="float64", executor=name) for name in ("plain", "vmap")}


class Projection(nn.Module):
    """Owns its weight itself, and a constant that a state_dict leaves out."""

    def __init__(self, wide, narrow):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(wide, narrow) / wide**0.5)
        self.register_buffer("gate", torch.rand(narrow) + 0.5, persistent=False)

    def forward(self, x):
        return x @ self.weight * self.gate


@weights.initial_distributions.register(Projection)
def _(layer):
    return {"weight": weights.Uniform(len(layer.weight) ** -0.5)}


class Mixed(nn.Module):
    """Weights at its root beside a layer with weights of its own."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(12))
        self.last = nn.Linear(12, 4)

    def forward(self, x):
        return self.last(x * self.scale)


@weights.initial_distributions.register(Mixed)
def _(layer):
    return {"scale": weights.Constant(1.0)}


ENCODERS = {
    "bare linear": lambda: nn.Linear(12, 4),
    "weights at the root, a buffer that is not persistent": lambda: Projection(12, 4),
    "weights at the root and below": Mixed,
    "nested, that buffer inside": lambda: nn.Sequential(nn.Sequential(Projection(12, 8), nn.Tanh()), nn.Linear(8, 4)),
    "PReLU": lambda: nn.Sequential(nn.Linear(12, 8), nn.PReLU(), nn.Linear(8, 4)),
    "BatchNorm": lambda: nn.Sequential(nn.Linear(12, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)),
}
every = pytest.mark.parametrize("make", ENCODERS.values(), ids=ENCODERS)
shallow = pytest.mark.filterwarnings("ignore:SoftReset has nothing to reset")
"""For encoders of a single layer, which is the embedding."""


def quick(**changes):
    given = {"n_clusters": 4, "pretrain_epochs": 2, "epochs": 3, "batch_size": 40, "intervention": BRB(2, method=KMeans(n_init=2)),
             "random_state": 0, "device": "cpu"}
    return IDEC(**{**given, **changes})


def tensors_of(module):
    """All of them, those a state_dict leaves out included."""
    return {name: tensor.detach().clone() for name, tensor in (*module.named_parameters(), *module.named_buffers())}


@shallow
@every
@pytest.mark.parametrize("start", ["fresh", "given"])
def test_they_train_stacked_as_alone_are_left_alone_and_come_through_a_file(tmp_path, make, start):
    representation = OwnAutoencoder(make(), nn.Linear(4, 12), weights=start)
    modules = nn.ModuleList([representation.encoder, representation.decoder]).train()
    before, flags = tensors_of(modules), [(p.requires_grad, p.grad) for p in modules.parameters()]
    settings = small_settings(representation=representation)
    stacked, plain = (train(X, settings, seeds=(3, 1), execution=EXACT[name]) for name in ("vmap", "plain"))
    tolerance = 1e-6 if any(isinstance(module, nn.BatchNorm1d) for module in modules.modules()) else 1e-9
    for name, tensor in stacked.parameters.items():
        torch.testing.assert_close(tensor, plain.parameters[name], rtol=0, atol=tolerance)
    assert stacked.history["clustering"]["fired"].epochs.tolist() == [2, 4]

    assert all(torch.equal(tensor, before[name]) for name, tensor in tensors_of(modules).items()), "the user's modules are left alone"
    assert [(p.requires_grad, p.grad) for p in modules.parameters()] == flags and all(m.training for m in modules.modules())

    stacked.save(tmp_path / "r.reclust")
    loaded = Result.load(tmp_path / "r.reclust")
    with pytest.raises(ValueError, match="a OwnAutoencoder of its user's own, which no file holds"):
        loaded.model(1)
    loaded.settings = stacked.settings
    x = torch.from_numpy(X)
    assert torch.equal(loaded.model(1).embed(x), stacked.model(1).embed(x))


@shallow
@every
def test_a_model_needs_the_same_modules_to_be_loaded(tmp_path, make):
    """The file holds all their tensors: only the architecture has to be the same again."""
    torch.manual_seed(0)
    model = quick(representation=OwnAutoencoder(make(), nn.Linear(4, 12))).fit(X)
    model.save(tmp_path / "m.reclust")
    with pytest.raises(ValueError, match=r"fitted with OwnAutoencoder.*pass the same as load\(path, representation="):
        reclust.load(tmp_path / "m.reclust")
    torch.manual_seed(1)
    loaded = reclust.load(tmp_path / "m.reclust", representation=OwnAutoencoder(make(), nn.Linear(4, 12)))
    for method in ("predict", "predict_proba", "transform"):
        assert (getattr(loaded, method)(X) == getattr(model, method)(X)).all()
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.labels_).all()


@shallow
def test_another_architecture_is_refused_at_loading(tmp_path):
    quick(representation=OwnAutoencoder(nn.Linear(12, 4), nn.Linear(4, 12))).fit(X).save(tmp_path / "m.reclust")
    for other in (nn.Linear(12, 5), nn.Sequential(nn.Linear(12, 4))):
        with pytest.raises(ValueError, match="other names or shapes"):
            reclust.load(tmp_path / "m.reclust", representation=OwnAutoencoder(other, nn.Linear(4, 12)))


def shake(x, keys):
    return x + 0.1 * draws.normal(keys, x.shape[keys.ndim:], dtype=x.dtype)


@pytest.mark.parametrize("augment", [shake, lambda x, keys: shake(x, keys)], ids=["function", "lambda"])
def test_a_model_with_a_function_of_ones_own_comes_through_a_file(tmp_path, augment):
    model = quick(augment=augment, n_init=2, epochs=2, intervention=None).fit(X)
    model.save(tmp_path / "m.reclust")
    loaded = reclust.load(tmp_path / "m.reclust")
    for method in ("predict", "predict_proba", "transform"):
        assert (getattr(loaded, method)(X) == getattr(model, method)(X)).all()
    assert [replica.score for replica in loaded.replicas_] == [replica.score for replica in model.replicas_]
    with pytest.raises(ValueError, match="augment must be a callable"):  # what no file can hold has to be given again to fit anew
        loaded.fit(X)
    assert (loaded.set_params(augment=augment).fit(X).labels_ == model.labels_).all()


def tied():
    layer = nn.Linear(12, 12)
    return nn.Sequential(layer, nn.Tanh(), layer, nn.Linear(12, 4)), nn.Linear(4, 12)


def tied_across():
    encoder, decoder = nn.Linear(12, 12), nn.Linear(12, 12)
    decoder.weight = encoder.weight
    return encoder, decoder


@pytest.mark.parametrize(("modules", "message"), [
    (tied, "share one weight tensor.*untie them"), (tied_across, "share one weight tensor.*untie them"),
    (lambda: (nn.Sequential(nn.Linear(12, 8), nn.Dropout(0.1), nn.Linear(8, 4)), nn.Linear(4, 12)), "layer encoder.1 is a Dropout.*augment="),
    (lambda: (nn.Linear(12, 4), nn.Sequential(nn.AlphaDropout(0.5), nn.Linear(4, 12))), "layer decoder.0 is a AlphaDropout"),
    (lambda: (nn.Flatten(), nn.Linear(12, 12)), "encoder has no layer with weights"),
    (lambda: (nn.Identity(), nn.Identity()), "encoder has no layer with weights"),
], ids=["tied inside", "tied across", "dropout", "dropout in the decoder", "no weights in the encoder", "no weights at all"])
@pytest.mark.parametrize("intervention", [None, BRB(2)], ids=["no intervention", "BRB"])
def test_what_cannot_be_trained_side_by_side_is_refused_before_training(monkeypatch, modules, message, intervention):
    monkeypatch.setattr("reclust.phase.Phase.run", lambda *_: pytest.fail("training had begun"))
    with pytest.raises(ValueError, match=message):
        train(X, small_settings(representation=OwnAutoencoder(*modules()), intervention=intervention), seeds=(0, 1))


def test_dropout_that_drops_nothing_is_welcome():
    encoder = nn.Sequential(nn.Linear(12, 8), nn.Dropout(0.0), nn.Linear(8, 4))
    assert train(X, small_settings(representation=OwnAutoencoder(encoder, nn.Linear(4, 12))), seeds=(0,)).labels.shape == (1, 80)


def test_layers_of_unknown_distribution_are_refused_with_a_remedy_before_training(monkeypatch):
    class Strange(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(12, 4))

        def forward(self, x):
            return x @ self.weight

    monkeypatch.setattr("reclust.phase.Phase.run", lambda *_: pytest.fail("training had begun"))
    with pytest.raises(TypeError, match="initial weights of a Strange layer are not known. Register a function"):
        train(X, small_settings(representation=OwnAutoencoder(Strange(), nn.Linear(4, 12))), seeds=(0,))
    given = OwnAutoencoder(nn.Sequential(Strange(), nn.Linear(4, 4)), nn.Linear(4, 12), weights="given")
    with pytest.raises(TypeError, match="initial weights of a Strange layer are not known"):  # given weights, but a reset draws
        train(X, small_settings(representation=given), seeds=(0,))


@pytest.mark.parametrize("noise", [reclust.InitialNoise(), KaimingNoise()], ids=repr)
def test_a_reset_takes_the_slope_of_prelu_to_where_it_starts(noise):
    encoder = ENCODERS["PReLU"]()
    with torch.no_grad():
        encoder[1].weight.fill_(0.75)
    brb = Every(1, (SoftReset(0.5, noise=noise),))
    brb(1, Target.of(encoder, torch.zeros(4, 4), embed=lambda: encoder(torch.from_numpy(X).float())))
    assert encoder[1].weight.item() == pytest.approx(0.5)  # half way to 0.25


def test_a_bare_layer_can_be_reset_in_ones_own_loop():
    encoder = nn.Linear(12, 4)
    before = copy.deepcopy(encoder)
    target = Target.of(encoder, torch.zeros(4, 4), embed=lambda: encoder(torch.from_numpy(X).float()))
    assert list(target.blocks) == ["embedding"]
    Every(1, (SoftReset(0.0, blocks=("embedding",)),))(1, target)
    assert not torch.equal(encoder.weight, before.weight)
    assert np.abs(encoder.weight.detach().numpy()).max() <= 12**-0.5


def frozen_but_for_the_last():
    return nn.Sequential(nn.Linear(12, 8).requires_grad_(False), nn.Linear(8, 4))


@pytest.mark.parametrize("make", [lambda: nn.Linear(12, 4), lambda: Projection(12, 4), frozen_but_for_the_last],
                         ids=["bare linear", "weights at the root", "all but the embedding frozen"])
@pytest.mark.parametrize("intervention", [
    BRB(1), Every(1, (Shrink(0.5), Perturb(0.5))), Every(1, (DisentangledReset(),)), WhenSettled((SoftReset(),), shortest=1, longest=1, look=1)], ids=repr)
def test_in_a_loop_of_ones_own_a_reset_without_anything_to_reset_is_an_error(make, intervention):
    encoder, centers = make(), torch.zeros(4, 4)
    target = Target.of(encoder, centers, embed=lambda: encoder(torch.from_numpy(X).float()), memory={})
    with pytest.raises(ValueError, match=r"has nothing to reset in an encoder with the blocks .*embedding: .*blocks=\('embedding',\)"):
        intervention(0, target)  # before any epoch is lost
    assert (centers == 0).all()
    brb = BRB(1, keep={"embedding": 0.5})
    before = copy.deepcopy(encoder)
    assert brb(1, target) and not torch.equal(next(p for p in encoder.parameters() if p.requires_grad),
                                              next(p for p in before.parameters() if p.requires_grad))


def test_training_goes_on_where_there_is_nothing_to_reset_and_says_so():
    settings = small_settings(representation=Autoencoder(hidden=()))
    with pytest.warns(ReclustWarning, match="SoftReset has nothing to reset in an encoder with the blocks embedding") as seen:
        result = train(X, settings, seeds=(3, 1), execution=EXACT["vmap"])
    assert len(seen) == 1 and result.history["clustering"]["fired"].epochs.tolist() == [2, 4], "it still reclusters"
    with pytest.raises(ValueError, match="No block named 'mlp'"):  # mistakes behind it are found all the same
        train(X, replace(settings, intervention=Every(2, (SoftReset(), SoftReset({"mlp": 0.5})))), seeds=(3,))


@pytest.mark.parametrize("brb", [BRB(5), WhenSettled(BRB().steps)], ids=["BRB", "WhenSettled"])
def test_in_a_loop_of_ones_own_layers_that_cannot_be_reset_are_found_before_anything_is_changed(brb):
    class Attentive(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.mixed, self.last = nn.Linear(12, 8), nn.MultiheadAttention(8, 2), nn.Linear(8, 4)

    encoder = Attentive()
    before = tensors_of(encoder)
    target = Target.of(encoder, torch.zeros(4, 4), embed=lambda: pytest.fail("it went on"), memory={})
    for epoch in (0, 5):
        with pytest.raises(TypeError, match="initial weights of a MultiheadAttention layer are not known. Register"):
            brb(epoch, target)
    assert all(torch.equal(tensor, before[name]) for name, tensor in tensors_of(encoder).items())
    encoder.mixed.requires_grad_(False)
    z = torch.from_numpy(X[:, :4]).float()
    Every(5, (SoftReset(0.5),))(5, Target.of(encoder, torch.zeros(4, 4), embed=lambda: z))
    assert not torch.equal(encoder.first.weight, before["first.weight"]), "what is frozen need not be known"


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_in_a_loop_of_ones_own_embeddings_that_are_not_finite_are_an_error(bad):
    encoder, centers = ENCODERS["PReLU"](), torch.ones(4, 4)
    z = torch.zeros(80, 4)
    z[3, 2] = bad
    with pytest.raises(ValueError, match="embeddings that are not finite.*smaller lr"):
        BRB(1)(1, Target.of(encoder, centers, embed=lambda: z))
    assert (centers == 1).all()


@shallow
def test_a_network_that_is_frozen_altogether_is_refused_with_advice():
    own = OwnAutoencoder(nn.Linear(12, 4).requires_grad_(False), nn.Linear(4, 12).requires_grad_(False))
    with pytest.raises(ValueError, match="leave at least one of them free"):
        train(X, small_settings(representation=own), seeds=[1])


@shallow
def test_frozen_layers_keep_their_weights_when_the_others_are_drawn():
    encoder = nn.Sequential(nn.Linear(12, 8).requires_grad_(False), nn.ReLU(), nn.Linear(8, 4))
    result = train(X, small_settings(representation=OwnAutoencoder(encoder, nn.Linear(4, 12))), seeds=[1], execution=EXACT["plain"])
    torch.testing.assert_close(result.parameters["encoder.0.weight"][0], encoder[0].weight.double())


def test_in_a_loop_of_ones_own_frozen_layers_are_not_reset():
    encoder = nn.Sequential(nn.Linear(12, 8).requires_grad_(False), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4))
    before, x = copy.deepcopy(encoder), torch.from_numpy(X).float()
    Every(1, (SoftReset(0.5),))(1, Target.of(encoder, torch.zeros(4, 4), embed=lambda: encoder(x)))
    assert torch.equal(encoder[0].weight, before[0].weight) and not torch.equal(encoder[2].weight, before[2].weight)


@pytest.mark.parametrize("executor", ["plain", "vmap"])
def test_layers_that_their_author_froze_are_neither_trained_nor_reset(executor):
    encoder, decoder = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4)), nn.Linear(4, 12)
    encoder[0].requires_grad_(False)
    settings = small_settings(representation=OwnAutoencoder(encoder, decoder, weights="given"))
    result = train(X, settings, seeds=(1, 2), execution=Execution(device="cpu", executor=executor))
    assert all(torch.equal(result.parameters[f"encoder.0.{name}"][i], getattr(encoder[0], name)) for name in ("weight", "bias") for i in range(2))
    assert not torch.allclose(result.parameters["encoder.2.weight"][0], encoder[2].weight)
    assert not encoder[0].weight.requires_grad and encoder[2].weight.requires_grad


class Reader(nn.Module):
    """Recurrent: the twelve features are the steps of a series. The guides make GRUs known to all, so it has none."""

    def __init__(self):
        super().__init__()
        self.rnn, self.last = nn.RNN(1, 6, batch_first=True), nn.Linear(6, 4)

    def forward(self, x):
        return self.last(self.rnn(x.unsqueeze(-1))[0][:, -1])


def test_a_recurrent_encoder_needs_its_distribution_and_then_trains_and_is_reset_as_others_are(monkeypatch):
    settings = small_settings(representation=OwnAutoencoder(Reader(), nn.Linear(4, 12)))
    with pytest.raises(TypeError, match="initial weights of a RNN layer are not known"):
        train(X, settings, seeds=(3, 1))
    known = singledispatch(weights.initial_distributions)
    known.register(nn.RNN, lambda layer: {name: weights.Uniform(layer.hidden_size**-0.5) for name, _ in layer.named_parameters()})
    for module in (weights, noise, soft_reset):
        monkeypatch.setattr(module, "initial_distributions", known)
    both = train(X, settings, seeds=(3, 1), execution=Execution(device="cpu", precision="float64"))
    alone = train(X, settings, seeds=(1,), execution=EXACT["plain"])
    still = train(X, replace(settings, intervention=None, pretraining=None, clustering=Schedule(0)), seeds=(1,), execution=EXACT["plain"])
    plain = train(X, replace(settings, intervention=None), seeds=(1,), execution=EXACT["plain"])
    for name, stack in both.parameters.items():
        torch.testing.assert_close(stack[1], alone.parameters[name][0], rtol=0, atol=1e-9)
        assert not torch.allclose(plain.parameters[name], still.parameters[name]), f"{name} was not trained"
        assert not torch.allclose(plain.parameters[name], alone.parameters[name]), f"{name} is as without a reset"
    reader = Reader().double()
    reader.load_state_dict({name: alone.parameters[f"encoder.{name}"][0] for name in reader.state_dict()})
    x = torch.from_numpy(X)
    torch.testing.assert_close(alone.model(0).embed(x), reader(x).detach(), rtol=0, atol=1e-9)


def test_recurrent_layers_leave_their_weights_where_they_are_trained(monkeypatch):
    """On a GPU they would put them into one piece of memory of their own."""
    stacks = {name: parameter.detach().expand(2, *parameter.shape).clone() for name, parameter in Reader().named_parameters()}
    replicas = Replicas(OwnAutoencoder(Reader(), nn.Identity()), Reader(), stacks, {}, (3, 1))
    made = replicas.module(1, stacks)
    monkeypatch.setattr(nn.RNN, "flatten_parameters", lambda layer: pytest.fail("weights were moved"))
    made(torch.from_numpy(X).float())
    assert made.rnn.weight_ih_l0.data_ptr() == stacks["rnn.weight_ih_l0"][1].data_ptr()


# What does not fit is told before training


@value
class MyObjective(Still):
    """The one of the guide, with mistakes to choose from."""

    mistake: str = "none"
    weight: float = 0.1
    representation_weight: float = 1.0
    trainable: ClassVar[frozenset[str]] = frozenset({"centers"})
    per_cluster: ClassVar[frozenset[str]] = frozenset({"centers"})

    def init(self, centers):
        return {"centers": centers.clone() if self.mistake != "init" else centers[0].clone()}

    def loss(self, state, z):
        squared = squared_distances(z, state["centers"])
        if self.mistake == "large batch":
            assert z.shape[1] == 50, "what batches have in training"
        if self.mistake == "gradient inside":  # as a penalty of gradients takes it
            return torch.autograd.grad(squared.sum(), (z, state["centers"]), create_graph=True)[0].square().mean()
        return squared.min(-1).values.mean() if self.mistake != "loss" else squared.min(-1).values.mean(0)

    def assign(self, state, z):
        distances = squared_distances(z, state["centers"])
        return distances.argmin(-1) if self.mistake != "assign" else distances


@pytest.fixture
def no_training(monkeypatch):
    monkeypatch.setattr("reclust.phase.Phase.run", lambda *_: pytest.fail("training had begun"))


@pytest.mark.parametrize(("mistake", "message"), [
    ("init", r"MyObjective.init must give a dict of tensors, among them 'centers' of shape \(4, 4\)"),
    ("loss", r"MyObjective.loss gave \(50,\) of torch.float32 for embeddings of shape \(1, 50, 4\): .* one number, .* End it with .mean\(\)"),
    ("assign", r"MyObjective.assign gave \(2, 4\) of torch.float32 for embeddings of shape \(2, 4\): .* shape \(2,\).*argmax"),
])
@pytest.mark.parametrize("seeds", [(1,), (1, 2)], ids=["alone", "stacked"])
def test_an_objective_of_the_wrong_shape_says_what_it_must_give(no_training, mistake, message, seeds):
    with pytest.raises(ValueError, match=message):
        train(X.astype(np.float32), small_settings(objective=MyObjective(mistake)), seeds=seeds)


@pytest.mark.parametrize("unusual", ["none", "large batch", "gradient inside"])
def test_an_objective_is_tried_as_it_is_trained(unusual):
    settings = small_settings(objective=MyObjective(unusual), intervention=None)
    assert train(X, settings, seeds=(1,), execution=EXACT["plain"]).labels.shape == (1, 80)


class Tuple(nn.Linear):
    def forward(self, x):
        return super().forward(x), None


@pytest.mark.parametrize(("encoder", "decoder", "message"), [
    (nn.Linear(16, 4), nn.Linear(4, 12), r"The encoder cannot take a tensor of shape \(2, 12\): mat1 and mat2 .* \(2x12 and 16x4\). Its first layer must fit the samples"),
    (nn.Conv2d(1, 4, 3), nn.Linear(4, 12), r"The encoder cannot take a tensor of shape \(2, 12\): .* must fit the samples"),
    (nn.Linear(12, 4), nn.Linear(5, 12), r"The decoder cannot take a tensor of shape \(2, 4\): mat1 and mat2 .* \(2x4 and 5x12\). Its first layer must fit the embeddings"),
    (nn.Linear(12, 4), nn.Linear(4, 13), r"The decoder turned embeddings of shape \(2, 4\) into \(2, 13\): samples of shape \(12,\) need 12 numbers each"),
    (nn.Sequential(nn.Linear(12, 4), nn.Unflatten(1, (2, 2))), nn.Linear(4, 12), r"The encoder turned samples of shape \(2, 12\) into \(2, 2, 2\): it must give one row .* \(2, d\)"),
    (Tuple(12, 4), nn.Linear(4, 12), "The encoder must give a tensor, but gave a tuple: wrap it"),
], ids=["encoder", "images expected", "decoder", "decoder's output", "no rows", "a tuple"])
@pytest.mark.parametrize("seeds", [(1,), (1, 2)], ids=["alone", "stacked"])
def test_modules_that_do_not_fit_say_which_and_what_came_in(no_training, encoder, decoder, message, seeds):
    with pytest.raises(ValueError, match=message):
        train(X, small_settings(representation=OwnAutoencoder(encoder, decoder), intervention=None), seeds=seeds)


@pytest.mark.parametrize(("module", "projector", "message"), [
    (nn.Linear(16, 4), None, r"The encoder cannot take a tensor of shape \(2, 12\)"), (nn.Linear(12, 4), nn.Linear(5, 3), r"The projector cannot take a tensor of shape \(2, 4\)")])
def test_contrastive_modules_that_do_not_fit_say_so_too(no_training, module, projector, message):
    module.train()
    with pytest.raises(ValueError, match=message):
        train(X, small_settings(representation=OwnSimCLR(module, projector), intervention=None), seeds=(1,))
    assert module.training


def test_a_decoder_that_is_never_asked_need_not_fit():
    own = OwnAutoencoder(nn.Linear(12, 4), nn.Identity())
    settings = small_settings(representation=own, objective=DECObjective(), pretraining=None, intervention=None)
    assert train(X, settings, seeds=(1,)).labels.shape == (1, 80)


def test_trying_parts_changes_nothing():
    """A run of no epochs ends with what it began with, norms included, and draws from nobody's generator."""
    encoder = ENCODERS["BatchNorm"]()
    own, before = OwnAutoencoder(encoder, nn.Linear(4, 12), weights="given"), torch.get_rng_state()
    result = train(X, small_settings(representation=own, pretraining=None, intervention=None, clustering=Schedule(0)), seeds=(1, 2))
    for name, tensor in tensors_of(encoder).items():
        stack = result.parameters.get(f"encoder.{name}", result.buffers.get(f"encoder.{name}"))
        assert all(torch.equal(own, tensor.to(own.dtype)) for own in stack)
    assert all(parameter.grad is None for parameter in encoder.parameters()) and torch.equal(torch.get_rng_state(), before)
