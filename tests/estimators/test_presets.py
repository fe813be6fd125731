"""The published protocol, line by line."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from reclust import (
    BRB,
    IDEC,
    Autoencoder,
    Every,
    KaimingNoise,
    KMeans,
    Recluster,
    ResetMomentum,
    ResNet,
    SimCLR,
    SoftReset,
)
from reclust.data import Lens
from reclust.data.augmentation.affine import Affine
from reclust.data.augmentation.color import ColorViews
from reclust.data.augmentation.strong import StrongViews
from reclust.ensemble.selection import Compactness, NormalizedInformation, SharedInformation
from reclust.estimators import presets
from reclust.interventions import Exchange, KMedoids, SplitMerge
from reclust.utils import choices
from reclust.utils.values import from_json, to_json


@pytest.mark.parametrize("algorithm", ["dec", "idec", "dcn"])
@pytest.mark.parametrize("dataset", ["mnist", "fmnist", "kmnist", "usps", "optdigits", "gtsrb"])
def test_autoencoder_sets(dataset, algorithm):
    settings = presets.paper(dataset, algorithm)
    assert settings.n_clusters == (5 if dataset == "gtsrb" else 10)
    assert settings.representation.hidden == (1024, 512, 256) and settings.representation.embedding is None
    assert not settings.representation.batch_norm
    assert (settings.pretraining.epochs, settings.pretraining.lr, settings.pretraining.views) == (250, 1e-3, ("clean",))
    assert (settings.clustering.epochs, settings.clustering.lr, settings.clustering.batch_size) == (400, 1e-3, 256)
    assert settings.clustering.clip_norm == 500
    assert (settings.objective.weight, settings.objective.representation_weight) == {
        "dec": (1.0, 0.0), "idec": (0.1, 1.0), "dcn": (0.025, 1.0)}[algorithm]
    assert presets.paper(dataset, algorithm, pretrained=False).pretraining is None


def test_interventions_are_sentences():
    reset, recluster = SoftReset(0.8, noise=KaimingNoise()), Recluster(KMeans(n_init=10), subsample=10_000, rows="first")
    expected = {"none": None, "brb": Every(20, (reset, recluster, ResetMomentum())), "recluster": Every(20, (recluster,)), "reset": Every(20, (reset,))}
    assert {name: presets.paper("usps", "idec", intervention=name).intervention for name in expected} == expected


def test_grey_sets_are_augmented_as_published():
    assert presets.paper("usps", "idec").augment == Affine(degrees=16, translate=0.1, shear=8)


@pytest.mark.parametrize("algorithm", ["dec", "idec", "dcn"])
@pytest.mark.parametrize(("dataset", "k"), [("cifar10", 10), ("cifar100_20", 20)])
def test_contrastive_sets(dataset, k, algorithm):
    settings = presets.paper(dataset, algorithm)
    assert settings.n_clusters == k and settings.augment == ColorViews()
    assert settings.representation == SimCLR(ResNet(18, width=64, stem="small"), hidden=(512, 256), embedding=128, projector=(2048, 128), temperature=0.5,
                                             reduction="sum", encoding="apart and again" if algorithm == "dec" else "together")
    both = ("augmented", "augmented")
    pretraining, clustering = settings.pretraining, settings.clustering
    assert (pretraining.epochs, pretraining.lr, pretraining.batch_size, pretraining.weight_decay, pretraining.views) == (1000, 3e-3, 512, 1e-4, both)
    assert (clustering.epochs, clustering.batch_size, clustering.weight_decay, clustering.views) == (1000, 512, 0.0, both)
    assert clustering.lr == {"dec": 1e-3, "idec": 3e-3, "dcn": 1e-2}[algorithm]
    assert clustering.warmup_epochs == 20 and clustering.clip_norm == 500
    assert clustering.learning_rate(0) == pytest.approx(0.01 * clustering.lr) and clustering.learning_rate(20) == clustering.lr
    assert (settings.objective.weight, settings.objective.representation_weight) == {
        "dec": (1.0, 0.0), "idec": (1.0, 1.0), "dcn": (1e-4, 1.0)}[algorithm]
    reset = SoftReset({"mlp": 0.7, "block4": 0.9, "projector": 0.7}, noise=KaimingNoise())
    assert settings.intervention == Every(10, (reset, Recluster(KMeans(n_init=10), subsample=10_000, rows="first"), ResetMomentum()))
    assert presets.paper(dataset, algorithm, intervention="none").intervention is None
    assert from_json(to_json(settings)) == settings


def test_self_labeling():
    how = presets.paper_self_labeling("cifar10", "dcn")
    assert (how.threshold, how.warmup.epochs, how.warmup.network) == (0.99, 20, "frozen")
    assert (how.training.epochs, how.training.batch_size, how.training.lr, how.training.weight_decay) == (200, 1000, 1e-3, 0.0)
    weak, strong = how.training.views
    assert weak == "clean" and isinstance(strong, StrongViews) and (strong.operations, strong.cutout) == (4, 16)
    assert presets.paper_self_labeling("cifar100_20", "dcn").training.lr == 2.5e-4
    assert presets.paper_self_labeling("cifar100_20", "idec").training.lr == 1e-3


def test_seeds():
    assert presets.PAPER_SEEDS == (400, 148, 820, 214, 40, 805, 111, 491, 215, 513)


def test_unknown_names_are_listed():
    with pytest.raises(ValueError, match="algorithm must be one of dec, idec, dcn, got 'vade'"):
        presets.paper("usps", "vade")
    with pytest.raises(ValueError, match="dataset must be one of"):
        presets.paper("imagenet", "dec")


def test_best_is_the_published_protocol_with_augmented_pretraining_and_twenty_replicas():
    objective = presets.OBJECTIVES["idec"]
    found = presets.best(10, objective, channels=1)
    published = presets.paper_protocol(10, objective, channels=1)
    assert found.n_init == 20 and found.select == SharedInformation()
    reset, recluster, momentum = published.intervention.steps
    assert found.settings.intervention.steps == (Exchange(), reset, recluster, SplitMerge(rows="first"), momentum)
    assert replace(found.settings, intervention=published.intervention) == replace(
        published, pretraining=replace(published.pretraining, views=("augmented",)))
    many = presets.best(10, objective, channels=1, n_samples=70_000).settings
    assert many.clustering.epochs < published.clustering.epochs and many.intervention.interval < found.settings.intervention.interval
    assert many.augment == presets.MOTION and presets.best(10, objective, channels=3, n_samples=70_000).settings.augment == ColorViews()
    few = presets.best(10, objective, channels=1, n_samples=1797).settings
    assert few.pretraining.batch_size == few.clustering.batch_size == 64 and few.clustering.epochs == published.clustering.epochs
    small = presets.best(10, objective, channels=1, device="cpu")
    assert 1 < small.n_init < 20 and small.settings.pretraining.views == ("augmented",) and small.settings.augment == presets.CPU_MOTION
    assert small.lens == Lens(least_side=16) and found.lens == Lens(least_side=28)
    colour = presets.best(10, objective, channels=3)
    assert colour.lens == Lens(least_side=28) and colour.settings.augment == ColorViews()
    assert presets.best(10, objective).lens == presets.best(10, objective, channels=3, representation=SimCLR()).lens == Lens()
    assert presets.best(10, objective, channels=3, representation=SimCLR()).n_init == 1
    assert from_json(to_json(small)) == small


def test_estimators_take_replicas_and_selection_from_the_preset():
    def found(**given):
        return IDEC(10, device="cpu", **given)._recipe(1)

    assert (found().n_init, found().select, found(preset="paper").n_init) == (1, NormalizedInformation(), 1)
    best = presets.best(10, presets.OBJECTIVES["idec"], channels=1, device="cpu")
    assert found(preset="best") == best == found(preset=best)
    assert found(preset="best", n_init=2).n_init == 2 and found(preset=best, select=Compactness()).select == Compactness()
    assert found(preset="best", n_init=2).settings == best.settings
    assert found(preset=best.settings).n_init == 1
    assert found(preset="best", lens=None).lens == Lens() and found(lens=Lens(20)).lens == Lens(20)
    assert clone(IDEC(10, preset=best)).preset == best
    for wrong in ("worst", 3):
        with pytest.raises(ValueError, match="preset must be one of everyday, paper, best"):
            found(preset=wrong)


@pytest.mark.parametrize(("n_samples", "batch_size"), [(20, 32), (300, 32), (1000, 64), (1797, 128), (4096, 256), (10**5, 256), (10**6, 512), (10**8, 65536)])
def test_batches_grow_with_the_data(n_samples, batch_size):
    settings = IDEC(3)._recipe(None, n_samples).settings
    assert settings.pretraining.batch_size == settings.clustering.batch_size == batch_size
    assert IDEC(3, batch_size=7)._recipe(None, n_samples).settings.clustering.batch_size == 7


@pytest.mark.parametrize("n_samples", [20, 700, 1785, 1797, 10_000, 70_000])
def test_best_on_a_cpu_trains_after_its_last_reset_as_long_as_between_two(n_samples):
    settings = presets.best(10, presets.OBJECTIVES["idec"], channels=1, device="cpu", n_samples=n_samples).settings
    resets = [epoch for epoch in range(settings.clustering.epochs) if settings.intervention.fires(epoch)]
    assert np.diff([*resets, settings.clustering.epochs]).tolist() == [settings.intervention.interval] * (presets.CPU_INTERVALS - 1)


@pytest.mark.parametrize("preset", choices.PRESETS)
def test_presets_take_any_representation(preset):
    own = Autoencoder(hidden=(7,))
    assert IDEC(3, preset=preset, representation=own)._recipe().settings.representation == own


def test_brb_becomes_that_of_the_program():
    settings = replace(presets.paper("optdigits", "idec"), intervention=BRB(20, {"mlp": 0.7, "projector": 0.7}, KMedoids()))
    expected = BRB(20, {"mlp": 0.7}, KMedoids(seeds="central", max_iter=300))
    assert presets.as_program(settings).intervention == expected
