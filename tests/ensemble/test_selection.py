"""Label-free scores: what separates scores higher than what does not, whoever stands beside it and whatever the labels say."""

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.metrics import (
    adjusted_rand_score,
    mutual_info_score,
    silhouette_samples,
)
from support import blobs, small_settings

import reclust
from reclust import (
    BRB,
    IDEC,
    Autoencoder,
    Every,
    KMeans,
    Recluster,
    ReclustWarning,
    Schedule,
    SoftReset,
    draws,
    metrics,
    train,
)
from reclust.data.augmentation.affine import Affine, Noise
from reclust.data.inputs import ResidentInputs, as_inputs
from reclust.ensemble.consensus import consensus
from reclust.ensemble.selection import (
    Candidates,
    Compactness,
    Consistency,
    NormalizedInformation,
    SharedInformation,
    Silhouette,
    SizeEntropy,
    better_half,
)
from reclust.interventions import Exchange

X, Y = blobs(n=160, spread=0.5)
X = ((X - X.mean(0)) / X.std(0)).astype(np.float32)
INPUTS = as_inputs(X)
ALONE = [Consistency(), Consistency(Noise(0.3), repeats=5, seed=1), Compactness(), SharedInformation(), NormalizedInformation(), Silhouette(), Silhouette("cosine")]
every = pytest.mark.parametrize("selector", ALONE, ids=repr)
together = pytest.mark.parametrize("selector", [*ALONE, SizeEntropy()], ids=repr)


def replicas(result, *chosen):
    """These replicas of a result as a result of their own."""
    rows = list(chosen)
    groups = {group: {name: stack[rows] for name, stack in getattr(result, group).items()} for group in ("parameters", "buffers", "state")}
    failed = {new: result.failed[old] for new, old in enumerate(rows) if old in result.failed}
    return replace(result, settings=[result.settings[i] for i in rows], seeds=tuple(result.seeds[i] for i in rows), failed=failed,
                   labels=result.labels[rows], **groups)


@pytest.fixture(scope="module")
def good():
    """A replica whose clusters are the four groups."""
    settings = small_settings(representation=Autoencoder((32,)), intervention=None, pretraining=Schedule(30, batch_size=20), clustering=Schedule(10, batch_size=20))
    result = train(X, settings, seeds=[0])
    assert adjusted_rand_score(Y, result.labels[0]) == 1
    return result


@pytest.fixture(scope="module")
def family(good):
    """Replicas 0 good, 1 with its centres in another order, 2 with two groups merged and one split, 3 with random centres, 4 failed."""
    centers = good.state["centers"][0]
    split = centers.clone()
    split[1] = split[0] + 0.01 * (centers[1] - centers[0])  # a border through the middle of the first group
    chance = centers[torch.tensor([0, 0, 1, 1])] + 0.01 * torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    together = replicas(good, 0, 0, 0, 0, 0)
    together.state = {"centers": torch.stack([centers, centers.flip(0), split, chance, centers * torch.nan])}
    together.failed = {4: ("clustering", 3)}
    return together


@every
def test_what_separates_scores_higher_than_what_does_not(selector, family):
    scores = selector(Candidates(family, INPUTS))
    assert scores.shape == (5,) and scores[4] == -torch.inf
    assert scores[0].item() == pytest.approx(scores[1].item(), abs=1e-6), "names of clusters mean nothing"
    assert scores[0] > scores[2] + 0.05 and scores[0] > scores[3] + 0.05
    assert (scores[:4] <= 1).all()


@pytest.mark.parametrize("selector", [Consistency(), Consistency(Noise(5.0))], ids=repr)
def test_consistency_is_a_share(selector, family):
    scores = selector(Candidates(family, INPUTS))[:4]
    assert ((scores >= 0) & (scores <= 1)).all()


def test_consistency_under_no_change_is_one_and_compactness_at_its_own_points_too(family):
    assert (Consistency(Noise(0, 0))(Candidates(family, INPUTS))[:4] == 1).all()
    repeated = X[[0, 1, 2, 3]].repeat(10, axis=0)  # one sample of each group, ten times over
    exact = replicas(family, 0)
    exact.state = {"centers": exact.model(0).embed(torch.from_numpy(X[:4]))[None]}
    assert Compactness()(Candidates(exact, as_inputs(repeated))).item() == pytest.approx(1)


def test_compactness_is_one_minus_the_share_of_spread_left_within_clusters(family):
    z = family.model(0).embed(torch.from_numpy(X)).double()
    within = sum(((z[member] - family.state["centers"][0, own]) ** 2).sum()
                 for own in range(4) for member in [torch.from_numpy(family.labels[0] == own)])
    expected = 1 - within / ((z - z.mean(0)) ** 2).sum()
    assert Compactness()(Candidates(family, INPUTS))[0].item() == pytest.approx(expected.item(), rel=1e-4)


@every
def test_a_replica_scores_the_same_alone_or_among_others(selector, family):
    together = selector(Candidates(family, INPUTS))
    for i in range(5):
        assert selector(Candidates(replicas(family, i), INPUTS))[0] == together[i]
    assert torch.equal(selector(Candidates(replicas(family, 4, 2, 0), INPUTS)), together[[4, 2, 0]])


@together
def test_scores_repeat_and_touch_no_generator(selector, family):
    before = torch.get_rng_state()
    assert torch.equal(selector(Candidates(family, INPUTS)), selector(Candidates(family, INPUTS)))
    assert torch.equal(before, torch.get_rng_state())


def test_a_cluster_that_holds_everything_is_consistent_and_tells_nothing(family):
    giant = replicas(family, 0)
    giant.state = {"centers": torch.cat([giant.state["centers"][:, :1], torch.full((1, 3, 4), 1e3)], 1)}
    candidates = Candidates(giant, INPUTS)
    assert Consistency()(candidates) == 1 and SharedInformation()(candidates) == NormalizedInformation()(candidates) == 0
    assert SizeEntropy()(candidates) == 0 and Silhouette()(candidates) == Silhouette("cosine")(candidates) == 0


def test_scores_are_the_formulas_of_scikit_learn(family):
    candidates = Candidates(family, INPUTS)
    order = candidates.rows.numpy()
    labels = [family.model(i).predict(INPUTS) for i in range(4)]
    for i in (0, 2, 3):
        z = candidates.embeddings[i].double().numpy()
        assert (candidates.labels[i].numpy() == labels[i][order]).all()
        assert Silhouette()(candidates)[i].item() == pytest.approx(silhouette_samples(z, labels[i][order], metric="sqeuclidean").mean(), abs=1e-5)
        own, view = SharedInformation().pairs(candidates)[i]
        assert SharedInformation()(candidates)[i].item() == pytest.approx(mutual_info_score(own, view) / np.log(4), abs=1e-5)
        entropy = mutual_info_score(own, own)
        expected = mutual_info_score(own, view) / entropy * len(np.unique(own)) / 4
        assert NormalizedInformation()(candidates)[i].item() == pytest.approx(expected, abs=1e-5)
        assert SizeEntropy()(candidates)[i].item() == pytest.approx(mutual_info_score(labels[i], labels[i]) / np.log(4), abs=1e-5)


@every
def test_more_samples_than_the_limit_are_looked_at_in_part(selector, family):
    few, many = (selector(Candidates(family, INPUTS, limit=limit)) for limit in (50, 160))
    assert len(Candidates(family, INPUTS, limit=50).rows.unique()) == 50
    assert few[0] > few[2] and few[0].item() == pytest.approx(many[0].item(), abs=0.15)


def test_embeddings_that_all_fall_together_are_no_division_by_zero(family):
    point = replicas(family, 0)
    point.parameters = {name: torch.zeros_like(stack) for name, stack in point.parameters.items()}
    point.state = {"centers": torch.zeros(1, 4, 4)}
    assert Compactness()(Candidates(point, INPUTS)).isfinite().all()


def jitter(x, keys):
    return x + 0.1 * draws.normal(keys, x.shape[keys.ndim:], dtype=x.dtype)


def test_images_and_tables_have_a_perturbation_of_their_own(monkeypatch, family):
    seen = []
    for kind in (Noise, Affine):
        monkeypatch.setattr(kind, "__call__", lambda self, x, keys: (seen.append(self), x)[1])
    Consistency()(Candidates(replicas(family, 0), INPUTS))
    assert set(seen) == {Noise()}
    seen.clear()
    Consistency()(Candidates(replicas(family, 0), ResidentInputs(INPUTS.samples.reshape(160, 1, 3, 4))))
    assert set(seen) == {Affine()}


# In an estimator


def quick(**changes):
    given = {"n_clusters": 4, "pretrain_epochs": 2, "epochs": 3, "batch_size": 40, "representation": Autoencoder((16, 8)), "n_init": 2,
             "intervention": BRB(2, method=KMeans(n_init=2)), "random_state": 0, "device": "cpu"}
    return IDEC(**{**given, **changes})


def outcome(model):
    return [replica.score for replica in model.replicas_], model.best_replica_, model.labels_.tolist()


SCORED = {"accuracy", "nmi", "ari", "label_change", "label_change_accuracy", "label_change_ari"}


@pytest.mark.parametrize("changes", [{}, {"select": Silhouette(), "n_init": 3},
                                     {"intervention": Every(2, (Exchange(), SoftReset(), Recluster(KMeans(n_init=2))))}], ids=["usual", "silhouette", "exchange"])
def test_labels_have_no_say(changes):
    """Whatever `y` is, or whether there is any, nothing differs but what is reported of it."""
    few, labels = X[:60], Y[:60]
    shuffled = np.random.default_rng(0).permutation(labels)
    blind, *seeing = (quick(consensus=True, **changes).fit(few, y) for y in (None, labels, shuffled))
    for model in seeing:
        assert outcome(model) == outcome(blind) and (model.consensus_labels_ == blind.consensus_labels_).all()
        assert all(torch.equal(stack, blind.result_.parameters[name]) for name, stack in model.result_.parameters.items())
        for phase, columns in model.result_.history.items():
            for name in columns.keys() - {part + ending for part in SCORED for ending in ("", "_after_reset")}:
                assert (columns[name].values == blind.result_.history[phase][name].values).all()
    before, after = (model.history_["clustering"]["accuracy"].values for model in seeing)
    assert (before != after).any()


def test_a_selector_is_handed_nothing_that_was_scored_against_labels():
    def look(candidates):
        assert {field.name for field in fields(candidates)} == {"result", "inputs", "limit"}
        assert not candidates.result.history
        return torch.zeros(2)

    model = quick(select=look).fit(X[:60], Y[:60])
    assert "accuracy" in model.history_["clustering"]


@pytest.mark.parametrize(("scores", "best"), [
    ([np.nan, 0.1, np.nan], 1), ([np.nan, -5.0, -7.0], 1), ([0.2, np.nan, 0.3], 2), ([np.nan] * 3, 0), ([-np.inf, np.nan, -3.0], 2), ([0.5, 0.5, 0.1], 0),
])
def test_a_score_that_is_no_number_never_wins(scores, best):
    model = quick(n_init=3, select=lambda candidates: torch.tensor(scores))
    model = model.fit(X[:40])
    assert model.best_replica_ == best
    assert [replica.score for replica in model.replicas_] == pytest.approx([-np.inf if np.isnan(score) else score for score in scores])


def test_a_failed_replica_never_wins_and_scores_minus_infinity(monkeypatch):
    asked = []

    def poisoned(representation, net, key, dtype):
        weights = original(representation, net, key, dtype)
        weights["encoder.1.weight"][0] = torch.nan
        return weights

    original = Autoencoder.initial_weights
    monkeypatch.setattr(Autoencoder, "initial_weights", poisoned)
    for select in (None, Compactness(), lambda candidates: asked.append(candidates.result.living) or [9.0, 0.0, 1.0]):
        with pytest.warns(ReclustWarning, match="it is dropped"):
            model = quick(n_init=3, select=select).fit(X[:40])
        assert model.best_replica_ in (1, 2) and model.replicas_[0].failed == ("pretraining", 0) and model.replicas_[1].failed is None
        if select is None or isinstance(select, Compactness):
            assert model.replicas_[0].score == -np.inf
    assert asked == [[1, 2]] and model.best_replica_ == 2


def test_ones_own_selector_is_asked_and_obeyed():
    seen = []

    def last(candidates):
        seen.append((len(candidates.result), candidates.inputs.n_samples))
        return np.arange(3)  # arrays and lists are scores, too

    model = quick(n_init=3, select=last).fit(X)
    assert seen == [(3, 160)] and model.best_replica_ == 2
    assert adjusted_rand_score(model.labels_, model.replicas_[2].labels) == 1
    assert quick(n_init=1, select=lambda candidates: pytest.fail("there is nothing to choose")).fit(X[:40]).best_replica_ == 0


@pytest.mark.parametrize("select", ["consistency", Consistency])
def test_selectors_that_cannot_choose_are_refused(select):
    with pytest.raises(ValueError, match="select must be an instance of Callable"):
        quick(select=select).fit(X[:40])


@pytest.mark.parametrize("shape", [(6, 5), (6, 5, 3)], ids=["grey", "colour"])
@pytest.mark.parametrize("augment", ["auto", None])
def test_images_without_augmentation_have_scores_too(shape, augment):
    rng = np.random.default_rng(0)
    images = np.clip(rng.integers(0, 255, size=(3, *shape))[np.arange(60) % 3] + rng.normal(scale=20, size=(60, *shape)), 0, 255).astype(np.uint8)
    model = quick(n_clusters=3, augment=augment).fit(images)
    assert all(0 <= replica.score <= 1 for replica in model.replicas_)
    assert (model.predict(images) == model.labels_).all()


# The better half of the replicas


@pytest.mark.parametrize(("scores", "kept"), [
    ([0.1, 0.2, 0.3], [1, 2]), ([0.1, 0.1, 0.3, 0.25], [2, 3]), ([0.5, 0.5], [0, 1]), ([-np.inf, 0.2, 0.1, 0.4], [1, 3]),
    ([np.nan], [0]), ([np.nan, np.nan], [0, 1]),
])
def test_the_better_half_has_at_least_the_median_score(scores, kept):
    assert [i for i, _ in enumerate(scores) if i in kept] == [
        one.index for one in better_half([SimpleNamespace(index=i, score=score) for i, score in enumerate(scores)])]


def test_an_estimator_keeps_the_consensus_beside_its_labels(tmp_path):
    X, _ = blobs(n=80)
    given = {"pretrain_epochs": 2, "epochs": 2, "batch_size": 40, "representation": Autoencoder((16, 8)), "intervention": None, "random_state": 0, "device": "cpu"}
    model = IDEC(4, n_init=4, consensus=True, **given).fit(X)
    voted = consensus(np.stack([one.labels for one in better_half(model.replicas_)]), 4)
    assert (model.consensus_labels_ == metrics.matched(voted, model.labels_)).all()
    model.save(tmp_path / "m.reclust")
    assert (reclust.load(tmp_path / "m.reclust").consensus_labels_ == model.consensus_labels_).all()
    alone = IDEC(4, consensus=True, **given).fit(X)
    assert (alone.consensus_labels_ == alone.labels_).all()
    assert "consensus_labels_" not in vars(IDEC(4, n_init=2, **given).fit(X))
