"""Affine and Noise, and the laws that every augmentation obeys."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage, stats
from torch import Tensor

from reclust import draws
from reclust.data.augmentation import affine
from reclust.data.augmentation.affine import Affine, Augmentation, Noise, inverse_map, warp
from reclust.data.augmentation.color import ColorJitter, ColorViews, ResizedCrop
from reclust.data.augmentation.strong import StrongViews

GREY, COLOR, TABLE = (1, 28, 28), (3, 32, 32), (20,)
AUGMENTATIONS = [
    pytest.param(Affine(), GREY, id="affine"),
    pytest.param(Affine(scale=(0.8, 1.2)), (3, 20, 31), id="affine-scaled-oblong"),
    pytest.param(Noise(), TABLE, id="noise"),
    pytest.param(ColorViews(), COLOR, id="color"),
    pytest.param(ColorViews(crop=None), (3, 20, 31), id="color-without-crop"),
    pytest.param(StrongViews(), COLOR, id="strong"),
]
NO_CHANGE = [
    pytest.param(Affine(degrees=0, translate=0, shear=0), (1, 20, 31), id="affine"),
    pytest.param(Noise(std=0, dropout=0), TABLE, id="noise"),
    pytest.param(ColorViews(crop=None, jitter=None, grey=0, flip=0, solarize=0), COLOR, id="color-none"),
    pytest.param(
        ColorViews(ResizedCrop(area=(1, 1), aspect=(1, 1)), ColorJitter(0, 0, 0, 0), grey=0, flip=0, solarize=0),
        COLOR,
        id="color-zero",
    ),
    pytest.param(StrongViews(operations=0, cutout=0), COLOR, id="strong"),
]


def keys_of(*shape: int, seed: int = 0) -> Tensor:
    return draws.fold(draws.key(seed), torch.arange(math.prod(shape)).reshape(shape))


def samples(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float32) -> Tensor:
    return draws.uniform(draws.key(seed), shape, dtype=dtype)


# --- laws of every augmentation


@pytest.mark.parametrize(("augment", "shape"), AUGMENTATIONS)
def test_copies_of_one_sample_give_different_views(augment: Augmentation, shape: tuple[int, ...]) -> None:
    views = augment(samples(*shape).expand(8, *shape), keys_of(8)).flatten(1)
    assert len(torch.unique(views, dim=0)) == 8


@pytest.mark.parametrize(("augment", "shape"), AUGMENTATIONS)
def test_views_are_the_same_alone_and_among_replicas(augment: Augmentation, shape: tuple[int, ...]) -> None:
    x, keys = samples(3, 5, *shape), keys_of(3, 5)
    together = augment(x, keys)
    for replica in range(3):
        torch.testing.assert_close(together[replica], augment(x[replica], keys[replica]), rtol=0, atol=1e-6)
    torch.testing.assert_close(together[1, 2:3], augment(x[1, 2:3], keys[1, 2:3]), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("augment", "shape"), AUGMENTATIONS)
def test_the_type_decides_nothing(augment: Augmentation, shape: tuple[int, ...]) -> None:
    x, keys = samples(64, *shape), keys_of(64)
    single, double = augment(x, keys), augment(x.double(), keys)
    assert single.dtype == torch.float32 and double.dtype == torch.float64
    # Posterize and equalize round to 256 levels, and a value half-way between two may fall to either side.
    close = (single.double() - double).abs() < 1e-5
    assert close.all() if not isinstance(augment, StrongViews) else close.double().mean() > 0.9999


@pytest.mark.parametrize(("augment", "shape"), AUGMENTATIONS)
def test_neither_global_generators_nor_inputs_are_touched(augment: Augmentation, shape: tuple[int, ...]) -> None:
    x, keys = samples(4, *shape), keys_of(4)
    kept, before, numpy_before = x.clone(), torch.get_rng_state(), np.random.get_state()[1].copy()
    augment(x, keys)
    assert torch.equal(torch.get_rng_state(), before) and np.array_equal(np.random.get_state()[1], numpy_before)
    assert torch.equal(x, kept) and torch.equal(keys, keys_of(4))


@pytest.mark.parametrize(("augment", "shape"), AUGMENTATIONS)
def test_views_of_images_stay_images(augment: Augmentation, shape: tuple[int, ...]) -> None:
    if len(shape) == 1:
        pytest.skip("tables have no range")
    views = augment(samples(64, *shape), keys_of(64))
    assert views.shape == (64, *shape) and views.min() >= -1e-6 and views.max() <= 1 + 1e-6


@pytest.mark.parametrize(("augment", "shape"), NO_CHANGE)
def test_no_strength_is_the_identity(augment: Augmentation, shape: tuple[int, ...]) -> None:
    x = samples(16, *shape)
    torch.testing.assert_close(augment(x, keys_of(16)), x, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("augment", "shape"), AUGMENTATIONS)
def test_keys_must_be_one_per_sample(augment: Augmentation, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"keys of shape \(4,\)"):
        augment(samples(5, *shape), keys_of(4))


@pytest.mark.parametrize(("augment", "shape", "message"), [
    (Affine(), (64,), "give image_shape"), (Noise(), (1, 8, 8), r"use Affine\(\) for images")])
def test_samples_of_another_kind_are_named(augment: Augmentation, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        augment(samples(4, *shape), keys_of(4))


@pytest.mark.parametrize("augment", [Affine(), ColorViews(), StrongViews()])
def test_parameters_may_be_drawn_for_an_epoch_at_once(augment: Affine | ColorViews | StrongViews) -> None:
    x, keys, rows = samples(40, *COLOR), keys_of(40), torch.arange(7, 40, 5)
    epoch = augment.parameters(keys, 32, 32)
    torch.testing.assert_close(augment.apply(x[rows], _take(epoch, rows)), augment(x[rows], keys[rows]))


def _take(parameters, rows: Tensor):
    """Rows of a nest of named tuples."""
    if isinstance(parameters, Tensor):
        return parameters[rows]
    return type(parameters)(*(_take(part, rows) for part in parameters))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize(("augment", "shape"), AUGMENTATIONS)
def test_views_are_the_same_in_a_cuda_graph(augment: Augmentation, shape: tuple[int, ...]) -> None:
    x, keys = samples(2, 16, *shape), keys_of(2, 16)
    on_device, device_keys = x.cuda(), keys.cuda()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        augment(on_device, device_keys)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        views = augment(on_device, device_keys)
    device_keys.copy_(keys_of(2, 16, seed=5))
    graph.replay()
    expected = augment(x, keys_of(2, 16, seed=5))
    close = (views.cpu() - expected).abs() < 1e-5
    assert close.all() if not isinstance(augment, StrongViews) else close.double().mean() > 0.999


# --- Affine


def reference_matrix(degrees: float, shear: float, shift: tuple[float, float], scale: float, size: tuple[int, int]):
    """torchvision's documented map, M = T C R(a) S(s) SHx(b) C^-1, inverted by numpy: from view to image."""
    height, width = size
    a, b = np.radians(degrees), np.radians(shear)

    def move(x: float, y: float) -> np.ndarray:
        return np.array([[1, 0, x], [0, 1, y], [0, 0, 1.0]])

    rotate = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    skew = np.array([[1, -np.tan(b), 0], [0, 1, 0], [0, 0, 1]])
    grow = np.diag([scale, scale, 1.0])
    centre = (width / 2, height / 2)
    forward = move(*shift) @ move(*centre) @ rotate @ grow @ skew @ move(-centre[0], -centre[1])
    return np.linalg.inv(forward)


def far_from_borders(matrix: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """View pixels whose exact place in the image is not within 1/1000 pixel of a border between pixels."""
    rows, columns = np.mgrid[: size[0], : size[1]] + 0.5
    x, y, _ = np.einsum("ij,jhw->ihw", matrix, np.stack((columns, rows, np.ones_like(rows))))
    return (np.abs(x - np.round(x)) > 1e-3) & (np.abs(y - np.round(y)) > 1e-3)


CASES = [(0, 0, (0, 0), 1), (16, 0, (0, 0), 1), (-16, 8, (2, -1), 1), (5, -8, (-3, 3), 1), (11, 3, (1, 2), 0.8)]


@pytest.mark.parametrize("size", [(28, 28), (20, 31)])
@pytest.mark.parametrize(("degrees", "shear", "shift", "scale"), CASES)
def test_warp_is_what_pillow_and_scipy_compute(degrees, shear, shift, scale, size) -> None:
    image = samples(*size).numpy()
    matrix = reference_matrix(degrees, shear, shift, scale, size)
    values = [np.radians(degrees), np.radians(shear), *shift, scale]
    ours = inverse_map(*(torch.tensor([v], dtype=torch.float64) for v in values))

    view = warp(torch.tensor(image)[None, None], ours)[0, 0].numpy()
    clear = far_from_borders(matrix, size)
    assert clear.mean() > 0.98

    flipped = size[::-1]
    pillow = Image.fromarray(image).transform(flipped, Image.Transform.AFFINE, tuple(matrix[:2].ravel()), Image.NEAREST)
    assert np.array_equal(view[clear], np.asarray(pillow)[clear])

    # scipy counts rows first and puts whole numbers at the middle of pixels.
    swap = matrix[1::-1, 1::-1]
    offset = matrix[1::-1, 2] + swap @ (0.5, 0.5) - 0.5
    scipy = ndimage.affine_transform(image, swap, offset, order=0, mode="grid-constant", cval=0.0)
    assert np.array_equal(view[clear], scipy[clear])


@pytest.mark.parametrize("size", [(28, 28), (20, 31), (150, 200)])
def test_every_type_picks_the_same_source_pixels(size: tuple[int, int]) -> None:
    numbers = torch.arange(1.0, 1 + math.prod(size)).reshape(1, 1, *size).expand(300, -1, -1, -1)
    maps = Affine(scale=(0.5, 2)).parameters(keys_of(300), *size)
    assert torch.equal(warp(numbers, maps).double(), warp(numbers.double(), maps))


def test_whole_pixel_shifts_only_move_pixels() -> None:
    x = samples(1, 1, 28, 28)
    matrix = torch.tensor([[[1, 0, 2.0], [0, 1, -3.0]]])
    assert torch.equal(warp(x, matrix)[0, 0, 3:, :26], x[0, 0, :25, 2:])
    assert not warp(x, matrix)[0, 0, :3].any() and not warp(x, matrix)[0, 0, :, 26:].any()


def test_affine_parameters_are_uniform_and_unrelated(monkeypatch) -> None:
    monkeypatch.setattr(affine, "inverse_map", lambda **drawn: drawn)
    drawn = Affine(scale=(0.8, 1.2)).parameters(keys_of(4000), 28, 20)
    for values, bound in ((drawn["angle"], math.radians(16)), (drawn["shear"], math.radians(8)), (drawn["scale"] - 1, 0.2)):
        assert stats.kstest(values, stats.uniform(-bound, 2 * bound).cdf).pvalue > 1e-3
    for values, bound in ((drawn["dy"], 2.8), (drawn["dx"], 2.0)):
        numbers = np.arange(-round(bound), round(bound) + 1)
        edges = np.clip(np.append(numbers - 0.5, numbers[-1] + 0.5), -bound, bound)
        counts = [(values == number).sum().item() for number in numbers]
        assert sum(counts) == 4000
        assert stats.chisquare(counts, 4000 * np.diff(edges) / (2 * bound)).pvalue > 1e-3
    correlation = np.corrcoef(torch.stack([*drawn.values()]).numpy()) - np.eye(5)
    assert np.abs(correlation).max() < 0.06


@pytest.mark.parametrize("wrong", [{"degrees": -1}, {"translate": 2}, {"shear": 90}])
def test_affine_refuses_what_it_cannot_mean(wrong: dict) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        Affine(**wrong)


# --- Noise


def test_noise_is_gaussian_and_dropped_features_are_zero() -> None:
    x = samples(200, 50) + 3
    view = Noise(std=0.3, dropout=0.2)(x, keys_of(200))
    dropped = view == 0
    assert abs(dropped.double().mean() - 0.2) < 0.01
    assert stats.kstest((view - x)[~dropped], stats.norm(scale=0.3).cdf).pvalue > 1e-3
    assert torch.equal(Noise(std=0, dropout=0.2)(x, keys_of(200)), x.masked_fill(dropped, 0))
