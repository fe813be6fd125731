"""A seed gives the same fit in every version: these results were recorded with version 0.1."""

import json
from pathlib import Path

import numpy as np
import pytest
from support import blobs, small_settings

from reclust import (
    BRB,
    DCN,
    DEC,
    IDEC,
    DCNObjective,
    DECObjective,
    Execution,
    IDECObjective,
    load,
    train,
)
from reclust.data.augmentation.affine import Noise

RECORDED = Path(__file__).parent / "version_0_1" / "fits.json"
SMALL = {"intervention": BRB(3), "pretrain_epochs": 3, "epochs": 6, "batch_size": 32, "device": "cpu"}
FITS = {
    "DEC": DEC(4, random_state=3, **SMALL),
    "IDEC": IDEC(4, random_state=5, n_init=3, **SMALL),
    "DCN": DCN(4, random_state=7, augment="noise", **SMALL),
    "digits": IDEC(4, random_state=1, image_shape=(4, 4), augment="affine", **SMALL),
}
OBJECTIVES = {"dec": DECObjective(), "idec": IDECObjective(), "dcn": DCNObjective()}


def fitted(name):
    X, _ = blobs(n=160, features=16, k=4, seed=11, spread=0.5)
    return FITS[name].fit(X).labels_.tolist()


def trained(name):
    X, _ = blobs(n=120, features=6, k=4, seed=2, spread=2.0)
    settings = small_settings(objective=OBJECTIVES[name], augment=Noise())
    result = train(X, settings, seeds=(0, 9), execution=Execution(device="cpu", precision="float64"))
    return result.history["clustering"]["loss"].values.tolist()


@pytest.mark.parametrize("name", FITS)
def test_labels_are_those_of_version_0_1(name):
    assert fitted(name) == json.loads(RECORDED.read_text())["labels"][name]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_losses_are_those_of_version_0_1(name):
    np.testing.assert_allclose(trained(name), json.loads(RECORDED.read_text())["losses"][name], rtol=1e-6)


def test_model_files_of_version_0_1_load():
    recorded = json.loads(RECORDED.read_text())
    X, images = blobs(n=60, features=6, k=3, seed=4)[0], blobs(n=40, features=16, k=2, seed=5)[0]
    model = load(RECORDED.with_name("model.reclust"))
    assert model.predict(X).tolist() == recorded["model"]["predict"]
    np.testing.assert_allclose(model.transform(X[:3]), recorded["model"]["transform"], rtol=1e-9)
    assert load(RECORDED.with_name("images.reclust")).predict(images).tolist() == recorded["images"]["predict"]
