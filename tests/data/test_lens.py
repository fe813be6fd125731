"""A lens enlarges and takes brightness away, for arrays and tensors alike, and estimators look through it in fit and predict."""


import numpy as np
import pytest
import torch
import torch.nn.functional as F

import reclust
from reclust import IDEC, Autoencoder, SelfLabeling
from reclust.data import Dataset, Lens, prepare
from reclust.data.accept import accept
from reclust.data.augmentation.affine import Affine
from reclust.data.lens import DARK
from reclust.data.preparation import Preparation

RNG = np.random.default_rng(0)
IMAGES = RNG.random((5, 3, 8, 6))


def test_enlarging_is_bicubic_and_keeps_the_aspect_ratio():
    larger = Lens(least_side=16)(IMAGES)
    assert larger.shape == (5, 3, 21, 16) and Lens(least_side=16).shape(8, 6, 3) == (3, 21, 16)
    expected = F.interpolate(torch.from_numpy(IMAGES), (21, 16), mode="bicubic", align_corners=False).clamp(0, 1)
    np.testing.assert_allclose(larger, expected.numpy(), atol=1e-12)


@pytest.mark.parametrize("lens", [Lens(), Lens(least_side=6), Lens(least_side=3)])
def test_what_is_large_enough_stays_as_it_is(lens):
    assert lens(IMAGES) is IMAGES


def test_light_and_shadow_have_the_same_colour():
    chroma = Lens(light="removed")(IMAGES)
    np.testing.assert_allclose(chroma[0, :, 2, 3], IMAGES[0, :, 2, 3] / (IMAGES[0, :, 2, 3].sum() + DARK))
    grey = np.linspace(0.2, 1, 24).reshape(1, 1, 4, 6).repeat(3, axis=1)
    assert np.ptp(Lens(light="removed")(grey)) < 0.03 < np.ptp(grey)
    assert not Lens(light="removed")(np.zeros((1, 3, 2, 2))).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tensors_and_arrays_give_the_same_of_their_type(dtype):
    lens, images = Lens(least_side=9, light="removed"), IMAGES.astype(dtype)
    assert lens(images).dtype == dtype and lens(torch.from_numpy(images)).dtype == torch.from_numpy(images).dtype
    np.testing.assert_allclose(lens(torch.from_numpy(images)).numpy(), lens(images), rtol=1e-5)


@pytest.mark.parametrize("samples", [7, 600])
def test_statistics_are_those_of_what_the_network_sees(samples, monkeypatch):
    monkeypatch.setattr("reclust.data.scaling.CHUNK_SIZE", 5_000)  # several chunks
    images = RNG.integers(0, 256, (samples, 5, 5, 3), dtype=np.uint8)
    seen = Preparation.fit(accept(images), standardize=True, lens=Lens(least_side=10, light="removed"))
    x = seen.network_input(images).numpy()
    assert x.shape == (samples, *seen.sample_shape) == (samples, 3, 10, 10)
    np.testing.assert_allclose(x.mean((0, 2, 3)), 0, atol=1e-9)
    np.testing.assert_allclose(x.std((0, 2, 3)), 1, atol=1e-9)


def test_images_with_a_lens_are_streamed_where_they_would_be_too_large():
    images = RNG.random((10, 4, 4, 1))
    seen = Preparation.fit(accept(images), standardize=True, lens=Lens(least_side=8))
    few, many = seen.inputs(images, limit=4 * 10 * 64), seen.inputs(images, limit=4 * 10 * 64 - 1)
    assert type(few) is not type(many)
    rows = torch.arange(10)
    torch.testing.assert_close(few.to(torch.device("cpu"), torch.float32).take(rows), many.to(torch.device("cpu"), torch.float32).take(rows))


def test_a_model_looks_through_its_lens_wherever_it_is(tmp_path):
    images = RNG.integers(0, 256, (40, 5, 4, 3), dtype=np.uint8)
    model = IDEC(3, lens=Lens(least_side=8, light="removed"), augment="affine", representation=Autoencoder((16, 8)), pretrain_epochs=2, epochs=2,
                 intervention=None, random_state=0, device="cpu").fit(images)
    assert model.result_.sample_shape == (3, 10, 8) and model.n_features_in_ == 60
    model.save(tmp_path / "m.reclust")
    loaded = reclust.load(tmp_path / "m.reclust")
    assert loaded.lens == model.lens and (loaded.predict(images) == model.labels_).all()
    np.testing.assert_array_equal(loaded.transform(images.reshape(40, -1).astype(float)), model.transform(images))


@pytest.mark.parametrize(("lens", "X", "message"), [
    (Lens(light="removed"), np.zeros((9, 4, 4)), "Lens\\(light='removed'\\) needs images of 3 channels, got 1"),
    (Lens(least_side=9), np.zeros((9, 4)), "needs images: pass image_shape"),
    ("large", np.zeros((9, 4)), "lens must be an instance of Lens"),
    (28, np.zeros((9, 4, 4)), "lens must be an instance of Lens"),
])
def test_a_lens_that_does_not_go_with_the_samples_is_refused(lens, X, message):
    with pytest.raises(ValueError, match=message):
        IDEC(2, lens=lens).fit(X)


@pytest.mark.parametrize(("given", "message"), [({"least_side": 0}, "least_side must be an integer of at least 1"), ({"light": True}, "light must be one of 'kept', 'removed'")])
def test_a_lens_that_does_not_exist_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Lens(**given)


def test_without_light_what_is_darker_than_anything_seen_is_black_all_the_same():
    bright = RNG.integers(100, 256, (40, 4, 4, 3), dtype=np.uint8)
    seen = Preparation.fit(accept(bright), standardize=True, lens=Lens(light="removed"))
    dark = seen.network_input(np.full((1, 4, 4, 3), 98, dtype=np.uint8))
    np.testing.assert_allclose(dark, seen.network_input(np.full((1, 4, 4, 3), 100, dtype=np.uint8)))


def test_self_labeling_goes_through_the_lens_and_leaves_colours_alone():
    images = RNG.integers(0, 256, (60, 4, 4, 3), dtype=np.uint8)
    fitted = IDEC(2, lens=Lens(light="removed"), augment="affine", representation=Autoencoder((8,)), pretrain_epochs=1, epochs=1,
                  intervention=None, random_state=0, device="cpu").fit(images)
    labeling = SelfLabeling(fitted, epochs=1, warmup_epochs=2, threshold=0.1, device="cpu").fit(images)
    assert labeling._self_label(fitted.preparation_, (3, 4, 4), Affine()).training.views == ("clean", Affine())
    assert labeling.predict(images).shape == (60,)


def test_prepared_sets_go_through_a_lens():
    given = Dataset(samples=RNG.integers(0, 256, (9, 4, 6, 3), dtype=np.uint8), image_shape=(3, 4, 6), max_value=255)
    prepared = prepare(given, lens=Lens(least_side=8, light="removed"))
    assert prepared.samples.shape == (9, 3, 8, 12)
    np.testing.assert_allclose(prepared.samples, Lens(8, "removed")(prepare(given).samples), atol=1e-6)
    assert abs(prepared.standardized().mean()) < 1e-5
