"""Self-labeling: its two stages in the one training loop."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from representations.test_contrastive import X as IMAGES, equal, small as contrastive
from support import Stop, blobs, small_settings, stop_at

from reclust import (
    Checkpoint,
    DCNObjective,
    DECObjective,
    Execution,
    ReclustWarning,
    Result,
    Schedule,
    train,
)
from reclust.data.augmentation.affine import Noise
from reclust.data.augmentation.strong import StrongViews
from reclust.objectives import self_label as self_label_objectives
from reclust.training.self_label import Activity, SelfLabel, self_label
from reclust.utils.values import from_json, to_json

X, Y = blobs(n=120, spread=0.5)
QUICK = SelfLabel(threshold=0.6, warmup=Schedule(epochs=20, batch_size=40, lr=0.3, views=("clean",), network="frozen"),
                  training=Schedule(epochs=3, batch_size=40, lr=1e-4, views=("clean", Noise()), first_view="decides"))


def test_the_surest_of_each_class_teach_by_default(clustered):
    labeled = self_label(X, clustered, replace(QUICK, threshold=None))
    assert len(np.unique(labeled.labels[0])) == 4 and (labeled.history["self-labeling"]["active_samples"].values == len(X)).all()


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
    assert after - before == 2 * 2 * 2  # two epochs of two batches, two views apart; the warm-up counts nothing


def test_nothing_confident_is_said_and_changes_nothing(clustered, monkeypatch):
    monkeypatch.setattr(self_label_objectives, "SHARPNESS", 0.0)
    with pytest.warns(ReclustWarning, match="No sample is above the confidence threshold 0.999 after the warm-up in 2 of 2 replicas"):
        labeled = self_label(X, clustered, replace(QUICK, threshold=0.999, warmup=replace(QUICK.warmup, epochs=1)))
    assert all(torch.equal(stack, clustered.parameters[name]) for name, stack in labeled.parameters.items())
    assert not labeled.failed and np.isfinite(labeled.history["self-labeling"]["loss"].values).all()


def test_classes_and_confident_samples_are_counted():
    class Look:
        phase, moment, epochs, fired, fires_next = "self-labeling", "epoch", 50, np.zeros(1), np.zeros(1)

        def __init__(self, epoch, bias):
            self.epoch, self.embeddings = epoch, torch.eye(3).repeat(4, 1).unsqueeze(0)
            self.state = {"head_weight": 9 * torch.eye(3).unsqueeze(0), "head_bias": torch.tensor([bias])}

    watch = Activity(0.9, every=1)
    assert watch(Look(0, [0.0, 0.0, 0.0])) == {"active_samples": [12], "active_classes": [3], "classes": [3]}
    assert watch(Look(1, [0.0, 0.0, -30.0]))["classes"].tolist() == [2]


def test_it_needs_a_clustering_to_start_from():
    pretrained = train(X, small_settings(clustering=None), seeds=(3,))
    with pytest.raises(ValueError, match="takes the 4 centers from start, but start has 0 centers"):
        self_label(X, pretrained, QUICK)
    with pytest.raises(ValueError, match="nothing to train"):
        train(X, small_settings(objective=DCNObjective(), intervention=None, clustering=Schedule(epochs=1, network="frozen")), seeds=(3,))
    with pytest.raises(ValueError, match="nothing to train"):
        train(X, small_settings(objective=DECObjective(), pretraining=Schedule(epochs=1, network="frozen")), seeds=(3,))


@pytest.mark.parametrize("executor", ["plain", "vmap"])
def test_epochs_of_self_labeling_equal_a_plain_loop(clustered, executor):
    """Labels once an epoch by clean samples in eval mode; then steps on the other view, without BatchNorm."""
    how = replace(QUICK, training=replace(QUICK.training, epochs=2, batch_size=120, views=("clean", Noise(0.0, 0.0)), clip_norm=None))
    warming, labeling = how.settings(clustered.settings[0])
    exact = Execution(precision="float64", executor=executor)
    warm = train(X, warming, seeds=(3, 1), start=clustered, execution=exact)
    result = train(X, labeling, seeds=(3, 1), start=warm, execution=exact)
    x = torch.from_numpy(X).double()
    for replica in range(2):
        model = warm.model(replica).to(torch.device("cpu"), torch.float64)
        net, state = model.network, model.state
        weight, bias = (state[name].clone().requires_grad_() for name in ("head_weight", "head_bias"))
        trained = [parameter.requires_grad_() for parameter in net.encoder.parameters()]
        optimizer = torch.optim.Adam([*trained, weight, bias], lr=how.training.lr)
        for _ in range(2):
            with torch.no_grad():
                confidence, labels = (net.encoder(x) @ weight.T + bias).softmax(-1).max(-1)
            losses = torch.nn.functional.cross_entropy(net.encoder(x) @ weight.T + bias, labels, reduction="none")
            groups = [losses[(labels == j) & (confidence > how.threshold)] for j in range(4)]
            share = (net.encoder(x) @ weight.T + bias).softmax(-1).mean(0)
            loss = torch.stack([group.mean() for group in groups if len(group)]).mean() + how.evenness * (share * share.log()).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.testing.assert_close(result.state["head_weight"][replica], weight.detach(), rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(result.parameters["encoder.1.weight"][replica], trained[0].detach(), rtol=1e-9, atol=1e-9)
