"""Replicas that become copies of better ones: whole, in place, by label-free scores, and never otherwise."""

from dataclasses import replace

import pytest
import torch
from support import Stop, blobs, small_settings, stop_at

from reclust import (
    BRB,
    Autoencoder,
    Checkpoint,
    DCNObjective,
    Execution,
    IDECObjective,
    KMeans,
    Recluster,
    ResetMomentum,
    Schedule,
    SoftReset,
    Target,
    train,
)
from reclust.interventions import Every, Exchange, RecomputeCenters
from reclust.training import run as run_module
from reclust.training.engine.firing import sharing
from reclust.training.phase import Phase

X = torch.from_numpy(blobs(n=100)[0])
EXACT = {"device": "cpu", "precision": "float64"}
RESET = (SoftReset(0.8), Recluster(KMeans(n_init=2)), ResetMomentum())


def settings(*steps, **changes):
    return small_settings(intervention=Every(2, steps), **changes)


def fixed(monkeypatch, *scores):
    monkeypatch.setattr(Exchange, "scores", lambda self, target: torch.tensor(scores))


def tensors(phase):
    """Everything that belongs to a replica, (r, ...) each."""
    replicas = phase.context.replicas
    groups = (replicas.parameters, replicas.buffers, replicas.state, phase.descent.optimizer.tensors())
    return {f"{i}/{name}": stack.detach() for i, group in enumerate(groups) for name, stack in group.items()}


@pytest.mark.parametrize("executor", ["vmap", "plain"])
@pytest.mark.parametrize("changes", [{}, {"objective": DCNObjective()}], ids=["idec", "dcn"])
def test_a_copy_is_a_copy_of_everything_and_others_are_untouched(monkeypatch, executor, changes):
    fixed(monkeypatch, 0.4, 0.1, 0.9, 0.5, 0.2)
    phases, seen = [], {}

    class Watched(Phase):
        def __init__(self, *given):
            super().__init__(*given)
            phases.append(self)

    def look(snapshot):
        if snapshot.phase == "clustering" and snapshot.epoch <= 2:
            now = tensors(phases[-1])
            seen[snapshot.moment, snapshot.epoch] = {name: (stack.clone(), stack.data_ptr()) for name, stack in now.items()}

    monkeypatch.setattr(run_module, "Phase", Watched)
    train(X, settings(Exchange(0.4), **changes), seeds=range(5), monitors=[look], execution=Execution(**EXACT, executor=executor))
    before, after = seen["epoch", 1], seen["intervention", 2]
    assert any("decoder" in name for name in before) and any("/first/" in name for name in before)
    for name, (stack, place) in before.items():
        assert torch.equal(after[name][0], stack[[0, 2, 2, 3, 3]]), name
        assert after[name][1] == place, "captured graphs know tensors by their place"
    trained = seen["epoch", 2]
    assert not torch.equal(*trained["0/encoder.1.weight"][0][1:3]), "each goes on with its own draws"


def test_soft_resets_part_the_copies(monkeypatch):
    fixed(monkeypatch, 0.4, 0.1, 0.9)
    seen = []
    train(X, settings(Exchange(), SoftReset(0.8)), seeds=range(3), execution=Execution(**EXACT),
          monitors=[lambda snapshot: seen.append(snapshot.parameters["encoder.1.weight"].clone()) if snapshot.moment == "intervention" else None])
    assert not torch.equal(seen[0][1], seen[0][2]) and torch.corrcoef(seen[0][1:3].flatten(1))[0, 1] > 0.9


@pytest.mark.parametrize(("scores", "share", "expected"), [
    ([0.1, 0.9], 0.25, [1, 1]), ([0.5, 0.5], 0.5, [0, 1]), ([0.1, 0.2, 0.3, 0.4], 0.5, [3, 2, 2, 3]), ([0.1, 0.2, 0.3, 0.4], 0.25, [3, 1, 2, 3]),
    ([float("nan"), 0.2, 0.3], 0.5, [0, 2, 2]), ([float("nan"), 0.2], 0.5, [0, 1]), ([float("nan")] * 2, 0.5, [0, 1]),
])
def test_the_poorest_follow_the_best(scores, share, expected):
    assert Exchange(share).sources(torch.tensor(scores)) == expected
    assert Exchange(share, margin=1.0).sources(torch.tensor(scores)) == list(range(len(scores)))


def test_scores_tell_good_from_bad_and_need_no_neighbours():
    data, _ = blobs(n=100, spread=0.5)
    data = torch.from_numpy((data - data.mean(0)) / data.std(0))
    longer, seen = {"pretraining": Schedule(20, batch_size=20), "representation": Autoencoder((32,))}, {}

    class Looking(Exchange):
        def __call__(self, target):
            target.centers[1] = target.centers[1, :1] + 1e-3 * target.centers[1]  # four borders through one group
            seen.setdefault(len(target.key), self.scores(target))
            super().__call__(target)
            seen.setdefault("centers", target.centers.clone())

    train(data, settings(Looking(), **longer), seeds=range(3), execution=Execution(**EXACT))
    assert seen[3].argmin() == 1 and (seen[3] >= 0).all()
    assert torch.equal(seen["centers"][1], seen["centers"][seen[3].argmax()])
    train(data, settings(Looking(), **longer), seeds=range(2), execution=Execution(**EXACT))
    torch.testing.assert_close(seen[2], seen[3][:2])


def test_a_margin_that_nobody_passes_is_no_exchange():
    with_it, without = (train(X, settings(*steps), seeds=range(3), execution=Execution(**EXACT)) for steps in ((Exchange(margin=99.0), *RESET), RESET))
    assert all(torch.equal(stack, without.parameters[name]) for name, stack in with_it.parameters.items())


def test_executors_agree():
    one, other = (train(X, settings(Exchange(), *RESET), seeds=range(4), execution=Execution(**EXACT, executor=kind)) for kind in ("vmap", "plain"))
    for name, stack in one.parameters.items():
        torch.testing.assert_close(stack, other.parameters[name], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("epoch", [1, 2])
def test_resumed_equals_uninterrupted(tmp_path, epoch):
    given = {"seeds": range(3), "execution": Execution(**EXACT)}
    whole = train(X, settings(Exchange(), *RESET), **given)
    checkpoint = Checkpoint(tmp_path / "run", every=1)
    with pytest.raises(Stop):
        train(X, settings(Exchange(), *RESET), **given, checkpoint=checkpoint, monitors=[stop_at("clustering", epoch)])
    resumed = train(X, settings(Exchange(), *RESET), **given, checkpoint=checkpoint)
    assert all(torch.equal(stack, resumed.parameters[name]) for name, stack in whole.parameters.items())
    assert (whole.labels == resumed.labels).all()


def test_one_model_has_nobody_to_learn_from():
    alone, plain = (train(X, settings(*steps), seeds=[0]) for steps in ((Exchange(), *RESET), RESET))
    assert all(torch.equal(stack, plain.parameters[name]) for name, stack in alone.parameters.items())
    net, centers = torch.nn.Linear(12, 4), torch.zeros(4, 4)
    with pytest.raises(ValueError, match="Exchange needs replicas that train side by side"):
        Every(1, (Exchange(),))(1, Target.of(net, centers, embed=lambda: net(X.float())))


def test_those_with_other_interventions_are_no_peers(monkeypatch):
    fixed(monkeypatch, 0.1, 0.9)
    exchanging, brb = Every(2, (Exchange(0.5), *RESET)), Every(2, RESET)
    mixed = train(X, [replace(settings(), intervention=one) for one in (brb, exchanging, exchanging)], seeds=range(3), execution=Execution(**EXACT))
    plain = train(X, settings(*RESET), seeds=range(3), execution=Execution(**EXACT))
    same = [torch.allclose(mixed.parameters["encoder.1.weight"][i], plain.parameters["encoder.1.weight"][i]) for i in range(3)]
    assert same == [True, False, True]


@pytest.mark.parametrize(("given", "message"), [
    ({"share": 0.0}, "share must be"), ({"share": 0.6}, "share must be"), ({"margin": -1.0}, "margin must be"), ({"subsample": 0}, "subsample must be"),
])
def test_impossible_exchanges_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Exchange(**given)


def test_those_with_another_objective_are_no_peers():
    weights = (0.1, 0.1, 0.3, 0.3)
    each = [replace(settings(), objective=IDECObjective(weight), intervention=BRB(2)) for weight in weights]
    assert [which for which, _ in sharing(each)] == [slice(0, 2), slice(2, 4)]


def test_more_views_tell_the_same_with_less_chance():
    seen = {}

    class Watched(Exchange):
        def __call__(self, target):
            for exchange in (Exchange(), Exchange(views=50), Exchange(views=51), Exchange(views=50, augment=still)):
                seen[exchange] = exchange.scores(target)

    still = GradientOnly()
    train(X, settings(Watched()), seeds=range(3), execution=Execution(**EXACT))
    one, many, more, still = seen.values()
    assert (one - many).abs().max() > (more - many).abs().max() > 0
    assert (still > many).all() and Exchange(views=2) != Exchange()


class GradientOnly:
    """Changes nothing: what clusters can tell at most."""

    def __call__(self, x, keys):
        return x


def test_a_copy_goes_on_with_the_labels_of_whom_it_copies(monkeypatch):
    fixed(monkeypatch, 0.9, 0.1)
    seen = []

    class Note(RecomputeCenters):
        def __call__(self, target):
            seen.append(target.labels.clone())
            super().__call__(target)

    train(X, settings(Exchange(share=0.5), Note()), seeds=[0, 1], execution=Execution(**EXACT))
    assert seen and all(torch.equal(*labels) for labels in seen)
