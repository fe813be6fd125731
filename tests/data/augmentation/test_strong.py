"""The strong chain: each operation against Pillow, each distribution against its range."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from scipy import stats
from torch import Tensor

from reclust import draws
from reclust.data.augmentation.color import Boxes
from reclust.data.augmentation.strong import Operation, StrongViews, cut_out, operate, smooth

LEVELS = [0.0, 0.31, 0.5, 0.97]


def keys_of(n: int, seed: int = 0) -> Tensor:
    return draws.fold(draws.key(seed), torch.arange(n))


def picture(seed: int = 1) -> np.ndarray:
    """A smooth colourful image of bytes (32, 32, 3) with some noise, of low contrast in one channel."""
    rows, columns = np.mgrid[:32, :32] / 31
    planes = np.stack((rows, columns, 0.3 + 0.2 * rows * columns), axis=-1)
    noise = np.random.default_rng(seed).uniform(-0.1, 0.1, planes.shape)
    return np.clip((planes + noise) * 255, 0, 255).astype(np.uint8)


def pillow(image: Image.Image, operation: Operation, level: float) -> Image.Image:
    """What the published list of operations does at a level in [0, 1)."""
    signed, factor = 2 * level - 1, 0.05 + 0.9 * level

    def affine(*coefficients: float) -> Image.Image:
        return image.transform(image.size, Image.Transform.AFFINE, coefficients)

    match operation:
        case Operation.IDENTITY:
            return image
        case Operation.AUTOCONTRAST:
            return ImageOps.autocontrast(image)
        case Operation.EQUALIZE:
            return ImageOps.equalize(image)
        case Operation.ROTATE:
            return image.rotate(30 * signed)
        case Operation.SOLARIZE:
            return ImageOps.solarize(image, 256 * level)
        case Operation.COLOR:
            return ImageEnhance.Color(image).enhance(factor)
        case Operation.CONTRAST:
            return ImageEnhance.Contrast(image).enhance(factor)
        case Operation.BRIGHTNESS:
            return ImageEnhance.Brightness(image).enhance(factor)
        case Operation.SHARPNESS:
            return ImageEnhance.Sharpness(image).enhance(factor)
        case Operation.SHEAR_X:
            return affine(1, 0.1 * signed, 0, 0, 1, 0)
        case Operation.SHEAR_Y:
            return affine(1, 0, 0, 0.1 * signed, 1, 0)
        case Operation.TRANSLATE_X:
            return affine(1, 0, 3.2 * signed, 0, 1, 0)
        case Operation.TRANSLATE_Y:
            return affine(1, 0, 0, 0, 1, 3.2 * signed)
        case Operation.POSTERIZE:
            return ImageOps.posterize(image, int(4 + 4 * level))


BLENDS = {Operation.AUTOCONTRAST, Operation.COLOR, Operation.CONTRAST, Operation.BRIGHTNESS, Operation.SHARPNESS}
MOVES = {Operation.ROTATE, Operation.SHEAR_X, Operation.SHEAR_Y, Operation.TRANSLATE_X, Operation.TRANSLATE_Y}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("operation", Operation)
def test_operations_are_pillows(operation: Operation, level: float) -> None:
    array = picture()
    x = torch.tensor(array).permute(2, 0, 1)[None] / 255
    ours = operate(x, torch.tensor([int(operation)]), torch.tensor([level], dtype=torch.float64))
    expected = np.asarray(pillow(Image.fromarray(array), operation, level))
    wrong = np.abs(ours[0].permute(1, 2, 0).numpy() * 255 - expected) > (2.001 if operation in BLENDS else 1e-3)
    # Pillow rounds blends to bytes, several times. Where it moves or maps bytes we do the same, except that a place on
    # the very border between two pixels may fall to either side.
    assert wrong.mean() < (0.01 if operation in MOVES else 1e-9)


def test_each_image_is_changed_by_its_own_operation() -> None:
    x = draws.uniform(draws.key(1), (56, 3, 32, 32))
    operation = torch.arange(56) % 14
    level = draws.uniform(draws.key(2), (56,), dtype=torch.float64)
    together = operate(x, operation, level)
    for i in range(56):
        torch.testing.assert_close(together[i], operate(x[i : i + 1], operation[i : i + 1], level[i : i + 1])[0])
    assert torch.equal(together[operation == 0], x[operation == 0])


@pytest.mark.parametrize("kind", [Operation.AUTOCONTRAST, Operation.EQUALIZE])
def test_constant_images_stay(kind: Operation) -> None:
    x = torch.full((1, 3, 32, 32), 51 / 255)
    torch.testing.assert_close(operate(x, torch.tensor([int(kind)]), torch.tensor([0.5], dtype=torch.float64)), x)


def test_smoothing_is_pillows() -> None:
    array = picture()
    ours = smooth(torch.tensor(array).permute(2, 0, 1) / 255).permute(1, 2, 0).numpy() * 255
    assert np.abs(ours - np.asarray(Image.fromarray(array).filter(ImageFilter.SMOOTH))).max() <= 0.51


@pytest.mark.parametrize("fill", [0.0, (0.1, 0.2, 0.3)])
def test_holes_are_cut_where_they_are_meant(fill: float | tuple[float, float, float]) -> None:
    x = draws.uniform(draws.key(1), (3, 3, 20, 24))
    corners = torch.tensor([[-3.0, 15, 4], [20, -8, 4], [8, 16, 0], [8, 16, 0]], dtype=torch.float64)
    views = cut_out(x, Boxes(*corners), fill=fill)
    expected = x.clone()
    paint = torch.as_tensor(fill, dtype=torch.float32).expand(3)[:, None, None]
    expected[0, :, :5, 20:] = paint
    expected[1, :, 15:, :8] = paint
    assert torch.equal(views, expected)


def test_operations_and_levels_are_equally_likely() -> None:
    drawn = StrongViews().parameters(keys_of(4000), 32, 32)
    assert drawn.operation.shape == drawn.level.shape == (4000, 4)
    for slot in range(4):
        assert stats.chisquare(torch.bincount(drawn.operation[:, slot], minlength=14)).pvalue > 1e-3
        assert stats.kstest(drawn.level[:, slot], "uniform").pvalue > 1e-3
    related = torch.corrcoef(torch.cat((drawn.operation, drawn.level), dim=1).T) - torch.eye(8)
    assert related.abs().max() < 0.07


def test_holes_have_sides_up_to_the_limit_and_centres_anywhere() -> None:
    hole = StrongViews(cutout=16).parameters(keys_of(4000), 32, 32).hole
    sides = torch.bincount(hole.height.long(), minlength=17)[::2]  # 2 * (1..16 // 2)
    assert stats.chisquare(sides, 4000 * np.array([1, 2, 2, 2, 2, 2, 2, 2, 1]) / 16).pvalue > 1e-3
    assert torch.equal(hole.height, hole.width)
    for corner in (hole.top, hole.left):
        assert stats.chisquare(torch.bincount((corner + hole.height / 2).long(), minlength=32)).pvalue > 1e-3


def test_flips_happen_with_their_chance() -> None:
    x, keys = draws.uniform(draws.key(1), (400, 3, 8, 8)), keys_of(400)
    views = StrongViews(operations=0, cutout=0, flip=0.5)(x, keys)
    flipped = (views == x.flip(-1)).flatten(1).all(1)
    assert abs(flipped.double().mean() - 0.5) < 0.1
    assert torch.equal(views[~flipped], x[~flipped])
