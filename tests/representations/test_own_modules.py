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
    Recluster,
    ReclustWarning,
    Result,
    Schedule,
    SoftReset,
    Target,
    draws,
    train,
    value,
)
from reclust.interventions import DisentangledReset, KMedoids, Perturb, Shrink, WhenSettled, noise
from reclust.objectives import GradientOnly, squared_distances
from reclust.representations import weights
from reclust.training.engine.replicas import Replicas

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


def sharing_a_buffer():
    first, second = nn.Linear(12, 12), nn.Linear(12, 4)
    first.register_buffer("mean", torch.zeros(12))
    second.register_buffer("mean", first.mean)
    return nn.Sequential(first, second), nn.Linear(4, 12)


def turning():
    encoder = nn.Linear(12, 4)
    encoder.register_buffer("turn", torch.polar(torch.ones(2), torch.arange(2.0)))
    return encoder, nn.Linear(4, 12)


@pytest.mark.parametrize(("modules", "message"), [
    (sharing_a_buffer, "share one buffer"), (turning, "encoder.turn is complex.*view_as_real"),
    (tied, "share one weight tensor.*untie them"), (tied_across, "share one weight tensor.*untie them"),
    (lambda: (nn.Sequential(nn.Linear(12, 8), nn.Dropout(0.1), nn.Linear(8, 4)), nn.Linear(4, 12)), "layer encoder.1 is a Dropout.*augment="),
    (lambda: (nn.Linear(12, 4), nn.Sequential(nn.AlphaDropout(0.5), nn.Linear(4, 12))), "layer decoder.0 is a AlphaDropout"),
    (lambda: (nn.Flatten(), nn.Linear(12, 12)), "encoder has no layer with weights"),
    (lambda: (nn.Identity(), nn.Identity()), "encoder has no layer with weights"),
    (lambda: (nn.LazyLinear(4), nn.Linear(4, 12)), "encoder.weight has no shape yet.*lazy layer"),
], ids=["shared buffer", "complex", "tied inside", "tied across", "dropout", "dropout in the decoder", "no weights in the encoder", "no weights at all",
        "lazy"])
@pytest.mark.parametrize("intervention", [None, BRB(2)], ids=["no intervention", "BRB"])
def test_what_cannot_be_trained_side_by_side_is_refused_before_training(monkeypatch, modules, message, intervention):
    monkeypatch.setattr("reclust.training.phase.Phase.run", lambda *_: pytest.fail("training had begun"))
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

    monkeypatch.setattr("reclust.training.phase.Phase.run", lambda *_: pytest.fail("training had begun"))
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
    for module in (weights, noise):
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
class MyObjective(GradientOnly):
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
    monkeypatch.setattr("reclust.training.phase.Phase.run", lambda *_: pytest.fail("training had begun"))


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


def quiet_settings(**changes):
    """Short, and so without an intervention that would never fire."""
    return small_settings(**{"intervention": None, **changes})


@value
class Counting(DECObjective):
    """A child of an objective that nothing but gradients moves, with a state of its own that `update` moves."""

    def init(self, centers):
        return {**super().init(centers), "seen": torch.zeros((), dtype=centers.dtype), "order": torch.arange(len(centers))}

    def assign(self, state, z):
        return state["order"][super().assign(state, z)]

    def update(self, state, z):
        return {**state, "seen": state["seen"] + len(z)}


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_a_state_of_single_and_whole_numbers_is_kept_moved_and_used_after_training(seeds):
    settings = quiet_settings(objective=Counting(), pretraining=None, clustering=Schedule(epochs=3, batch_size=20))
    result = train(X, settings, seeds=seeds, execution=EXACT["vmap"])
    assert result.state["seen"].tolist() == [3 * 80] * len(seeds) and result.state["order"].dtype == torch.int64
    again = train(X, replace(settings, first_centers=None), seeds=seeds, start=result, execution=EXACT["vmap"])
    assert again.state["seen"].tolist() == [6 * 80] * len(seeds)
    inputs = torch.from_numpy(X)
    assert result.model(0).to("cpu", torch.float64).assign(result.model(0).to("cpu", torch.float64).embed(inputs)).shape == (80,)


def broken(**methods):
    return type("Broken", (Counting,), methods)()


@pytest.mark.parametrize(("objective", "message"), [
    (broken(trainable="centers"), "trainable must be a frozenset of names that Broken.init gives"),
    (broken(trainable=frozenset({"mu"})), "names that Broken.init gives \\(centers, seen, order\\)"),
    (broken(init=lambda self, centers: {"centers": centers.clone(), "seen": 0.0}), "gave float for 'seen': it must be a tensor"),
    (broken(assign=lambda self, state, z: torch.full((len(z),), 4)), "assign gave the cluster 4 of 4: they are numbered from 0 to 3"),
    (broken(update=lambda self, state, z: None), "update gave NoneType for .*whole state as a dict"),
    (broken(update=lambda self, state, z: {**state, "seen": state["centers"]}), "update gave \\(4, 4\\) of torch.float64 for 'seen'.*of shape \\(\\)"),
])
def test_what_an_objective_of_ones_own_gives_is_checked_before_training(objective, message):
    settings = quiet_settings(objective=DECObjective(), clustering=Schedule(epochs=1))
    with pytest.raises(ValueError, match=message):
        train(X, replace(settings, objective=objective), seeds=[0], execution=EXACT["plain"])


@pytest.mark.parametrize(("measure", "message"), [
    (lambda snapshot: {"a": 1.0}, "measured 'a' as float64 of shape \\(\\)"),
    (lambda snapshot: {"a": np.zeros(3)}, "of shape \\(3,\\): the history keeps numbers, one or an array for each of the 2 replicas"),
    (lambda snapshot: {"a": ["x", "y"]}, "measured 'a' as <U1"),
    (lambda snapshot: {"a": np.zeros((2, snapshot.epoch + 2))}, "of shape \\(2, 2\\), and of \\(2, 1\\) earlier"),
    (lambda snapshot: {"loss": np.zeros(2)}, "measures 'loss', a column that training fills itself"),
    (lambda snapshot: {"a": snapshot.labels}, "no labels in pretraining"),
])
def test_what_a_monitor_measures_is_checked_when_it_comes(measure, message):
    settings = quiet_settings(pretraining=Schedule(epochs=1), clustering=Schedule(epochs=1))
    with pytest.raises(ValueError, match=message):
        train(X, settings, seeds=[0, 1], monitors=[measure])


def test_a_monitor_may_give_the_tensors_that_training_goes_on_writing_to():
    result = train(X, quiet_settings(pretraining=None, clustering=Schedule(epochs=3)), seeds=[0],
                   monitors=[lambda snapshot: {"c": snapshot.centers}])
    values = result.history["clustering"]["c"].values
    assert len(values) > 2 and not np.array_equal(values[0], values[-1])


@pytest.mark.parametrize(("given", "message"), [
    ({"seeds": 0}, "seeds must be a sequence.*write \\[0\\]"), ({"monitors": print}, "monitors must be a sequence"),
    ({"monitors": [reclust.Progress]}, "and .*Progress.* cannot be"), ({"execution": "cpu"}, "execution must be an Execution.*Execution\\(device='cpu'\\)"),
])
def test_arguments_of_the_wrong_kind_are_told_apart(given, message):
    with pytest.raises(TypeError, match=message):
        train(X, quiet_settings(clustering=Schedule(epochs=1)), **{"seeds": [0], **given})


def test_a_path_will_do_for_a_checkpoint(tmp_path):
    settings = quiet_settings(pretraining=None, clustering=Schedule(epochs=2))
    train(X, settings, seeds=[0], checkpoint=tmp_path / "run.ckpt")
    assert (tmp_path / "run.ckpt").exists()


def doubled(x, keys):
    return x.double().mul(2)


@pytest.mark.parametrize(("augment", "message"), [
    (lambda x, keys: x.add_(1.0), "changes its input in place"), (doubled, "turned torch.float32 into torch.float64"),
])
def test_an_augmentation_that_would_spoil_another_view_is_refused(augment, message):
    settings = quiet_settings(pretraining=None, augment=augment, clustering=Schedule(epochs=1, views=("clean", "augmented")))
    with pytest.raises(ValueError, match=message):
        train(X, settings, seeds=[0])


@pytest.mark.parametrize("method", [lambda z, k, key: z[..., :1, :], lambda z, k, key: z[..., :k, :1], lambda z, k, key: z[0, :k],
                                    lambda z, k, key: z[..., :k, :].numpy()])
def test_centres_of_a_wrong_shape_are_not_spread_over_all_of_them(method):
    settings = quiet_settings(pretraining=None, clustering=Schedule(epochs=2), intervention=Every(1, (reclust.Recluster(method),)))
    with pytest.raises(ValueError, match="it must give a tensor of centres, \\(2, 4, 4\\)"):
        train(X, settings, seeds=[0, 1])


def test_classes_in_place_of_values_are_refused():
    for method in (KMeans, "k-means"):
        with pytest.raises(TypeError, match=r"method must be a callable .*write KMeans\(\)"):
            reclust.Recluster(method)
    for wrong, message in ((reclust.Recluster, "first_centers must be a value, and Recluster is a class"), (KMeans(), r"write Recluster\(method\)")):
        with pytest.raises(ValueError, match=message):
            train(X, quiet_settings(first_centers=wrong), seeds=[0])


def loop(optimizer=torch.optim.Adam, **given):
    """One step of a loop of one's own, after which there is momentum."""
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 4)), torch.from_numpy(X).float()
    centers = nn.Parameter(torch.randn(4, 4))
    made = optimizer([*net.parameters(), centers], lr=1e-2, **given)
    target = Target.of(net, centers, made, embed=lambda: net(x))
    torch.cdist(net(x), centers).min(1).values.mean().backward()
    made.step()
    return net, centers, made, target


def test_a_target_made_before_the_loop_finds_the_momentum_that_came_later():
    _, centers, optimizer, target = loop()
    assert optimizer.state[centers]["exp_avg"].any()
    BRB(1)(1, target)
    assert not optimizer.state[centers]["exp_avg"].any() and not optimizer.state[centers]["exp_avg_sq"].any()
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.state[centers]["exp_avg"].fill_(1.0)
    BRB(1)(1, target)
    assert not optimizer.state[centers]["exp_avg"].any()


@pytest.mark.parametrize(("optimizer", "stays", "goes"), [
    (torch.optim.Rprop, "step_size", "prev"), (torch.optim.NAdam, "mu_product", "exp_avg"), (torch.optim.ASGD, "eta", None),
])
def test_step_sizes_are_no_momentum(optimizer, stays, goes):
    _, centers, made, target = loop(optimizer)
    before = made.state[centers][stays].clone()
    BRB(1)(1, target)
    assert torch.equal(made.state[centers][stays], before) and (goes is None or not made.state[centers][goes].any())


def tied():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Linear(4, 4))
    net[2].weight = net[0].weight
    return net


def lazily():
    return nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.Linear(4, 4))


@pytest.mark.parametrize(("change", "message"), [
    ({"encoder": tied}, "are one tensor, which would be reset twice"), ({"encoder": lazily}, "do not exist yet: run a batch"),
    ({"encoder": lambda: print}, "encoder must be a Module"), ({"centers": np.zeros((4, 4))}, "centers must be a Tensor, got ndarray"),
    ({"centers": torch.zeros(4)}, "floats of shape \\(k, d\\)"), ({"centers": torch.zeros(4, 4, dtype=torch.int64)}, "floats of shape"),
    ({"embed": torch.zeros(4, 4)}, "embed must be a function"), ({"embed": lambda: (1, 2)}, "embed\\(\\) gave tuple"),
    ({"embed": lambda: torch.zeros(9, 3)}, "embed\\(\\) gave \\(9, 3\\).*\\(n, 4\\)"), ({"seed": 1.5}, "seed must be an integer"),
    ({"optimizer": lambda net: torch.optim.Adam(net.parameters())}, "does not move these centres"),
    ({"optimizer": lambda net: [1]}, "optimizer must be the one that moves the centres"),
])
def test_mistakes_in_a_loop_of_ones_own_are_told_before_anything_is_changed(change, message):
    net = change.pop("encoder", lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)))()
    given = {"centers": torch.zeros(4, 4), "embed": lambda: torch.zeros(9, 4), **change}
    if "optimizer" in given:
        given["optimizer"] = given["optimizer"](net)
    # A function has no weights, and lazy ones cannot be copied.
    before = {} if not isinstance(net, nn.Module) or isinstance(net[0], nn.LazyLinear) else copy.deepcopy(net.state_dict())
    with pytest.raises((TypeError, ValueError), match=message):
        Every(1, (reclust.Recluster(), SoftReset(0.5)))(1, Target.of(net, given.pop("centers"), given.pop("optimizer", None), **given))
    assert all(torch.equal(tensor, net.state_dict()[name]) for name, tensor in before.items())


def test_a_compiled_or_wrapped_encoder_draws_the_noise_of_the_plain_one():
    made = []
    for wrap in (lambda net: net, nn.DataParallel, lambda net: torch.compile(net, backend="eager")):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(12, 8), nn.PReLU(), nn.Linear(8, 4), nn.PReLU())
        Every(1, (SoftReset(0.5),))(1, Target.of(wrap(net), torch.zeros(4, 4), embed=lambda: torch.zeros(9, 4)))
        made.append(net.state_dict())
    assert all(torch.equal(made[0][name], other[name]) for other in made[1:] for name in made[0])
    assert torch.equal(made[0]["2.weight"], _fresh()[2].weight)  # a PReLU behind it does not make it another layer


def _fresh():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 8), nn.PReLU(), nn.Linear(8, 4), nn.PReLU())


def test_a_layer_of_which_a_distribution_is_missing_is_told_before_anything_is_reset():
    net = nn.Sequential(nn.Linear(12, 8), Halved(8, 8), nn.Linear(8, 4))
    before = net[0].weight.detach().clone()
    with pytest.raises(TypeError, match="distribution of 'bias' of 1, a Halved, is not known"):
        BRB(1)(1, Target.of(net, torch.zeros(4, 4), embed=lambda: torch.zeros(9, 4)))
    assert torch.equal(net[0].weight, before)


class Halved(nn.Linear):
    pass


@weights.initial_distributions.register(Halved)
def _(layer):
    return {"weight": weights.Uniform(0.1)}


def test_what_settles_begins_anew_where_its_notes_are_lost():
    encoder, notes = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 4)), {}
    x = torch.from_numpy(X).float()
    when = WhenSettled((SoftReset(0.5),), look=1, shortest=2, longest=3)
    fired = [bool(when(epoch, Target.of(encoder, torch.randn(4, 4), embed=lambda: encoder(x), memory=notes))) for epoch in range(5, 9)]
    assert fired[:2] == [False, False] and any(fired)


def test_whole_numbers_and_others_train_side_by_side():
    settings = quiet_settings(pretraining=None, clustering=Schedule(epochs=1))
    each = [replace(settings, objective=reclust.IDECObjective(weight)) for weight in (1, 0.5)]
    together = train(X, each, seeds=[0, 0], execution=EXACT["vmap"])
    alone = train(X, each[1], seeds=[0], execution=EXACT["plain"])
    torch.testing.assert_close(together.state["centers"][1], alone.state["centers"][0])


class Averaging(nn.Module):
    """Keeps a mean of what it saw, in the tensor that it has or in another one."""

    def __init__(self, in_place, randomly=False):
        super().__init__()
        self.linear, self.in_place, self.randomly = nn.Linear(12, 4), in_place, randomly
        self.register_buffer("mean", torch.zeros(12))

    def forward(self, x):
        if self.training:
            moved = 0.5 * self.mean + 0.5 * x.detach().mean(0)
            if self.in_place:
                self.mean.copy_(moved)
            else:
                self.mean = moved
        return self.linear(nn.functional.dropout(x - self.mean, training=self.training and self.randomly))


def test_what_replicas_could_not_see_or_repeat_is_found_before_training():
    settings = quiet_settings(pretraining=None, clustering=Schedule(epochs=2))
    wrong = {Averaging(False): "in the place of its buffer .*mean while it trains", Averaging(True, True): "draws from torch's global generator",
             nn.Sequential(nn.Linear(12, 4), nn.RReLU()): "draws from torch's global generator"}
    right, decoder = Averaging(True), nn.Linear(4, 12)
    state = torch.get_rng_state()
    for encoder, message in wrong.items():
        with pytest.raises(ValueError, match=message):
            train(X, replace(settings, representation=OwnAutoencoder(encoder, decoder)), seeds=[0])
    result = train(X, replace(settings, representation=OwnAutoencoder(right, decoder)), seeds=[0])
    assert result.buffers["encoder.mean"].any() and torch.equal(torch.get_rng_state(), state)


class StatefulMonitor(nn.Module):
    """Keeps something of what it saw in a plain attribute, by the function that it is given."""

    def __init__(self, keep):
        super().__init__()
        self.linear, self.norm, self.keep = nn.Linear(12, 4), nn.BatchNorm1d(4), keep
        self.mean, self.count, self.places = torch.zeros(4), 0, None

    def forward(self, x):
        h = self.norm(self.linear(x))
        if self.training:
            self.keep(self, h.detach())
        return h + self.mean


def averaged(module, h):
    module.mean = 0.9 * module.mean + 0.1 * h[0]


def averaged_in_place(module, h):
    module.mean.mul_(0.9).add_(0.1 * h[0])


def counted(module, h):
    module.count += 1


def cached(module, h):
    if module.places is None:
        module.places, module.count = torch.arange(4.0), 1
    module.last = h - module.norm.running_mean


def test_what_modules_keep_outside_of_buffers_is_found_before_training_and_what_they_make_once_is_not():
    def trained(keep):
        settings = quiet_settings(pretraining=None, clustering=Schedule(epochs=1))
        own = OwnAutoencoder(nn.Sequential(StatefulMonitor(keep)), nn.Linear(4, 12))
        return train(X, replace(settings, representation=own), seeds=[0])

    for keep, attribute in {averaged: "mean", averaged_in_place: "mean", counted: "count"}.items():
        with pytest.raises(ValueError, match=rf"the attribute '{attribute}' of encoder\.0 \(StatefulMonitor\).*keep it as a buffer"):
            trained(keep)
    assert trained(cached).seeds == (0,)


def test_what_several_replicas_cannot_compute_at_once_is_told_with_what_to_do():
    branching = type("Branching", (DECObjective,), {"loss": lambda self, state, z: z.mean() if z.sum().item() > 0 else -z.mean()})()
    settings = quiet_settings(pretraining=None, objective=branching, clustering=Schedule(epochs=1))
    assert train(X, settings, seeds=[0]).seeds == (0,)
    with pytest.raises(RuntimeError, match=r"Do without \.item\(\).*executor='plain'"):
        train(X, settings, seeds=[0, 1])
    assert train(X, settings, seeds=[0, 1], execution=EXACT["plain"]).seeds == (0, 1)


class Noisy(nn.Module):
    """A decoder that draws where no layer shows it."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(4, 12)

    def forward(self, z):
        return self.last(nn.functional.dropout(z, 0.5, self.training))


@value
class NoisyDEC(DECObjective):
    def loss(self, state, z):
        return super().loss(state, z + 0.1 * torch.randn_like(z))


@pytest.mark.parametrize(("given", "message"), [
    ({"representation": OwnAutoencoder(nn.Linear(12, 4), Noisy()), "intervention": None}, "The representation's loss"),
    ({"objective": NoisyDEC()}, "NoisyDEC.loss draws"),
    ({"augment": lambda x, keys: x + torch.randn_like(x)}, "The augmentation draws"),
], ids=["decoder", "objective", "augmentation"])
def test_draws_that_no_seed_repeats_are_refused_wherever_they_are(given, message):
    before = torch.get_rng_state()
    with pytest.raises(ValueError, match=message):
        train(X, small_settings(**given), seeds=(0, 1))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("precision", [torch.float16, torch.float64])
def test_embeddings_of_another_precision_than_the_centres_serve_a_loop_of_ones_own(precision):
    encoder, centers = nn.Linear(12, 4), torch.zeros(3, 4)
    x = torch.as_tensor(X, dtype=torch.float32)
    target = Target.of(encoder, centers, embed=lambda: encoder(x).to(precision), seed=0)
    Every(1, (Recluster(KMedoids()),))(1, target)
    assert centers.isfinite().all() and centers.any()


def test_centres_that_are_no_numbers_name_their_method():
    settings = small_settings(intervention=Every(2, (Recluster(lambda z, k, key: z[..., :k, :] / 0),)))
    with pytest.raises(ValueError, match="lambda.*centres that are not finite"):
        train(X, settings, seeds=(0, 1))
