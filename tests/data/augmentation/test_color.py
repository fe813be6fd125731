"""The colour chain: each operation against Pillow or colorsys, each distribution against torchvision's procedure."""

from __future__ import annotations

import colorsys
import itertools
import math
import random
import warnings

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from scipy import stats
from torch import Tensor

from reclust import draws
from reclust.data.augmentation.affine import Affine
from reclust.data.augmentation.color import (
    Boxes,
    ColorJitter,
    ColorViews,
    Jitters,
    ResizedCrop,
    crop_resize,
    jitter,
    luma,
    shift_hue,
    solarize,
)
from reclust.training.engine.batches import fused
from reclust.utils.exceptions import ReclustWarning


def keys_of(n: int, seed: int = 0) -> Tensor:
    return draws.fold(draws.key(seed), torch.arange(n))


def numbers(*shape: int) -> Tensor:
    return draws.uniform(draws.key(0), shape, dtype=torch.float64)


def bytes_and_images(n: int, size: int = 32, seed: int = 1) -> tuple[np.ndarray, Tensor]:
    """The same images as bytes (n, h, w, 3) and as numbers (n, 3, h, w); some pixels are grey, black or white."""
    array = np.random.default_rng(seed).integers(0, 256, (n, size, size, 3), dtype=np.uint8)
    array[:, :4] = array[:, :4, :, :1]
    array[:, 4], array[:, 5] = 0, 255
    return array, torch.tensor(array).permute(0, 3, 1, 2) / 255


def to_bytes(x: Tensor) -> np.ndarray:
    return x.permute(1, 2, 0).double().mul(255).numpy()


def jitters_of(n: int = 1, **changed: float) -> Jitters:
    neutral = {"brightness": 1.0, "contrast": 1.0, "saturation": 1.0, "hue": 0.0} | changed
    return Jitters(**{k: torch.full((n,), v) for k, v in neutral.items()}, rank=torch.arange(4).expand(n, 4))


# --- operations


@pytest.mark.parametrize("flip", [False, True])
def test_crop_is_what_pillow_crops_and_resizes(flip: bool) -> None:
    images = draws.uniform(draws.key(1), (40, 3, 30, 36))
    boxes = ResizedCrop().boxes(numbers(40, 22), 30, 36)
    views = crop_resize(images, boxes, torch.full((40,), flip), size=40)
    for image, view, top, left, h, w in zip(images, views, *(b.int().tolist() for b in boxes), strict=True):
        for plane, ours in zip(image.numpy(), view.numpy(), strict=True):
            window = Image.fromarray(plane).crop((left, top, left + w, top + h))
            expected = np.asarray(window.resize((40, 40), Image.Resampling.BILINEAR))
            np.testing.assert_allclose(ours, np.fliplr(expected) if flip else expected, atol=1e-5)


def test_nothing_outside_the_window_is_seen() -> None:
    image = torch.ones(1, 3, 32, 32)
    image[:, :, 8:20, 10:15] = 0
    box = Boxes(*(torch.tensor([v], dtype=torch.float64) for v in (8, 10, 12, 5)))
    assert not crop_resize(image, box, torch.tensor([False]), size=32).any()


ENHANCERS = {"brightness": ImageEnhance.Brightness, "contrast": ImageEnhance.Contrast, "saturation": ImageEnhance.Color}


@pytest.mark.parametrize("factor", [0.0, 0.6, 1.0, 1.4])
@pytest.mark.parametrize("kind", ENHANCERS)
def test_blends_are_pillows(kind: str, factor: float) -> None:
    arrays, images = bytes_and_images(1)
    ours = to_bytes(jitter(images, jitters_of(**{kind: factor}))[0])
    expected = np.asarray(ENHANCERS[kind](Image.fromarray(arrays[0])).enhance(factor)).astype(float)
    assert np.abs(ours - expected).max() <= 2  # Pillow rounds greys, means and results to bytes


@pytest.mark.parametrize("turns", [-0.5, -0.1, 0.0, 0.03, 0.4])
def test_hue_is_that_of_colorsys(turns: float) -> None:
    _, images = bytes_and_images(2, size=12)
    ours = shift_hue(images.double(), torch.tensor([turns, 0.0], dtype=torch.float64))
    for r, g, b, *shifted in torch.cat((images[0].double(), ours[0])).flatten(1).T.tolist():
        h, s, v = colorsys.rgb_to_hsv(r, g, b)
        assert shifted == pytest.approx(colorsys.hsv_to_rgb((h + turns) % 1, s, v), abs=1e-12)
    torch.testing.assert_close(ours[1], images[1].double())


def test_grey_is_pillows() -> None:
    arrays, images = bytes_and_images(1)
    expected = np.asarray(Image.fromarray(arrays[0]).convert("L")).astype(float)
    assert np.abs(to_bytes(luma(images[0]))[..., 0] - expected).max() <= 1


def test_solarize_is_pillows() -> None:
    arrays, images = bytes_and_images(2)
    ours = solarize(images, torch.tensor([0.5, torch.inf]))
    expected = np.asarray(ImageOps.solarize(Image.fromarray(arrays[0]), 128))
    np.testing.assert_allclose(to_bytes(ours[0]), expected, atol=1e-3)
    assert torch.equal(ours[1], images[1])


def reference_jitter(x: np.ndarray, factors: list[float], hue: float, order: list[int]) -> np.ndarray:
    """The adjustments one after the other on one image (h, w, 3), as torchvision's documentation words them."""
    for kind in order:
        grey = (x @ (0.2989, 0.587, 0.114))[..., None]
        if kind == 3:
            hsv = [colorsys.rgb_to_hsv(*pixel) for pixel in x.reshape(-1, 3)]
            x = np.array([colorsys.hsv_to_rgb((h + hue) % 1, s, v) for h, s, v in hsv]).reshape(x.shape)
        else:
            x = np.clip(factors[kind] * x + (1 - factors[kind]) * (0, grey.mean(), grey)[kind], 0, 1)
    return x


def test_each_image_is_adjusted_in_its_own_order() -> None:
    images = draws.uniform(draws.key(1), (96, 3, 6, 6), dtype=torch.float64)
    orders = torch.tensor(list(itertools.permutations(range(4)))).repeat(4, 1)
    drawn = ColorJitter(0.8, 0.8, 0.8, 0.5, p=0.9).jitters(numbers(96, 9))._replace(rank=orders)
    ours = jitter(images, drawn)
    for i, image in enumerate(images):
        order = sorted(range(4), key=drawn.rank[i].tolist().__getitem__)
        factors = [values[i].item() for values in drawn[:3]]
        expected = reference_jitter(image.permute(1, 2, 0).numpy(), factors, drawn.hue[i].item(), order)
        np.testing.assert_allclose(ours[i].permute(1, 2, 0), expected, atol=1e-12)


def test_the_chain_is_crop_jitter_grey_flip_solarize() -> None:
    augment, images, keys = ColorViews(), draws.uniform(draws.key(1), (64, 3, 32, 32)), keys_of(64)
    drawn = augment.parameters(keys, 32, 32)
    x = crop_resize(images, drawn.boxes, torch.zeros(64, dtype=torch.bool), size=32)
    x = jitter(x, drawn.jitters)
    for i, view in enumerate(augment(images, keys)):
        expected = luma(x[i]).expand(3, -1, -1) if drawn.grey[i] else x[i]
        expected = expected.flip(-1) if drawn.flip[i] else expected
        expected = torch.where(expected >= 0.5, 1 - expected, expected) if drawn.solarize[i] else expected
        torch.testing.assert_close(view, expected, rtol=0, atol=2e-6)


# --- distributions


def reference_box(height: int, width: int) -> tuple[int, int, int, int]:
    """RandomResizedCrop's procedure with its default ranges."""
    for _ in range(10):
        area = height * width * random.uniform(0.08, 1)
        aspect = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, height - h), random.randint(0, width - w), h, w
    ratio = width / height
    w, h = width, height
    if ratio < 3 / 4:
        h = round(w / (3 / 4))
    elif ratio > 4 / 3:
        w = round(h * (4 / 3))
    return (height - h) // 2, (width - w) // 2, h, w


@pytest.mark.parametrize("size", [(32, 32), (20, 60)])
def test_boxes_are_distributed_as_torchvisions(size: tuple[int, int]) -> None:
    random.seed(0)
    theirs = np.array([reference_box(*size) for _ in range(5000)]).T
    ours = torch.stack(ResizedCrop().boxes(numbers(5000, 22), *size)).numpy()
    for mine, their in zip(ours, theirs, strict=True):
        assert stats.ks_2samp(mine, their).pvalue > 1e-3
    assert stats.ks_2samp(ours[2] * ours[3], theirs[2] * theirs[3]).pvalue > 1e-3
    assert (ours[:2] >= 0).all() and (ours[0] + ours[2] <= size[0]).all() and (ours[1] + ours[3] <= size[1]).all()


def test_a_window_that_never_fits_is_centred() -> None:
    wide = ResizedCrop(area=(1, 1), aspect=(2, 2)).boxes(numbers(3, 22), 33, 32)
    assert [values.tolist() for values in wide] == [[8.0] * 3, [0.0] * 3, [16.0] * 3, [32.0] * 3]
    tall = ResizedCrop(area=(1, 1), aspect=(0.5, 0.5)).boxes(numbers(3, 22), 32, 33)
    assert [values.tolist() for values in tall] == [[0.0] * 3, [8.0] * 3, [32.0] * 3, [16.0] * 3]


def test_jitters_are_uniform_and_orders_equally_likely() -> None:
    drawn = ColorJitter().jitters(numbers(6000, 9))
    chosen = drawn.hue != 0
    assert abs(chosen.double().mean() - 0.8) < 0.02
    for values, low, high in zip(drawn[:4], (0.6, 0.6, 0.8, -0.1), (1.4, 1.4, 1.2, 0.1), strict=True):
        assert stats.kstest(values[chosen], stats.uniform(low, high - low).cdf).pvalue > 1e-3
    for values in drawn[:3]:
        assert (values[~chosen] == 1).all()
    counts = torch.unique(drawn.rank, dim=0, return_counts=True)[1]
    assert len(counts) == 24 and stats.chisquare(counts).pvalue > 1e-3


def test_equal_numbers_still_give_an_order() -> None:
    rank = ColorJitter().jitters(torch.full((1, 9), 0.5, dtype=torch.float64)).rank
    assert sorted(rank[0].tolist()) == [0, 1, 2, 3]


def test_strong_factors_stop_at_zero() -> None:
    assert ColorJitter(brightness=3, p=1).jitters(numbers(500, 9)).brightness.min() >= 0


def test_chances_are_kept_and_unrelated() -> None:
    drawn = ColorViews().parameters(keys_of(6000), 32, 32)
    events = torch.stack((drawn.grey, drawn.flip, drawn.solarize, drawn.jitters.hue != 0)).double()
    assert events.mean(1).tolist() == pytest.approx([0.2, 0.5, 0.2, 0.8], abs=0.02)
    assert (torch.corrcoef(events) - torch.eye(4)).abs().max() < 0.06


# --- refusals


def test_grey_images_are_refused() -> None:
    with pytest.raises(ValueError, match="Three color channels needed"):
        ColorViews()(torch.zeros(2, 1, 32, 32), keys_of(2))


@pytest.mark.slow
@pytest.mark.parametrize("augment", [ColorViews(), Affine()], ids=["color", "affine"])
def test_compiled_views_are_the_same(augment):
    x, keys = torch.rand(6, 3, 32, 32), draws.fold(draws.key(3), torch.arange(6))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReclustWarning)
        torch.testing.assert_close(fused(augment)(x, keys), augment(x, keys), rtol=1e-5, atol=1e-5)


def test_views_that_cannot_be_compiled_are_made_as_they_are(monkeypatch):
    def refuse(function, **options):
        def broken(*given):
            raise RuntimeError("no compiler\nand more")
        return broken

    monkeypatch.setattr(torch, "compile", refuse)
    x, keys = torch.rand(2, 3, 8, 8), draws.fold(draws.key(3), torch.arange(2))
    views = fused(ColorViews())
    with pytest.warns(ReclustWarning, match="cannot be compiled.*no compiler"):
        first = views(x, keys)
    torch.testing.assert_close(first, ColorViews()(x, keys), rtol=0, atol=0)
    torch.testing.assert_close(views(x, keys), first, rtol=0, atol=0)
    assert fused(torch.add) is torch.add, "what has no parts is left as it is"
