"""SimCLR and self-labeling as a user of estimators meets them."""

import pickle

import numpy as np
import pytest
import torch
from representations.test_contrastive import SMALL, images, own_encoder
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from support import blobs

import reclust
from reclust import BRB, DCN, DEC, IDEC, KMeans, OwnSimCLR, SelfLabeling
from reclust.data.augmentation.color import ColorViews
from reclust.estimators import presets
from reclust.representations import SimCLR

X, Y = images(n=60)
X = np.moveaxis((255 * X).round().astype(np.uint8), 1, -1)  # (n, 8, 8, 3)
TRAIN, TEST = X[:48], X[48:]


def quick(kind=IDEC, **changes):
    given = {"n_clusters": 3, "representation": SMALL, "pretrain_epochs": 2, "epochs": 2, "batch_size": 16, "random_state": 0, "device": "cpu",
             "intervention": BRB(1, {"mlp": 0.7, "block4": 0.9, "projector": 0.7}, KMeans(n_init=1))}
    return kind(**{**given, **changes})


def labeling(clusterer, **changes):
    return SelfLabeling(clusterer, **{"threshold": 0.2, "warmup_epochs": 2, "epochs": 2, "batch_size": 16, "lr": 1e-3, "device": "cpu", **changes})


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(TRAIN)


@pytest.mark.filterwarnings("ignore:.*ended without samples")
@pytest.mark.filterwarnings("ignore:.*of self-labeling no sample is left")
def test_three_stages_on_one_split_and_predictions_on_another(fitted, tmp_path):
    assert fitted.labels_.shape == (48,) and (fitted.predict(TRAIN) == fitted.labels_).all()
    assert (fitted.predict(TEST) == fitted.predict(TEST.reshape(12, -1))).all()  # rows of the same numbers
    assert fitted.transform(TEST).shape == (12, 4) and fitted.predict_proba(TEST).sum(1) == pytest.approx(1)
    labeled = labeling(fitted).fit(TRAIN, Y[:48])
    assert (labeled.predict(TRAIN) == labeled.labels_).all() and labeled.predict(TEST).shape == (12,)
    probabilities = labeled.predict_proba(TEST)
    assert (probabilities.argmax(1) == labeled.predict(TEST)).all() and probabilities.sum(1) == pytest.approx(1)
    assert {"active_samples", "active_classes", "accuracy"} <= labeled.history_["self-labeling"].keys()
    labeled.save(tmp_path / "labeled.reclust")
    again = reclust.load(tmp_path / "labeled.reclust")
    assert (again.predict_proba(TEST) == probabilities).all() and (again.labels_ == labeled.labels_).all()
    assert (pickle.loads(pickle.dumps(labeled)).predict(TEST) == labeled.predict(TEST)).all()


def test_defaults_with_simclr_are_the_papers(fitted):
    settings = IDEC(10, representation=SimCLR())._recipe(channels=3).settings
    published = presets.paper("cifar10", "idec")
    assert settings.objective == published.objective and settings.intervention == published.intervention
    assert settings.augment == ColorViews() and settings.clustering.views == ("augmented", "augmented")
    assert settings.pretraining.weight_decay == 1e-4 and settings.clustering.weight_decay == 0
    assert DCN(10, representation=SimCLR())._recipe(3).settings.objective.weight == 1e-4
    assert DCN(10, representation=SimCLR(), objective=reclust.DCNObjective(weight=0.025))._recipe(3).settings.objective.weight == 0.025
    assert IDEC(10, representation=SimCLR(), preset="paper")._recipe(3).settings.clustering.epochs == 1000
    assert settings.clustering.warmup_epochs == 20
    short = IDEC(10, representation=SimCLR(), pretrain_epochs=10, epochs=30)._recipe(channels=3).settings
    assert (short.pretraining.warmup_epochs, short.clustering.warmup_epochs) == (2, 6)
    whole = DEC(10, preset=presets.paper("cifar10", "dec"))
    assert clone(whole)._recipe(3).settings.representation.encoding == "apart and again"
    assert isinstance(DEC(5, representation=OwnSimCLR(own_encoder()))._recipe(3).settings.intervention, reclust.Every)


@pytest.mark.filterwarnings("ignore:.*ended without samples")
def test_pretrained_once_and_clustered_many_times(fitted, tmp_path):
    pretrained = quick().pretrain(TRAIN)
    pretrained.save(tmp_path / "encoder.reclust")
    again = quick().fit(TRAIN, start=tmp_path / "encoder.reclust")
    assert all(torch.equal(stack, fitted.result_.parameters[name]) for name, stack in again.result_.parameters.items())
    other = quick(DCN, random_state=7, epochs=1, intervention=None).fit(TRAIN, start=pretrained)
    assert "pretraining" not in other.history_ and other.result_.seeds != pretrained.seeds


@pytest.mark.filterwarnings("ignore:.*ended without samples")
def test_an_encoder_of_ones_own(tmp_path):
    own = OwnSimCLR(own_encoder(), torch.nn.Linear(5, 3), weights="given")
    model = quick(representation=own, intervention=None).fit(TRAIN)
    model.save(tmp_path / "own.reclust")
    with pytest.raises(ValueError, match="a custom OwnSimCLR"):
        reclust.load(tmp_path / "own.reclust")
    assert (reclust.load(tmp_path / "own.reclust", representation=own).predict(TEST) == model.predict(TEST)).all()


@pytest.mark.filterwarnings("ignore:.*ended without samples")
@pytest.mark.filterwarnings("ignore:.*of self-labeling no sample is left")
def test_self_labeling_of_tables():
    rows, labels = blobs(n=90, spread=0.5)
    model = IDEC(4, pretrain_epochs=3, epochs=5, batch_size=30, intervention=None, random_state=0, device="cpu").fit(rows)
    labeled = labeling(model, lr=0.01).fit(rows, labels)
    assert (labeled.predict(rows) == labeled.labels_).all()
    assert labeled.result_.settings[0].clustering.views[1] == reclust.data.augmentation.affine.Noise()


def test_what_is_missing_is_said(fitted):
    with pytest.raises(NotFittedError):
        SelfLabeling(quick()).fit(TRAIN)
    with pytest.raises(ValueError, match="views must be a tuple"):
        labeling(fitted, strong="wild").fit(TRAIN)
    with pytest.raises(ValueError, match="needs images"):
        quick().fit(np.random.default_rng(0).normal(size=(20, 12)))
    with pytest.raises(ValueError, match="no pretraining"):
        quick(pretrain_epochs=0).pretrain(TRAIN)
