"""Laws of the ablations' steps; what every step must do is in conformance/test_interventions.py."""

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from sklearn.datasets import load_digits
from support import blobs, small_settings
from torch import nn

from reclust import (
    DCNObjective,
    DECObjective,
    Execution,
    KMeans,
    Recluster,
    Schedule,
    SoftReset,
    Step,
    Target,
    draws,
    interventions,
    train,
)
from reclust.interventions import (
    CurrentNoise,
    DisentangledReset,
    Every,
    InitialNoise,
    Intervention,
    KaimingNoise,
    Layer,
    NativeRecluster,
    NoisyRecluster,
    Perturb,
    RandomCenters,
    RecomputeCenters,
    Shrink,
)

X = torch.from_numpy(blobs()[0])


def encoder():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4)).double()


def some_centers(net, k=4):
    with torch.no_grad():
        return KMeans(n_init=2)(net(X), k, draws.key(3))


def target(net, centers=None, seed=0):
    return Target.of(net, some_centers(net) if centers is None else centers, embed=lambda: net(X), seed=seed)


def take(net, *steps, centers=None):
    """The weights and the centres after one firing."""
    centers = some_centers(net) if centers is None else centers.clone()
    Every(1, steps)(1, target(net, centers))
    return [parameter.detach().clone() for parameter in net.parameters()], centers


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("noise", [InitialNoise(), KaimingNoise()])
def test_a_soft_reset_shrinks_and_then_perturbs(noise):
    assert_same(take(encoder(), SoftReset(0.3, noise))[0], take(encoder(), Shrink(0.3), Perturb(0.3, noise))[0])


def test_both_halves_know_the_spread_of_the_weights_before():
    """Not after shrinking: then the noise would shrink as well."""
    start = [parameter.detach() for parameter in encoder().parameters()][:2]
    mixed, moved = (take(encoder(), kind(0.3, CurrentNoise()))[0][:2] for kind in (SoftReset, Perturb))
    assert_same([own - 0.3 * old for own, old in zip(mixed, start, strict=True)],
                [own - old for own, old in zip(moved, start, strict=True)])


@pytest.mark.parametrize("step", [Shrink(1.0), Perturb(1.0), SoftReset(1.0, CurrentNoise())])
def test_keep_one_is_the_identity(step):
    assert all(torch.equal(a, b) for a, b in zip(take(encoder(), step)[0], encoder().parameters(), strict=True))


def test_shrinking_to_nothing_leaves_the_embedding_layer_alone():
    weights, fresh = take(encoder(), Shrink(0.0))[0], list(encoder().parameters())
    assert all((own == 0).all() for own in weights[:2]) and all(map(torch.equal, weights[2:], fresh[2:]))


def test_current_noise_has_the_mean_and_spread_of_each_models_weights():
    weights = torch.stack([5 + 2 * torch.randn(200, 300), 0.1 * torch.randn(200, 300)]).double()
    drawn = CurrentNoise()(Layer("", nn.Linear(300, 200), {"weight": weights}), "weight", draws.key([0, 1]))
    torch.testing.assert_close(drawn.mean((1, 2)), weights.mean((1, 2)), atol=0.03, rtol=0)
    torch.testing.assert_close(drawn.std((1, 2)), weights.std((1, 2)), atol=0, rtol=0.01)
    constant = torch.full((2, 7), 3.0)
    assert torch.equal(CurrentNoise()(Layer("", nn.Linear(1, 7), {"bias": constant}), "bias", draws.key([0, 1])), constant)


def test_steps_that_draw_nothing_initial_take_layers_of_unknown_kind():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))

    blocks = target(nn.Sequential(Odd(), nn.Linear(3, 4)), centers=torch.zeros(2, 4)).blocks
    for step in (Shrink(), Perturb(noise=CurrentNoise()), SoftReset(noise=CurrentNoise())):
        step.check(blocks)
    for step in (Perturb(), SoftReset(), DisentangledReset()):
        with pytest.raises(TypeError, match="Odd"):
            step.check(blocks)


@pytest.mark.parametrize("step", [Shrink({"mlp": 0.5}), Perturb({"mlp": 0.5}), DisentangledReset({"mlp": 0.5})])
def test_unknown_blocks_are_found_before_training(step):
    with pytest.raises(ValueError, match="'mlp'.*layer1, embedding"):
        step.check(target(encoder()).blocks)


def slow_means(z, labels, centers):
    return torch.stack([z[labels == j].mean(0) if (labels == j).any() else centers[j] for j in range(len(centers))])


def test_recomputed_centres_keep_the_labels_from_before_the_reset():
    net = encoder()
    centers = some_centers(net)
    centers[2] = 1e6  # nobody's: it stays
    before = torch.cdist(net(X), centers).argmin(1)
    _, found = take(net, SoftReset(0.1), RecomputeCenters(), centers=centers)
    assert not torch.equal(before, torch.cdist(net(X), centers).argmin(1)), "the reset must change some labels"
    torch.testing.assert_close(found, slow_means(net(X), before, centers))


def test_native_reclustering_takes_the_means_of_the_current_groups():
    net = encoder()
    centers = some_centers(net)
    centers[1] = -1e6
    _, found = take(net, SoftReset(0.1), NativeRecluster(), centers=centers)
    torch.testing.assert_close(found, slow_means(net(X), torch.cdist(net(X), centers).argmin(1), centers))
    assert torch.equal(found[1], centers[1])
    _, first = take(net, NativeRecluster(subsample=60, rows="first"), centers=centers)
    torch.testing.assert_close(first, slow_means(net(X)[:60], torch.cdist(net(X)[:60], centers).argmin(1), centers))


def test_noise_is_as_long_as_the_embeddings_and_leaves_the_network_alone():
    net, seen = encoder(), []

    def spy(z, k, key):
        seen.append(z)
        return z[:k]

    weights, _ = take(net, NoisyRecluster(0.3, spy))
    assert_same(weights, list(encoder().parameters()))
    z, moved = net(X).detach(), seen[0] - net(X).detach()
    torch.testing.assert_close(moved.norm(dim=1), 0.3 * z.norm(dim=1))
    assert abs(torch.nn.functional.cosine_similarity(moved, z).mean()) < 0.15, "in any direction"
    assert torch.equal(take(net, NoisyRecluster(0.0))[1], take(net, Recluster())[1])


def test_disentangled_labels_come_from_a_reset_copy_and_the_network_stays_bit_by_bit():
    net, copied = encoder(), encoder()
    centers = some_centers(net)
    weights, found = take(net, DisentangledReset(0.1), centers=centers)
    assert all(torch.equal(a, b) for a, b in zip(weights, encoder().parameters(), strict=True))
    take(copied, SoftReset(0.1))
    labels = torch.cdist(copied(X), centers).argmin(1)
    assert not torch.equal(labels, torch.cdist(net(X), centers).argmin(1)), "the reset must change some labels"
    torch.testing.assert_close(found, slow_means(net(X), labels, centers))
    assert torch.equal(take(net, DisentangledReset(1.0))[1], take(net, NativeRecluster())[1])


def test_the_network_comes_back_even_if_embedding_fails():
    net = encoder()
    broken = replace(target(net), embedder=lambda rows: 1 / 0)
    with torch.no_grad(), pytest.raises(ZeroDivisionError):
        DisentangledReset(0.1)(broken)
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), encoder().parameters(), strict=True))


def test_random_centres_are_different_samples_of_each_problem():
    z = draws.normal(draws.key([0, 1]), (30, 3), dtype=torch.float64)
    found = RandomCenters()(z, 30, draws.key([5, 6]))
    assert all(torch.equal(a.sort(0).values, b.sort(0).values) for a, b in zip(found, z, strict=True))
    same = z[:1].expand(2, 30, 3)
    assert not torch.equal(*RandomCenters()(same, 4, draws.key([5, 6])))


@pytest.mark.parametrize("make", [
    lambda: Shrink(1.1), lambda: Perturb(-0.1), lambda: DisentangledReset(2.0), lambda: NoisyRecluster("much"),
    lambda: NativeRecluster(subsample=0), lambda: NoisyRecluster(rows="last"), lambda: DisentangledReset(rows="last"),
])
def test_bad_numbers_are_refused(make):
    with pytest.raises(ValueError):
        make()


def test_steps_can_be_copied_and_changed():
    step = SoftReset({"layer1": 0.5}, KaimingNoise())
    assert copy.deepcopy(step) == step == replace(step, norms=False)


NAMES = {name: getattr(interventions, name) for name in interventions.__all__}


def documented():
    """Name -> intervention, as docs/reference/variants.md says."""
    rows = [line.split("|") for line in (Path(__file__).parents[2] / "docs/reference/variants.md").read_text().splitlines() if line.startswith("|") and ("`Every" in line or "`WhenSettled" in line)]
    return {row[1].strip(): eval(row[2].split("`")[1], dict(NAMES)) for row in rows}


@pytest.mark.parametrize("sentence", documented().values(), ids=documented())
def test_every_documented_sentence_trains_and_stacked_equals_separate(sentence):
    digits = load_digits().data[:150] / 16
    at_once = {"interval": 1} if isinstance(sentence, Every) else {"look": 1, "shortest": 1, "longest": 1}
    settings = small_settings(n_clusters=10, intervention=replace(sentence, **at_once), pretraining=None,
                              clustering=Schedule(2, batch_size=50))
    together = train(digits, settings, seeds=(3, 1), execution=Execution("cpu", "float64"))
    assert together.history["clustering"]["fired"].epochs.tolist() == [1]
    if any(isinstance(step, interventions.Exchange) for step in sentence.steps):
        return  # nobody exchanges anything alone
    alone = train(digits, settings, seeds=(1,), execution=Execution("cpu", "float64"))
    for group in ("parameters", "state"):
        for name, tensor in getattr(together, group).items():
            torch.testing.assert_close(tensor[1], getattr(alone, group)[name][0], atol=1e-9, rtol=1e-9)


def test_each_of_several_sentences_ends_as_if_alone():
    recluster, twice = Recluster(KMeans(n_init=2)), SoftReset(0.5)
    sentences = [Every(2, (SoftReset(0.8), recluster, interventions.ResetMomentum())), Every(2, (twice, twice, recluster, interventions.ResetMomentum())),
                 Every(2, (recluster, interventions.ResetMomentum())), Every(2, (twice,)), Every(3, (SoftReset(0.8), recluster)), None]
    settings = [small_settings(intervention=sentence, clustering=Schedule(4, batch_size=50)) for sentence in sentences for _ in range(2)]
    seeds = [3, 1] * len(sentences)
    together = train(X, settings, seeds=seeds, execution=Execution("cpu", "float64"))
    for which in range(1, len(seeds), 2):
        alone = train(X, settings[which], seeds=[seeds[which]], execution=Execution("cpu", "float64"))
        for group in ("parameters", "state"):
            for name, tensor in getattr(together, group).items():
                torch.testing.assert_close(tensor[which], getattr(alone, group)[name][0], atol=1e-9, rtol=1e-9)


def test_children_of_steps_are_called_and_steps_may_hold_tensors():
    seen = []

    class Told(Recluster):
        def __call__(self, target):
            seen.append(len(target.key))
            super().__call__(target)

    class Holding(Step):
        def __init__(self, numbers):
            self.numbers = numbers

        def __eq__(self, other):
            return self.numbers == other.numbers  # a tensor: neither true nor false

        __hash__ = None

        def __call__(self, target):
            seen.append(self.numbers.sum().item())

    class Learning(Intervention):
        def fires(self, epoch):
            return True

        def __call__(self, epoch, target):
            seen.append(torch.is_grad_enabled())
            return False

    sentences = [Every(1, (SoftReset(keep), Told(KMeans(n_init=1)), Holding(torch.full((2,), keep)))) for keep in (0.5, 1.0)]
    settings = [small_settings(intervention=one, pretraining=None, clustering=Schedule(2, batch_size=50)) for one in (*sentences, Learning())]
    train(X, settings, seeds=[0, 0, 0], execution=Execution("cpu", "float64"))
    assert seen == [True, 1, 1.0, 1, 2.0, True]


def test_the_table_of_sentences_misses_no_step():
    said = repr(documented())
    kinds = [name for name, kind in NAMES.items() if isinstance(kind, type) and issubclass(kind, Step) and kind is not Step]
    assert [name for name in kinds if f"{name}(" not in said] == []


@pytest.mark.parametrize("objective", [DECObjective(), DCNObjective()], ids=["dec", "dcn"])
def test_centres_recomputed_by_the_trainer_come_from_the_labels_before(objective):
    """The same as by hand, from what a run looked like right before and right after."""
    seen = {}

    class Look(Step):
        part = "look"

        def prepare(self, target):
            seen["before"] = target.assigner(target.embed())

        def __call__(self, target):
            seen.update(z=target.embed(), centers=target.centers.clone())

    sentence = Every(1, (SoftReset(0.2), RecomputeCenters(), Look()))
    settings = small_settings(objective=objective, intervention=sentence, clustering=Schedule(2, batch_size=50))
    train(X, settings, seeds=[0, 1], execution=Execution("cpu", "float64"))
    for z, labels, centers in zip(seen["z"], seen["before"], seen["centers"], strict=True):
        torch.testing.assert_close(centers, slow_means(z, labels, centers))
