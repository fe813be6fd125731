"""The published protocol, line by line."""

import pytest

from reclust import Every, KaimingNoise, KMeans, Recluster, ResetMomentum, SoftReset, presets
from reclust.data.augment import Affine


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


def test_seeds():
    assert presets.PAPER_SEEDS == (400, 148, 820, 214, 40, 805, 111, 491, 215, 513)


def test_unknown_names_are_listed():
    with pytest.raises(ValueError, match="algorithm must be one of dec, idec, dcn, got 'vade'"):
        presets.paper("usps", "vade")
    with pytest.raises(ValueError, match="dataset must be one of"):
        presets.paper("imagenet", "dec")
