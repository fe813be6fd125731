"""Targets in custom training loops."""

import copy

import pytest
import torch
from support import blobs
from torch import nn

from reclust import (
    BRB,
    Every,
    InitialNoise,
    KaimingNoise,
    Recluster,
    ReclustWarning,
    SoftReset,
    Target,
)
from reclust.interventions import DisentangledReset, KMedoids, Shrink, WhenSettled
from reclust.representations import weights

X = torch.from_numpy(blobs(n=80)[0]).float()


def deep():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 8), nn.PReLU(), nn.Linear(8, 4), nn.PReLU())


def frozen_but_for_the_last():
    return nn.Sequential(nn.Linear(12, 8).requires_grad_(False), nn.Linear(8, 4))


@pytest.mark.parametrize("make", [lambda: nn.Linear(12, 4), frozen_but_for_the_last], ids=["bare linear", "all but the embedding frozen"])
@pytest.mark.parametrize("intervention", [
    BRB(1), Every(1, (Shrink(0.5),)), Every(1, (DisentangledReset(),)), WhenSettled((SoftReset(),), shortest=1, longest=1, look=1)], ids=repr)
def test_nothing_to_reset_is_a_warning_that_says_how_to_name_the_embedding(make, intervention):
    encoder = make()
    target = Target.of(encoder, torch.zeros(4, 4), embed=lambda: encoder(X), memory={})
    with pytest.warns(ReclustWarning, match=r"has nothing to reset in .*embedding, .*keep=\{'embedding': 0.8\}"):
        intervention(0, target)
    before = copy.deepcopy(encoder)
    assert BRB(1, keep={"embedding": 0.5})(1, target)
    assert not torch.equal(list(encoder.parameters())[-1], list(before.parameters())[-1])


@pytest.mark.parametrize("noise", [InitialNoise(), KaimingNoise()], ids=repr)
def test_a_reset_moves_the_slope_of_prelu_towards_its_initial_value(noise):
    encoder = deep()
    with torch.no_grad():
        encoder[1].weight.fill_(0.75)
    Every(1, (SoftReset(0.5, noise=noise),))(1, Target.of(encoder, torch.zeros(4, 4), embed=lambda: encoder(X)))
    assert encoder[1].weight.item() == pytest.approx(0.5)  # half way to 0.25


@pytest.mark.parametrize("brb", [BRB(5), WhenSettled(BRB().steps)], ids=["BRB", "WhenSettled"])
def test_layers_of_unknown_distribution_are_found_before_anything_changes_unless_frozen(brb):
    class Attentive(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.mixed, self.last = nn.Linear(12, 8), nn.Bilinear(8, 8, 2), nn.Linear(8, 4)

    encoder = Attentive()
    before = copy.deepcopy(encoder.state_dict())
    target = Target.of(encoder, torch.zeros(4, 4), embed=lambda: pytest.fail("it went on"), memory={})
    for epoch in (0, 5):
        with pytest.raises(TypeError, match="distributions of a Bilinear are unknown"):
            brb(epoch, target)
    assert all(torch.equal(tensor, before[name]) for name, tensor in encoder.state_dict().items())
    encoder.mixed.requires_grad_(False)
    Every(5, (SoftReset(0.5),))(5, Target.of(encoder, torch.zeros(4, 4), embed=lambda: X[:, :4]))
    assert not torch.equal(encoder.first.weight, before["first.weight"])
    assert torch.equal(encoder.mixed.weight, before["mixed.weight"])


class Halved(nn.Linear):
    pass


@weights.initial_distributions.register(Halved)
def _(layer):
    return {"weight": weights.Uniform(0.1)}


def test_a_missing_distribution_of_a_parameter_is_named():
    net = nn.Sequential(nn.Linear(12, 8), Halved(8, 8), nn.Linear(8, 4))
    with pytest.raises(TypeError, match="distribution of 'bias' of 1, a Halved, is unknown"):
        BRB(1)(1, Target.of(net, torch.zeros(4, 4), embed=lambda: torch.zeros(9, 4)))


@pytest.mark.parametrize(("change", "message"), [
    ({"embed": lambda: torch.zeros(9, 3)}, r"embed\(\) returned shape \(9, 3\)"),
    ({"embed": lambda: torch.full((9, 4), torch.nan)}, "NaN or infinite.*smaller lr"),
    ({"seed": 1.5}, "seed must be an integer"),
    ({"optimizer": torch.optim.Adam(nn.Linear(4, 4).parameters())}, "does not train these centers"),
])
def test_mistakes_are_found_before_anything_changes(change, message):
    net = deep()
    before = copy.deepcopy(net.state_dict())
    given = {"embed": lambda: torch.zeros(9, 4), **change}
    with pytest.raises(ValueError, match=message):
        Every(1, (Recluster(), SoftReset(0.5)))(1, Target.of(net, torch.zeros(4, 4), given.pop("optimizer", None), **given))
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


def loop(optimizer=torch.optim.Adam):
    """One step of a custom loop, after which there is momentum."""
    net, centers = deep(), nn.Parameter(torch.randn(4, 4))
    made = optimizer([*net.parameters(), centers], lr=1e-2)
    target = Target.of(net, centers, made, embed=lambda: net(X))
    torch.cdist(net(X), centers).min(1).values.mean().backward()
    made.step()
    return centers, made, target


def test_a_target_made_before_the_loop_finds_the_momentum_that_came_later():
    centers, optimizer, target = loop()
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
    centers, made, target = loop(optimizer)
    before = made.state[centers][stays].clone()
    BRB(1)(1, target)
    assert torch.equal(made.state[centers][stays], before) and (goes is None or not made.state[centers][goes].any())


def test_a_compiled_or_wrapped_encoder_draws_the_noise_of_the_plain_one():
    made = []
    for wrap in (lambda net: net, nn.DataParallel, lambda net: torch.compile(net, backend="eager")):
        net = deep()
        Every(1, (SoftReset(0.5),))(1, Target.of(wrap(net), torch.zeros(4, 4), embed=lambda: torch.zeros(9, 4)))
        made.append(net.state_dict())
    assert all(torch.equal(made[0][name], other[name]) for other in made[1:] for name in made[0])
    assert torch.equal(made[0]["2.weight"], deep()[2].weight)  # with a PReLU after it, it is still the embedding


def test_when_settled_starts_to_wait_again_where_its_memory_is_lost():
    encoder, memory = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 4)), {}
    when = WhenSettled((SoftReset(0.5),), look=1, shortest=2, longest=3)
    fired = [bool(when(epoch, Target.of(encoder, torch.randn(4, 4), embed=lambda: encoder(X), memory=memory))) for epoch in range(5, 9)]
    assert fired[:2] == [False, False] and any(fired)


@pytest.mark.parametrize("precision", [torch.float16, torch.float64])
def test_embeddings_may_have_another_precision_than_the_centers(precision):
    encoder, centers = nn.Linear(12, 4), torch.zeros(3, 4)
    Every(1, (Recluster(KMedoids()),))(1, Target.of(encoder, centers, embed=lambda: encoder(X).to(precision)))
    assert centers.isfinite().all() and centers.any()
