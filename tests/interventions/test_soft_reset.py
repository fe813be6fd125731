"""Laws of resets, reclustering and momentum, and BRB in a custom loop."""

import math

import pytest
import torch
from support import blobs
from torch import nn

from reclust import (
    BRB,
    Every,
    InitialNoise,
    KaimingNoise,
    KMeans,
    Recluster,
    ResetMomentum,
    SoftReset,
    Step,
    Target,
    draws,
    value,
)
from reclust.interventions import WhenSettled


def encoder(norm=False):
    torch.manual_seed(0)
    layers = [nn.Linear(12, 32), *([nn.BatchNorm1d(32)] if norm else []), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 4)]
    return nn.Sequential(*layers).double()


def target(net, centers=None, optimizer=None, seed=0, **given):
    X = torch.from_numpy(blobs()[0])
    centers = torch.zeros(4, 4, dtype=torch.float64) if centers is None else centers
    return Target.of(net, centers, optimizer, embed=lambda: net(X), seed=seed, **given)


def weights(net):
    return {name: parameter.detach().clone() for name, parameter in net.named_parameters()}


def apply(step, net, **given):
    with torch.no_grad():
        step(target(net, **given))
    return weights(net)


def test_keep_one_is_the_identity():
    net = encoder()
    before = weights(net)
    after = apply(SoftReset(1.0), net)
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_keep_zero_forgets_the_old_weights_but_not_the_embedding_layer():
    one, other = encoder(), encoder()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(7)
    a, b = apply(SoftReset(0.0), one), apply(SoftReset(0.0), other)
    assert all(torch.equal(a[name], b[name]) for name in a if not name.startswith("4."))
    assert not torch.equal(a["4.weight"], b["4.weight"])


@pytest.mark.parametrize("noise", [InitialNoise(), KaimingNoise()])
def test_between_the_two_a_reset_is_linear(noise):
    start, drawn = weights(encoder()), apply(SoftReset(0.0, noise=noise), encoder())
    for keep in (0.2, 0.8):
        mixed = apply(SoftReset(keep, noise=noise), encoder())
        for name in start:
            torch.testing.assert_close(mixed[name], keep * start[name] + (1 - keep) * drawn[name])


def test_noise_distributions():
    net = nn.Sequential(nn.Linear(400, 500), nn.Linear(500, 2)).double()
    own, wide = 1 / math.sqrt(400), math.sqrt(6 / 400)
    for noise, bound in ((InitialNoise(), own), (KaimingNoise(), wide)):
        drawn = apply(SoftReset(0.0, noise=noise), net)
        assert drawn["0.weight"].abs().max() <= bound
        assert drawn["0.weight"].std().item() == pytest.approx(bound / math.sqrt(3), rel=0.01)
        assert drawn["0.bias"].abs().max() <= own  # biases come from the layer's own distribution in both
    assert wide / own == pytest.approx(2.45, abs=0.01)


def test_the_layers_own_distribution_is_what_torch_draws():
    linear, convolution = nn.Linear(300, 400), nn.Conv2d(20, 60, 3)
    for layer, fan_in in ((linear, 300), (convolution, 180)):
        drawn = apply(SoftReset(0.0, blocks=("embedding",)), nn.Sequential(layer), centers=torch.zeros(1, 1))
        fresh = type(layer)(*((300, 400) if layer is linear else (20, 60, 3)))
        assert drawn["0.weight"].std().item() == pytest.approx(fresh.weight.std().item(), rel=0.03)
        assert drawn["0.weight"].abs().max() <= 1 / math.sqrt(fan_in)


def test_blocks_can_be_chosen_and_weighed_one_by_one():
    start = weights(encoder())
    only = apply(SoftReset(0.5, blocks=("layer2",)), encoder())
    assert [name for name in start if not torch.equal(start[name], only[name])] == ["2.weight", "2.bias"]
    mapped = apply(SoftReset({"layer1": 1.0, "embedding": 0.5}), encoder())
    assert [name for name in start if not torch.equal(start[name], mapped[name])] == ["4.weight", "4.bias"]


def test_norms_are_left_alone_unless_asked_for():
    net = encoder(norm=True)
    with torch.no_grad():
        net[1].weight.fill_(3.0)
    assert (apply(SoftReset(0.5), net)["1.weight"] == 3).all()
    assert (apply(SoftReset(0.5, norms=True), net)["1.weight"] == 2).all()  # halfway to the initial ones


def test_own_blocks_can_be_named():
    net = encoder()
    before = weights(net)
    after = apply(SoftReset({"front": 0.5}), net, blocks={"front": net[0]})
    assert [name for name in before if not torch.equal(before[name], after[name])] == ["0.weight", "0.bias"]


@pytest.mark.parametrize(("make", "message"), [
    (lambda: SoftReset(1.2), "between 0"), (lambda: SoftReset(-0.1), "between 0"),
    (lambda: SoftReset({"mlp": 2.0}), "between 0"), (lambda: BRB(interval=0), "at least 1"),
    (lambda: SoftReset({"mlp": 0.5}, blocks=("mlp",)), "either"), (lambda: Recluster(subsample=0), "at least 1"),
    (lambda: Recluster(rows="last"), "rows must be one of"),
])
def test_bad_numbers_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_unknown_block_is_named_together_with_those_that_exist():
    with pytest.raises(ValueError, match="'mlp'.*layer1, layer2, embedding"):
        apply(SoftReset({"mlp": 0.5}), encoder())


def test_a_layer_of_unknown_kind_says_how_to_teach_it():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))

    with pytest.raises(TypeError, match="initial_distributions.register"):
        apply(SoftReset(0.5, blocks=("embedding",)), Odd(), centers=torch.zeros(1, 1))


@pytest.mark.parametrize("subsample", [None, 1000, 50])
def test_recluster_takes_the_centres_of_k_means(subsample):
    net, centers = encoder(), torch.zeros(4, 4, dtype=torch.float64)
    X = torch.from_numpy(blobs()[0])
    with torch.no_grad():
        Recluster(KMeans(n_init=2), subsample=subsample, rows="first")(target(net, centers))
        z = net(X)[: subsample or len(X)]
    torch.testing.assert_close(centers, KMeans(n_init=2)(z, 4, draws.fold(draws.key(0), "recluster")))


def test_random_subsamples_are_without_repetition_and_differ_between_seeds():
    net = encoder()
    rows = []

    def spy(z, k, key):
        rows.append(z)
        return z[:k]

    for seed in (0, 1):
        with torch.no_grad():
            Recluster(spy, subsample=60)(target(net, seed=seed))
    with torch.no_grad():
        everything = {tuple(row) for row in net(torch.from_numpy(blobs()[0])).tolist()}
    chosen = [{tuple(row) for row in z.tolist()} for z in rows]
    assert all(len(some) == 60 and some <= everything for some in chosen)
    assert chosen[0] != chosen[1]


def learned_centers(net, steps=3):
    centers = nn.Parameter(torch.randn(4, 4, dtype=torch.float64))
    optimizer = torch.optim.Adam([*net.parameters(), centers])
    for _ in range(steps):
        (net(torch.from_numpy(blobs()[0])).mean(0) * centers).sum().backward()
        optimizer.step()
    return centers, optimizer


def test_momentum_reset_zeroes_the_moments_of_the_centres_alone():
    net = encoder()
    centers, optimizer = learned_centers(net)
    kept = {name: optimizer.state[net[0].weight][name].clone() for name in ("exp_avg", "exp_avg_sq", "step")}
    ResetMomentum()(target(net, centers, optimizer))
    assert optimizer.state[centers]["exp_avg"].abs().sum() == 0 == optimizer.state[centers]["exp_avg_sq"].sum()
    assert optimizer.state[centers]["step"] == 3
    assert all(torch.equal(kept[name], optimizer.state[net[0].weight][name]) for name in kept)
    ResetMomentum(steps=True)(target(net, centers, optimizer))
    assert optimizer.state[centers]["step"] == 0


def test_without_a_momentum_reset_the_optimizer_goes_on_as_if_nothing_had_happened():
    net = encoder()
    centers, optimizer = learned_centers(net)
    before, kept = centers.detach().clone(), {name: kept.clone() for name, kept in optimizer.state[centers].items()}
    assert Every(20, (SoftReset(0.8), Recluster(KMeans())))(20, target(net, centers, optimizer))
    assert not torch.equal(centers, before)
    assert all(torch.equal(kept[name], now) and now.abs().sum() > 0 for name, now in optimizer.state[centers].items())


def test_brb_is_its_three_steps():
    assert BRB(interval=20, keep=0.8) == Every(20, (SoftReset(0.8), Recluster(KMeans()), ResetMomentum()))
    results = []
    for by_hand in (False, True):
        net = encoder()
        torch.manual_seed(1)
        centers, optimizer = learned_centers(net)
        if by_hand:
            at_epoch = target(net, centers, optimizer).at("intervention", 20)
            with torch.no_grad():
                for step in (SoftReset(0.8), Recluster(KMeans()), ResetMomentum()):
                    step(at_epoch)
        else:
            assert BRB(20, 0.8)(20, target(net, centers, optimizer)) is True
        results.append([*weights(net).values(), centers.detach(), *optimizer.state[centers].values()])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_it_fires_at_multiples_of_the_interval_and_never_at_zero():
    fired = []

    class Note(Step):
        part = "note"

        def __call__(self, target):
            fired.append(target)

    every = Every(3, (Note(),))
    assert [epoch for epoch in range(10) if every(epoch, target(encoder()))] == [3, 6, 9]
    assert len(fired) == 3


@value
class Plain(Step):
    """All that a step needs to have."""

    def __call__(self, target):
        target.centers.fill_(7)


def test_a_step_needs_no_name_for_its_time_and_a_single_one_no_tuple():
    made = target(encoder())
    assert Every(1, Plain()) == Every(1, (Plain(),)) == Every(1, [Plain()]) and Every(1, Plain())(1, made)
    assert (made.centers == 7).all() and list(made.clock.seconds) == ["intervention"]
    assert WhenSettled(Plain()).steps == (Plain(),)


@pytest.mark.parametrize("steps", [5, None, Plain, (SoftReset(), print), (BRB(),)], ids=repr)
def test_what_is_no_step_is_refused(steps):
    with pytest.raises(TypeError, match="steps must be instances of reclust.Step"):
        Every(5, steps)


def test_different_epochs_draw_different_noise():
    brb = Every(1, (SoftReset(0.0),))
    nets = [encoder(), encoder()]
    for epoch, net in enumerate(nets, start=1):
        brb(epoch, target(net))
    assert not torch.equal(nets[0][0].weight, nets[1][0].weight)


def test_a_second_step_of_a_kind_draws_other_noise_and_the_first_what_it_draws_alone():
    once, twice, forgotten = encoder(), encoder(), encoder()
    Every(1, (SoftReset(0.0),))(1, target(once))
    Every(1, (SoftReset(0.0), SoftReset(0.0)))(1, target(forgotten))
    Every(1, (SoftReset(0.0), SoftReset(0.5)))(1, target(twice))
    first, second = once[0].weight, forgotten[0].weight
    assert not torch.allclose(first, second)
    torch.testing.assert_close(twice[0].weight, 0.5 * (first + second))


def test_embedding_happens_in_eval_mode_without_gradients_and_modes_come_back():
    net = encoder(norm=True).train()
    net[1].eval()
    seen = []

    def embed():
        seen.append((net.training, torch.is_grad_enabled()))
        return net(torch.from_numpy(blobs()[0]))

    BRB(1, method=KMeans(n_init=1))(1, Target.of(net, torch.zeros(4, 4, dtype=torch.float64), embed=embed))
    assert seen == [(False, False)]
    assert net.training and not net[1].training


def test_the_callers_random_state_is_not_touched():
    net = encoder()
    before = torch.get_rng_state()
    BRB(1)(1, target(net))
    assert torch.equal(before, torch.get_rng_state())
