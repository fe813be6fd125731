"""Augmentations: batched random views whose every parameter is a pure function of a sample's key.

An augmentation is a frozen dataclass called as `augment(x, keys)`. Those on images draw one set of parameters per key
(`parameters`) and apply them with plain tensor operations (`apply`), so that a seed means the same views alone or among
stacked replicas, in every floating type and on every device. Nothing synchronises with the host, draws from a global
generator or has a shape that depends on values: a call captures into a CUDA graph. A trainer may also draw parameters
for a whole epoch at once and apply them batch by batch.

Images are (..., B, c, h, w) in [0, 1], before any standardisation, with keys (..., B); tables are (..., B, d).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from ... import draws
from ...utils.values import value

# Places in an image are rounded to odd multiples of half a step, a step being 2**-19 of the side rounded up to a power
# of two (2**-14 pixels at 28). So they keep clear of the borders between pixels by more than float32 can err, and every
# device and type picks the same source pixel.
_PLACE_BITS = 19


class Augmentation(Protocol):
    """A random view x' of every sample of x, the same whenever the keys are the same."""

    def __call__(self, x: Tensor, keys: Tensor, /) -> Tensor:
        """x (..., B, *sample_shape), keys (..., B) -> the same shape as x."""
        ...


class ImageAugmentation(ABC):
    """Parent of augmentations that draw parameters for each image and then apply them, so that a trainer may compile the
    second part, which touches every pixel."""

    @abstractmethod
    def parameters(self, keys: Tensor, height: int, width: int) -> Any:
        """One set for each key (..., B), for images of this size."""

    @abstractmethod
    def apply(self, x: Tensor, parameters: Any) -> Tensor:
        """x (..., B, c, h, w) -> its views."""

    def check(self, x: Tensor, keys: Tensor) -> None:
        """Raise where images and keys do not go together, or are none that this can change."""
        check_keys(x, keys, sample_dims=3)

    def __call__(self, x: Tensor, keys: Tensor) -> Tensor:
        self.check(x, keys)
        return self.apply(x, self.parameters(keys, *x.shape[-2:]))


class Motion(NamedTuple):
    """One affine motion per sample, each of shape (..., B): radians, radians, pixels, pixels, a factor."""

    angle: Tensor
    shear: Tensor
    dx: Tensor
    dy: Tensor
    scale: Tensor


@value
class Affine(ImageAugmentation):
    """Rotation up to ±degrees and x-shear up to ±shear degrees about the centre, shift up to ±translate of the side.

    Nearest neighbour, zero fill, shifts by whole pixels; the geometry is torchvision's `RandomAffine`.
    """

    degrees: float = 16.0
    translate: float = 0.1
    shear: float = 8.0
    scale: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.degrees < 0 or not 0 <= self.translate <= 1 or not 0 <= self.shear < 90:
            raise ValueError(f"{self} needs degrees >= 0, translate in [0, 1] and shear in [0, 90).")
        if self.scale is not None and not 0 < self.scale[0] <= self.scale[1]:
            raise ValueError(f"scale={self.scale} needs 0 < low <= high; give None for no scaling.")

    def motion(self, keys: Tensor, height: int, width: int) -> Motion:
        """A motion per key, in float64 whatever the images hold: the type decides nothing."""
        spread = draws.uniform(draws.fold(keys, "affine"), (5,), dtype=torch.float64).mul_(2).sub_(1)
        low, high = self.scale or (1.0, 1.0)
        return Motion(
            angle=spread[..., 0] * math.radians(self.degrees),
            shear=spread[..., 1] * math.radians(self.shear),
            dx=(spread[..., 2] * (self.translate * width)).round(),
            dy=(spread[..., 3] * (self.translate * height)).round(),
            scale=spread[..., 4] * ((high - low) / 2) + (high + low) / 2,
        )

    def parameters(self, keys: Tensor, height: int, width: int) -> Tensor:
        """Maps (..., B, 2, 3) for `warp` of images of this size."""
        return inverse_map(self.motion(keys, height, width))

    def apply(self, x: Tensor, parameters: Tensor) -> Tensor:
        return warp(x, parameters)


@value
class Noise:
    """Gaussian noise, then feature dropout (a dropped feature is 0, its mean), on tables of standardised numbers."""

    std: float = 0.1
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if self.std < 0 or not 0 <= self.dropout <= 1:
            raise ValueError(f"{self} needs std >= 0 and dropout in [0, 1].")

    def __call__(self, x: Tensor, keys: Tensor) -> Tensor:
        check_keys(x, keys, sample_dims=1)
        features = x.shape[-1:]
        if self.std > 0:
            x = x + self.std * draws.normal(draws.fold(keys, "noise"), features, dtype=x.dtype)
        if self.dropout > 0:
            x = x.masked_fill(draws.uniform(draws.fold(keys, "dropout"), features) < self.dropout, 0)
        return x


def perturbation_of(sample_shape: tuple[int, ...]) -> Augmentation:
    """A small change that should not matter, of tables and of images."""
    return Noise() if len(sample_shape) == 1 else Affine()


def inverse_map(motion: Motion) -> Tensor:
    """From places in the view to places in the image, (..., B, 2, 3); a motion shears, scales, rotates, then shifts."""
    angle, shear, dx, dy, scale = motion
    cos, sin, tan = angle.cos() / scale, angle.sin() / scale, shear.tan()
    xx, xy = cos - sin * tan, sin + cos * tan
    return torch.stack((xx, xy, -xx * dx - xy * dy, -sin, cos, sin * dx - cos * dy), dim=-1).reshape(*angle.shape, 2, 3)


def warp(x: Tensor, maps: Tensor) -> Tensor:
    """Each image seen through its own map (..., B, 2, 3): nearest neighbour, zero outside.

    A map takes (column, row, 1) in the view to (column, row) in the image, both in pixels from the middle.
    """
    height, width = x.shape[-2:]
    step = 2.0 ** (math.frexp(max(height, width))[1] - _PLACE_BITS)
    flat = (maps.to(torch.float64) / step).reshape(-1, 2, 3, 1)
    # The place of a pixel is a sum of what its column and what its row contribute: all but that sum is small.
    columns = (flat[:, :, 0] * _middles(width, x.device)).to(torch.int32)
    rows = torch.addcmul(flat[:, :, 2], flat[:, :, 1], _middles(height, x.device)).to(torch.int32)
    units = torch.full((2, 1), 2 * step / width, dtype=x.dtype, device=x.device)  # grid_sample counts from -1 to 1
    units[1] = 2 * step / height
    grid = (columns * units)[:, :, None, :] + torch.add(rows * units, units, alpha=0.5)[:, :, :, None]
    images = x.reshape(-1, *x.shape[-3:])
    views = F.grid_sample(images, grid.permute(0, 2, 3, 1), mode="nearest", padding_mode="zeros", align_corners=False)
    return views.reshape(x.shape)


def _middles(side: int, device: torch.device) -> Tensor:
    """The middles of pixels along a side, counted from its own middle."""
    return torch.arange(0.5 - side / 2, side / 2, dtype=torch.float64, device=device)


def check_keys(x: Tensor, keys: Tensor, *, sample_dims: int) -> None:
    """Refuse samples of another kind, and keys that are not one per sample."""
    if x.dim() > sample_dims and keys.shape == x.shape[:-sample_dims]:
        return
    needed = "(..., B, c, h, w)" if sample_dims == 3 else "(..., B, d)"
    if keys.shape == x.shape[: keys.dim()]:
        advice = ("where flat rows are images, say image_shape=(height, width), else take one for tables, such as Noise()"
                  if sample_dims == 3 else "take one for images, such as Affine()")
        raise ValueError(f"This augmentation is for samples {needed}, it was given {tuple(x.shape)}: {advice}.")
    raise ValueError(f"x of shape {tuple(x.shape)} and keys of shape {tuple(keys.shape)}, {needed} and (..., B) are needed; "
                     "draws.fold(key, rows) makes one key per sample.")
