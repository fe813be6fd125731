"""Augmentations: random views whose parameters are pure functions of a sample's key.

A seed gives the same views alone or stacked, in every floating type and on every device, and calls
can be captured into CUDA graphs. Images are (..., B, c, h, w) in [0, 1], before standardization,
tables (..., B, d) and keys (..., B).
"""

import math
from abc import ABC, abstractmethod
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from ... import draws
from ...utils.values import number, value

# Source positions are rounded to odd multiples of half a step, where a step is 2**-19 of the side
# rounded up to a power of two. That keeps them away from the borders between pixels by more than
# float32 can err, so every device and type picks the same source pixel.
_POSITION_BITS = 19


class Augmentation(Protocol):
    """A function of samples (..., B, *sample_shape) and keys (..., B) that returns random views."""

    def __call__(self, x: Tensor, keys: Tensor, /) -> Tensor: ...


class ImageAugmentation(ABC):
    """Base of augmentations that draw parameters for each image and then apply them."""

    @abstractmethod
    def parameters(self, keys: Tensor, height: int, width: int) -> Any:
        """Draw parameters for each key (..., B), for images of this size."""

    @abstractmethod
    def apply(self, x: Tensor, parameters: Any) -> Tensor:
        """Return views of images (..., B, c, h, w)."""

    def check(self, x: Tensor, keys: Tensor) -> None:
        check_keys(x, keys, sample_dims=3)

    def __call__(self, x: Tensor, keys: Tensor) -> Tensor:
        self.check(x, keys)
        return self.apply(x, self.parameters(keys, *x.shape[-2:]))


@value
class Affine(ImageAugmentation):
    """Random rotation, shift (share of the side), x-shear (degrees) and scale (low, high).

    Like torchvision's `RandomAffine` with nearest-neighbor sampling and shifts by whole pixels.
    """

    degrees: float = number(default=16.0, least=0, convert=False)
    translate: float = number(default=0.1, least=0, most=1, convert=False)
    shear: float = number(default=8.0, least=0, below=90, convert=False)
    scale: tuple[float, float] | None = None

    def parameters(self, keys: Tensor, height: int, width: int) -> Tensor:
        """Return maps (..., B, 2, 3) for `warp`, in float64 for images of any type."""
        spread = draws.uniform(draws.fold(keys, "affine"), (5,), dtype=torch.float64)
        spread = spread.mul_(2).sub_(1)
        low, high = self.scale or (1.0, 1.0)
        return inverse_map(
            angle=spread[..., 0] * math.radians(self.degrees),
            shear=spread[..., 1] * math.radians(self.shear),
            dx=(spread[..., 2] * (self.translate * width)).round(),
            dy=(spread[..., 3] * (self.translate * height)).round(),
            scale=spread[..., 4] * ((high - low) / 2) + (high + low) / 2)

    def apply(self, x: Tensor, parameters: Tensor) -> Tensor:
        return warp(x, parameters)


@value
class Noise:
    """Gaussian noise, and features set to 0, their mean, for tables of standardized features."""

    std: float = number(default=0.1, least=0, convert=False)
    dropout: float = number(default=0.1, least=0, most=1, convert=False)

    def __call__(self, x: Tensor, keys: Tensor) -> Tensor:
        check_keys(x, keys, sample_dims=1)
        features = x.shape[-1:]
        if self.std > 0:
            x = x + self.std * draws.normal(draws.fold(keys, "noise"), features, dtype=x.dtype)
        if self.dropout > 0:
            chance = draws.uniform(draws.fold(keys, "dropout"), features)
            x = x.masked_fill(chance < self.dropout, 0)
        return x


def perturbation_of(sample_shape: tuple[int, ...]) -> Augmentation:
    """Return a small change that should not affect clusters, for tables or images."""
    return Noise() if len(sample_shape) == 1 else Affine()


def inverse_map(angle: Tensor, shear: Tensor, dx: Tensor, dy: Tensor, scale: Tensor) -> Tensor:
    """Shear, scale, rotate (in radians), shift (by pixels): from view to image, (..., B, 2, 3)."""
    cos, sin, tan = angle.cos() / scale, angle.sin() / scale, shear.tan()
    xx, xy = cos - sin * tan, sin + cos * tan
    entries = (xx, xy, -xx * dx - xy * dy, -sin, cos, sin * dx - cos * dy)
    return torch.stack(entries, dim=-1).reshape(*angle.shape, 2, 3)


def warp(x: Tensor, maps: Tensor) -> Tensor:
    """Transform images by maps (..., B, 2, 3) of (column, row, 1) from the middle; 0 outside."""
    height, width = x.shape[-2:]
    step = 2.0 ** (math.frexp(max(height, width))[1] - _POSITION_BITS)
    flat = (maps.to(torch.float64) / step).reshape(-1, 2, 3, 1)
    # A position is the sum of a column's and a row's part: only that sum is a large tensor.
    columns = (flat[:, :, 0] * _centers(width, x.device)).to(torch.int32)
    rows = torch.addcmul(flat[:, :, 2], flat[:, :, 1], _centers(height, x.device)).to(torch.int32)
    units = torch.full((2, 1), 2 * step / width, dtype=x.dtype, device=x.device)  # grid: -1 to 1
    units[1] = 2 * step / height
    grid = (columns * units)[:, :, None, :] + torch.add(rows * units, units, alpha=0.5)[..., None]
    views = F.grid_sample(x.reshape(-1, *x.shape[-3:]), grid.permute(0, 2, 3, 1), mode="nearest",
                          padding_mode="zeros", align_corners=False)
    return views.reshape(x.shape)


def _centers(side: int, device: torch.device) -> Tensor:
    return torch.arange(0.5 - side / 2, side / 2, dtype=torch.float64, device=device)


def check_keys(x: Tensor, keys: Tensor, *, sample_dims: int) -> None:
    """Raise unless x holds images (3) or rows (1), with one key for each."""
    if x.dim() <= sample_dims or keys.shape != x.shape[:-sample_dims]:
        needed = ("images (..., B, c, h, w): give image_shape=(height, width) for flattened images,"
                  " or use Noise() for tables" if sample_dims == 3 else
                  "tables (..., B, d): use Affine() for images")
        raise ValueError(f"This augmentation is for {needed}; got samples of shape "
                         f"{tuple(x.shape)} and keys of shape {tuple(keys.shape)}.")
