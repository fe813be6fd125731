"""Self-labeling: its loss against a slow transcription, its edge cases, and its two stages in the one training loop."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from representations.test_contrastive import X as IMAGES, equal, small as contrastive
from sklearn.datasets import load_digits
from support import Stop, blobs, small_settings, stop_at
from torch.func import vmap

from reclust import (
    Autoencoder,
    Checkpoint,
    DCNObjective,
    DECObjective,
    Execution,
    IDECObjective,
    Objective,
    ReclustWarning,
    Result,
    Schedule,
    train,
)
from reclust.data.augmentation.affine import Affine, Noise
from reclust.data.augmentation.strong import StrongViews
from reclust.data.inputs import ResidentInputs
from reclust.estimators import presets
from reclust.objectives import nearest
from reclust.training import self_label as self_label_module
from reclust.training.self_label import (
    Activity,
    HeadObjective,
    SelfLabel,
    SelfLabelObjective,
    logits,
    self_label,
)
from reclust.utils.values import from_json, to_json

X, Y = blobs(n=120, spread=0.5)
QUICK = SelfLabel(threshold=0.6, warmup=Schedule(epochs=20, batch_size=40, lr=0.3, views=("clean",), network="frozen"),
                  training=Schedule(epochs=3, batch_size=40, lr=1e-4, views=("clean", Noise()), first_view="decides"))


def head(seed=0, n=30, d=5, k=4):
    """A state whose head is not zero, and two views."""
    generator = torch.Generator().manual_seed(seed)
    state = {"centers": (k, d), "head_weight": (k, d), "head_bias": (k,)}
    z = torch.randn(2, n, d, generator=generator, dtype=torch.float64)
    return {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in state.items()}, z


def slow_loss(state, weak, strong, threshold, evenness):
    """By samples and classes, in plain numbers."""
    def probabilities(z):
        raw = [float(torch.dot(z, w)) + float(b) for w, b in zip(state["head_weight"], state["head_bias"], strict=True)]
        powers = np.exp(np.array(raw) - max(raw))
        return powers / powers.sum()

    by_class = {}
    for own, changed in zip(weak, strong, strict=True):
        p = probabilities(own)
        if p.max() > threshold:
            by_class.setdefault(int(p.argmax()), []).append(-np.log(probabilities(changed)[p.argmax()]))
    shares = np.mean([probabilities(changed) for changed in strong], axis=0)
    return np.mean([np.mean(losses) for losses in by_class.values()]) + evenness * (shares * np.log(shares)).sum() if by_class else 0.0


@pytest.mark.parametrize("evenness", [0.0, 2.0])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.8, 0.95])
def test_the_loss_is_the_mean_over_classes_of_their_confident_samples(threshold, evenness):
    state, (weak, strong) = head()
    loss = SelfLabelObjective(threshold, evenness).loss(state, torch.stack((weak, strong)))
    assert loss.item() == pytest.approx(slow_loss(state, weak, strong, threshold, evenness), rel=1e-12)


def test_classes_are_even_where_the_loss_of_evenness_is_least_and_one_without_samples_is_no_nan():
    state, _ = head(d=4)
    state["head_weight"], state["head_bias"] = 1e4 * torch.eye(4).double(), torch.zeros(4).double()
    even, uneven = (torch.eye(4).double()[rows].expand(2, -1, -1).clone().requires_grad_() for rows in ([0, 1, 2, 3], [0, 0, 1, 2]))
    objective = SelfLabelObjective(0.5, 1.0)
    assert objective.loss(state, even).item() == pytest.approx(-np.log(4))
    loss = objective.loss(state, uneven)
    loss.backward()
    assert -np.log(4) < loss.item() < 0 and uneven.grad.isfinite().all()


def test_equal_classes_weigh_the_same_however_many_samples_they_have():
    state, _ = head(d=4)
    state["head_weight"], state["head_bias"] = torch.eye(4).double(), torch.zeros(4).double()
    weak, strong = 3 * torch.eye(4).double(), torch.randn(4, 4, generator=torch.Generator().manual_seed(0)).double()
    few, many = (SelfLabelObjective(0.5).loss(state, torch.stack((weak[rows], strong[rows]))) for rows in ([0, 1, 2, 3], [0] * 20 + [1, 2, 3, 3]))
    torch.testing.assert_close(few, many)


def test_an_empty_mask_costs_nothing_and_is_not_nan():
    state, z = head()
    state = {name: (0 * tensor).requires_grad_(name in SelfLabelObjective.trainable) for name, tensor in state.items()}
    z = z.clone().requires_grad_()
    loss = SelfLabelObjective(0.99, 2.0).loss(state, z)
    loss.backward()
    assert loss.item() == 0 and z.grad.abs().sum() == 0 and state["head_weight"].grad.abs().sum() == 0


def test_the_weak_view_decides_and_the_strong_one_learns():
    state, z = head()
    z = z.clone().requires_grad_()
    SelfLabelObjective(0.5).loss(state, z).backward()
    assert z.grad[0].abs().sum() == 0 and z.grad[1].abs().sum() > 0


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_head_begins_as_the_nearest_centre_whatever_the_scale_and_is_sure_of_every_class(scale):
    state, (z, _) = head(k=4)
    centers = scale * state["centers"]
    first = HeadObjective().init(centers)
    assert torch.equal(HeadObjective().assign(first, scale * z), nearest(scale * z, centers))
    own = logits(first, centers).softmax(-1)
    assert own.diagonal().min() > 0.99
    alike = HeadObjective().init(torch.ones(3, 2))
    assert all(tensor.isfinite().all() for tensor in alike.values())


def test_the_warm_up_is_softmax_regression_on_the_nearest_centre():
    state, z = head()
    labels = torch.cdist(z[0], state["centers"]).argmin(-1)
    scores = z @ state["head_weight"].T + state["head_bias"]
    expected = -scores.log_softmax(-1)[:, torch.arange(30), labels].mean()
    torch.testing.assert_close(HeadObjective().loss(state, z), expected)


@pytest.mark.parametrize("objective", [HeadObjective(), SelfLabelObjective(0.5, 1.0)], ids=["warm-up", "self-labeling"])
def test_objectives_are_values_and_map_over_replicas(objective):
    assert isinstance(objective, Objective) and from_json(to_json(objective)) == objective
    assert objective.trainable <= objective.init(torch.zeros(4, 5)).keys() == objective.per_cluster
    cases = [head(seed) for seed in range(3)]
    states = {name: torch.stack([state[name] for state, _ in cases]) for name in cases[0][0]}
    mapped = vmap(objective.loss)(states, torch.stack([z for _, z in cases]))
    torch.testing.assert_close(mapped, torch.stack([objective.loss(*case) for case in cases]))


def test_settings_are_a_value():
    assert from_json(to_json(SelfLabel())) == SelfLabel()
    assert SelfLabel().training.views == ("clean", StrongViews()) and SelfLabel().warmup.epochs == 20


# Both stages


@pytest.fixture(scope="module")
def clustered():
    return train(X, small_settings(), seeds=(3, 1))


@pytest.mark.parametrize("executor", ["plain", "vmap"])
def test_the_warm_up_learns_the_clusters_and_leaves_the_network_alone(clustered, executor):
    warming, _ = QUICK.settings(clustered.settings[0])
    warm = train(X, warming, seeds=(3, 1), start=clustered, execution=Execution(executor=executor))
    assert all(torch.equal(stack, clustered.parameters[name]) for name, stack in warm.parameters.items())
    assert torch.equal(warm.state["centers"], clustered.state["centers"])
    assert (warm.labels == clustered.labels).mean() > 0.9
    losses = warm.history["warm-up"]["loss"].values
    assert (losses[-1] < losses[0]).all()


def test_both_stages_report_what_is_active_and_repeat_bit_for_bit(clustered, tmp_path):
    labeled = self_label(X, clustered, QUICK)
    assert labeled.history.keys() == {"warm-up", "self-labeling"}
    activity = labeled.history["self-labeling"]
    assert activity["active_samples"].values.shape == (2, 2) and (activity["active_samples"].values > 0).all()
    assert (activity["active_classes"].values <= 4).all() and (activity["classes"].values == 4).all()
    assert labeled.labels.shape == (2, len(X)) and not labeled.failed
    assert any(not torch.equal(stack, clustered.parameters[name]) for name, stack in labeled.parameters.items())
    model = labeled.model(1)
    assert (model.assign(model.embed(torch.from_numpy(X).float())).numpy() == labeled.labels[1]).all()
    labeled.save(tmp_path / "labeled.reclust")
    assert equal(Result.load(tmp_path / "labeled.reclust"), labeled)

    checkpoint = Checkpoint(tmp_path / "run.ckpt", every=1)
    with pytest.raises(Stop):
        self_label(X, clustered, QUICK, checkpoint=checkpoint, monitors=[stop_at("warm-up", 2)])
    with pytest.raises(Stop):
        self_label(X, clustered, QUICK, checkpoint=checkpoint, monitors=[stop_at("self-labeling", 1)])
    assert equal(self_label(X, clustered, QUICK, checkpoint=checkpoint), labeled)


def test_stages_have_names_of_their_own_and_failures_stay(clustered):
    seen = []
    labeled = self_label(X, replace(clustered, failed={1: ("clustering", 7)}), QUICK, monitors=[lambda snapshot: seen.append(snapshot.phase)])
    assert list(dict.fromkeys(seen)) == ["warm-up", "self-labeling"] and {part.partition(".")[0] for part in labeled.seconds} == set(seen)
    assert labeled.failed == {1: ("clustering", 7)} and labeled.living == [0]


@pytest.mark.filterwarnings("ignore:By epoch 1 of self-labeling")  # of 48 random images
def test_colour_images_go_through_all_three_stages():
    result = train(IMAGES, contrastive(objective=DCNObjective(weight=1e-4)), seeds=(5,))
    how = replace(QUICK, warmup=replace(QUICK.warmup, epochs=2, batch_size=16),
                  training=Schedule(epochs=2, batch_size=16, views=("clean", StrongViews()), first_view="decides"), threshold=0.34)
    labeled = self_label(IMAGES, result, how)
    assert labeled.labels.shape == (1, len(IMAGES)) and not labeled.failed
    before, after = (one.buffers["encoder.backbone.stem.1.num_batches_tracked"].item() for one in (result, labeled))
    assert after - before == 2 * 2 * 3  # two epochs of three batches, two views apart; the warm-up counts nothing


def test_evenness_keeps_classes_alive_that_die_without_it():
    digits = torch.from_numpy(load_digits().data.reshape(-1, 1, 8, 8) / 16).float()
    inputs = ResidentInputs(digits, digits.mean().reshape(1, 1, 1), digits.std().reshape(1, 1, 1))
    plain = replace(presets.paper_protocol(10, IDECObjective(), channels=1), representation=Autoencoder(hidden=(64, 32)),
                    pretraining=Schedule(6, batch_size=64, views=("clean",)), clustering=Schedule(6, batch_size=64), intervention=None)
    how = SelfLabel(warmup=Schedule(5, batch_size=256, views=("clean",), network="frozen"), training=Schedule(
        10, batch_size=128, views=("clean", Affine(25, 0.15, 15, (0.7, 1.3))), first_view="decides"))
    found = train(inputs, plain, seeds=range(4))
    with pytest.warns(ReclustWarning, match="no sample is left in class"):
        uneven, even = (self_label(inputs, found, replace(how, evenness=evenness)) for evenness in (0.0, 2.0))
    dying, living = (labeled.history["self-labeling"]["classes"].values[-1].mean() for labeled in (uneven, even))
    assert living > dying + 3, (living, dying)  # about nine and three of ten


def test_nothing_confident_is_said_and_changes_nothing(clustered, monkeypatch):
    monkeypatch.setattr(self_label_module, "SHARPNESS", 0.0)
    with pytest.warns(ReclustWarning, match="No sample is above the confidence threshold 0.999 after the warm-up in 2 of 2 replicas"):
        labeled = self_label(X, clustered, replace(QUICK, threshold=0.999, warmup=replace(QUICK.warmup, epochs=1)))
    assert all(torch.equal(stack, clustered.parameters[name]) for name, stack in labeled.parameters.items())
    assert not labeled.failed and np.isfinite(labeled.history["self-labeling"]["loss"].values).all()


def test_a_dying_class_is_said_once():
    class Look:
        moment, epochs = "epoch", 50

        def __init__(self, epoch, bias):
            self.epoch, self.embeddings = epoch, torch.eye(3).repeat(4, 1).unsqueeze(0)
            self.state = {"head_weight": 9 * torch.eye(3).unsqueeze(0), "head_bias": torch.tensor([bias])}

    watch = Activity(0.9, every=1)
    assert watch(Look(0, [0.0, 0.0, 0.0])) == {"active_samples": [12], "active_classes": [3], "classes": [3]}
    with pytest.warns(ReclustWarning, match="By epoch 1 of self-labeling no sample is left in class 2"):
        assert watch(Look(1, [0.0, 0.0, -30.0]))["classes"].tolist() == [2]
    watch(Look(2, [0.0, 0.0, -30.0]))


def test_it_needs_a_clustering_to_start_from():
    pretrained = train(X, small_settings(clustering=None), seeds=(3,))
    with pytest.raises(ValueError, match="takes the 4 centres from start, but it has none"):
        self_label(X, pretrained, QUICK)
    with pytest.raises(ValueError, match="nothing to learn in clustering"):
        train(X, small_settings(objective=DCNObjective(), clustering=Schedule(epochs=1, network="frozen")), seeds=(3,))
    with pytest.raises(ValueError, match="nothing to learn in pretraining"):
        train(X, small_settings(objective=DECObjective(), pretraining=Schedule(epochs=1, network="frozen")), seeds=(3,))
