"""Preprocessing: Pillow and scikit-image as oracles, and the z-score as a law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from reclust.data import DataError, Dataset, prepare, scaling
from reclust.data.preprocess import equalize, resize_bilinear, scale
from reclust.data.scaling import z_score

RNG = np.random.default_rng(3)


def planes() -> np.ndarray:
    """Images (n, 3, h, w) whose planes are noise, dark, flat, two-valued, ramps: every case of the equalisation."""
    noise = RNG.integers(0, 256, (6, 3, 32, 32))
    dark = RNG.integers(10, 60, (6, 3, 32, 32))
    peaks = np.minimum(RNG.geometric(0.05, (6, 3, 32, 32)), 255)
    flat = np.broadcast_to(np.arange(6)[:, None, None, None] * 51, (6, 3, 32, 32))
    two = np.where(RNG.random((6, 3, 32, 32)) < np.linspace(0, 1, 6)[:, None, None, None], 3, 200)
    ramp = np.broadcast_to(np.arange(1024).reshape(32, 32) // 5, (6, 3, 32, 32))
    return np.concatenate([noise, dark, peaks, flat, two, ramp]).astype(np.uint8)


@pytest.mark.parametrize("size", [32, 16, 40])
def test_equalise_is_pillows(size):
    image, ops = pytest.importorskip("PIL.Image"), pytest.importorskip("PIL.ImageOps")
    images = np.ascontiguousarray(planes()[:, :, :size, :size])
    expected = [np.asarray(ops.equalize(image.fromarray(np.moveaxis(one, 0, 2)))) for one in images]
    np.testing.assert_array_equal(np.moveaxis(equalize(images), 1, 3), expected)


def test_equalise_treats_images_and_channels_apart():
    images = planes()
    np.testing.assert_array_equal(equalize(images)[7:9, 1:2], equalize(np.ascontiguousarray(images[7:9, 1:2])))


@pytest.mark.parametrize(
    ("source", "target"), [((8, 8), (28, 28)), ((16, 16), (28, 28)), ((40, 31), (28, 28)), ((9, 50), (32, 32))]
)
def test_resize_is_pillows_bilinear(source, target):
    image = pytest.importorskip("PIL.Image")
    images = RNG.random((4, 1, *source), dtype=np.float32)
    expected = [np.asarray(image.fromarray(one[0]).resize(target[::-1], image.Resampling.BILINEAR)) for one in images]
    np.testing.assert_allclose(resize_bilinear(images, target)[:, 0], expected, atol=2e-6)


@pytest.mark.extras
def test_enlarging_is_scikit_images_bilinear():
    transform = pytest.importorskip("skimage.transform")
    images = RNG.random((3, 1, 8, 8), dtype=np.float32)
    expected = [transform.resize(one[0], (28, 28), order=1, mode="edge", anti_aliasing=False) for one in images]
    np.testing.assert_allclose(resize_bilinear(images, (28, 28))[:, 0], expected, atol=2e-6)


def test_resizing_to_the_same_size_is_the_identity_and_keeps_constants():
    images = RNG.random((2, 3, 32, 32), dtype=np.float32)
    np.testing.assert_array_equal(resize_bilinear(images, (32, 32)), images)
    np.testing.assert_allclose(resize_bilinear(np.full((1, 1, 8, 8), 0.3, np.float32), (28, 28)), 0.3, rtol=1e-6)


def test_scale_ends_at_one_and_refuses_anything_else():
    np.testing.assert_array_equal(scale(np.array([0, 8, 16], np.uint8), 16), np.float32([0, 0.5, 1]))
    for wrong in (np.array([0, 17]), np.array([-0.1, 1]), np.array([np.nan])):
        with pytest.raises(DataError, match="max_value="):
            scale(wrong, 16)


@pytest.mark.parametrize("chunk", [1, 1000, 1 << 24])
def test_statistics_do_not_depend_on_the_chunks(chunk, monkeypatch):
    monkeypatch.setattr(scaling, "CHUNK_SIZE", chunk)
    images = RNG.normal(1000, 0.5, (50, 3, 6, 5))  # a mean far from zero, where sums of squares cancel
    fitted = z_score(images, axes=(0, 2, 3))
    mean, std = fitted.shift.ravel(), fitted.scale.ravel()
    np.testing.assert_allclose(mean, images.mean((0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(std, images.std((0, 2, 3)), rtol=1e-6)


def test_column_statistics_are_the_same_dense_mapped_and_sparse(tmp_path):
    table = np.where(RNG.random((200, 7)) < 0.3, RNG.normal(5, 2, (200, 7)), 0)
    table[:, 4] = 0
    np.save(tmp_path / "x.npy", table)
    forms = (table, np.load(tmp_path / "x.npy", mmap_mode="r"), sparse.csr_array(table))
    for fitted in map(z_score, forms):
        np.testing.assert_allclose(fitted.shift, table.mean(0), rtol=1e-6)
        np.testing.assert_allclose(fitted.scale, np.where(table.std(0) > 0, table.std(0), 1), rtol=1e-6)


def test_a_small_spread_far_from_zero_counts_and_rounding_does_not():
    far = 1.7e18 + 1000.0 * RNG.integers(0, 1000, 300)
    table = np.column_stack([far, np.full(300, 0.1), 0.1 + 2e-17 * RNG.integers(0, 2, 300)])
    fitted = z_score(table)
    mean, std = fitted.shift, fitted.scale
    np.testing.assert_allclose(std[:2], [(far - far.mean()).std(), 1], rtol=1e-3)
    assert table[:, 2].std() > 0 and np.abs((table - mean) / std)[:, 1:].max() < 1e-9


def dataset(**changes) -> Dataset:
    images = RNG.integers(0, 17, (60, 8, 8), dtype=np.uint8)
    return Dataset(**{"samples": images, "image_shape": (1, 8, 8), "max_value": 16, "resize_to": (28, 28)} | changes)


def test_prepare_is_scale_then_resize_then_standardise():
    given = dataset()
    prepared = prepare(given)
    expected = resize_bilinear(given.images[:, None].astype(np.float32) / 16, (28, 28))
    np.testing.assert_array_equal(prepared.samples, expected)
    assert prepared.samples.dtype == np.float32 and prepared.mean.shape == prepared.std.shape == (1, 1, 1)
    standardized = prepared.standardized()
    assert abs(standardized.mean(dtype=np.float64)) < 1e-6 and abs(standardized.std(dtype=np.float64) - 1) < 1e-6


def test_prepare_in_chunks_is_prepare_at_once(monkeypatch):
    given = dataset()
    whole = [prepare(given, statistics=when) for when in ("after_resize", "before_resize")]
    monkeypatch.setattr(scaling, "CHUNK_SIZE", 64 * 7)
    for one, when in zip(whole, ("after_resize", "before_resize"), strict=True):
        again = prepare(given, statistics=when)
        np.testing.assert_array_equal(again.samples, one.samples)
        np.testing.assert_allclose([again.mean, again.std], [one.mean, one.std], rtol=1e-6)


def test_statistics_before_resizing_are_those_of_the_raw_images():
    given = dataset()
    prepared = prepare(given, statistics="before_resize")
    np.testing.assert_allclose(
        [prepared.mean.item(), prepared.std.item()], [given.images.mean() / 16, given.images.std() / 16], rtol=1e-6
    )
    assert prepared.standardized().std() < 0.95


def test_equalised_where_the_set_says_so_and_colours_stay_in_place():
    raw = planes()
    given = dataset(
        samples=np.moveaxis(raw, 1, 3), image_shape=(3, 32, 32), max_value=255, resize_to=None, equalize=True
    )
    np.testing.assert_array_equal(prepare(given).samples, equalize(raw).astype(np.float32) / 255)
    np.testing.assert_array_equal(prepare(given, equalized=False).samples, raw.astype(np.float32) / 255)
    # What the published program does to GTSRB vanishes in the z-score.
    twice = prepare(given, max_value=255 * 255)
    np.testing.assert_allclose(twice.standardized(), prepare(given).standardized(), atol=1e-4)


def test_tables_are_standardised_by_the_batch_and_stay_sparse():
    rows = sparse.csr_array(np.where(RNG.random((40, 9)) < 0.4, RNG.normal(size=(40, 9)), 0))
    prepared = prepare(Dataset(samples=rows))
    assert prepared.samples is rows
    standardized = np.concatenate([prepared.standardized(slice(i, i + 16)) for i in range(0, 40, 16)])
    np.testing.assert_allclose(standardized.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(standardized.std(0), 1, atol=1e-5)
