"""Strongly changed views of colour images, for self-labeling: a few of fourteen operations, then a cutout.

Operations and ranges are those of SCAN (Van Gansbeke et al., 2020), with Pillow's meaning on numbers in [0, 1] instead
of bytes. See `augment` for the protocol.
"""

from __future__ import annotations

import enum
import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ... import draws
from ...utils.values import value
from .affine import warp
from .color import Boxes, ColorAugmentation, blend, per_image, solarize


class Operation(enum.IntEnum):
    """What may happen to a view."""

    IDENTITY = 0
    AUTOCONTRAST = 1
    EQUALIZE = 2
    ROTATE = 3
    SOLARIZE = 4
    COLOR = 5
    CONTRAST = 6
    BRIGHTNESS = 7
    SHARPNESS = 8
    SHEAR_X = 9
    TRANSLATE_X = 10
    TRANSLATE_Y = 11
    POSTERIZE = 12
    SHEAR_Y = 13


# What an operation does at level 0 and at level 1: degrees, slopes, shares of the side, factors, thresholds, bits.
_ROTATE, _SHEAR, _TRANSLATE = (-30.0, 30.0), (-0.1, 0.1), (-0.1, 0.1)
_FACTOR, _THRESHOLD, _BITS = (0.05, 0.95), (0.0, 256 / 255), (4, 8)


class StrongParameters(NamedTuple):
    """Which operations and how much of each, in [0, 1), both (..., B, operations); the square cut out; the flip."""

    operation: Tensor
    level: Tensor
    hole: Boxes
    flip: Tensor


@value
class StrongViews(ColorAugmentation):
    """`operations` random operations one after the other, then a square of at most `cutout` pixels set to `fill`.

    fill is a number or one per channel: the channel means cut to 0 after standardisation. flip is a chance.
    """

    operations: int = 4
    cutout: int = 16
    fill: float | tuple[float, float, float] = 0.0
    flip: float = 0.0

    def __post_init__(self) -> None:
        if self.operations < 0 or self.cutout < 0 or not 0 <= self.flip <= 1:
            raise ValueError(f"{self} needs operations >= 0, cutout >= 0 and flip in [0, 1].")

    def parameters(self, keys: Tensor, height: int, width: int) -> StrongParameters:
        """Parameters for images of this size; a square may reach over the edge."""
        u = draws.uniform(draws.fold(keys, "strong"), (4 + 2 * self.operations,), dtype=torch.float64)
        half = (1 + (u[..., 0] * self.cutout).floor()).div(2).floor()  # of a side drawn from 1..cutout
        hole = Boxes((u[..., 1] * height).floor() - half, (u[..., 2] * width).floor() - half, 2 * half, 2 * half)
        return StrongParameters(
            operation=(u[..., 4::2] * len(Operation)).to(torch.int32),
            level=u[..., 5::2],
            hole=hole,
            flip=u[..., 3] < self.flip,
        )

    def apply(self, x: Tensor, parameters: StrongParameters) -> Tensor:
        x = torch.lerp(x, x.flip(-1), per_image(parameters.flip).to(x.dtype))
        for operation, level in zip(parameters.operation.unbind(-1), parameters.level.unbind(-1), strict=True):
            x = operate(x, operation, level)
        return cut_out(x, parameters.hole, fill=self.fill) if self.cutout else x


def operate(x: Tensor, operation: Tensor, level: Tensor) -> Tensor:
    """Each image changed by its own operation; both arguments are (..., B).

    The kinds of operations run one after the other, each with parameters that change nothing where another is meant.
    """
    x = warp(x, _moves(operation, level, *x.shape[-2:]))
    x = _enhance(x, operation, _between(_FACTOR, level))
    x = autocontrast(x, operation == Operation.AUTOCONTRAST)
    x = solarize(x, torch.where(operation == Operation.SOLARIZE, _between(_THRESHOLD, level), torch.inf))
    return _remap(x, operation, _between(_BITS, level).floor())


def _between(bounds: tuple[float, float], level: Tensor) -> Tensor:
    return bounds[0] + (bounds[1] - bounds[0]) * level


def _moves(operation: Tensor, level: Tensor, height: int, width: int) -> Tensor:
    """Maps for `warp`: rotation about the middle, shear that keeps the first row or column in place, shift."""

    def where(kind: Operation, values: Tensor) -> Tensor:
        return torch.where(operation == kind, values, 0.0)

    angle = where(Operation.ROTATE, _between(_ROTATE, level)) * (math.pi / 180)
    slope, shift = _between(_SHEAR, level), _between(_TRANSLATE, level)
    cos, sin = angle.cos(), angle.sin()
    along_x, along_y = where(Operation.SHEAR_X, slope), where(Operation.SHEAR_Y, slope)
    x0 = where(Operation.TRANSLATE_X, shift * width) + along_x * (height / 2)
    y0 = where(Operation.TRANSLATE_Y, shift * height) + along_y * (width / 2)
    return torch.stack((cos, along_x - sin, x0, along_y + sin, cos, y0), dim=-1).reshape(*angle.shape, 2, 3)


def _enhance(x: Tensor, operation: Tensor, factor: Tensor) -> Tensor:
    """Blends with black, mean grey, grey or a smoothed version."""
    kinds = (Operation.BRIGHTNESS, Operation.CONTRAST, Operation.COLOR, Operation.SHARPNESS)
    fade = torch.stack([torch.where(operation == kind, 1 - factor, 0.0) for kind in kinds], dim=-1).to(x.dtype)
    x = blend(x, fade[..., :3])
    return torch.lerp(x, smooth(x), per_image(fade[..., 3]))


def smooth(x: Tensor) -> Tensor:
    """The mean over 3 x 3 pixels where the middle one counts five times; the outermost pixels stay."""
    planes = x.reshape(-1, *x.shape[-3:])
    result = planes.clone()
    inner = F.avg_pool2d(planes, 3, stride=1).mul_(9 / 13)
    result[..., 1:-1, 1:-1].mul_(4 / 13).add_(inner)
    return result.reshape(x.shape)


def autocontrast(x: Tensor, chosen: Tensor) -> Tensor:
    """The channels of chosen images stretched to [0, 1]; a constant channel stays."""
    low, high = x.amin(dim=(-2, -1), keepdim=True), x.amax(dim=(-2, -1), keepdim=True)
    stretch = per_image(chosen) & (high > low)
    low, high = torch.where(stretch, low, 0), torch.where(stretch, high, 1)
    return (x - low).div_(high - low)


def _remap(x: Tensor, operation: Tensor, bits: Tensor) -> Tensor:
    """Posterize and equalize, on 256 levels: a look-up table for each channel."""
    levels = (x * 255).round().to(torch.int64).flatten(-2)
    identity = torch.arange(256, device=x.device)
    width = torch.exp2(8 - bits)[..., None, None]
    posterized = (identity / width).floor() * width
    table = torch.where((operation == Operation.EQUALIZE)[..., None, None], equalizer(levels), posterized).to(x.dtype)
    chosen = (operation == Operation.POSTERIZE) | (operation == Operation.EQUALIZE)
    return torch.lerp(x, table.gather(-1, levels).view(x.shape) / 255, per_image(chosen).to(x.dtype))


def equalizer(levels: Tensor) -> Tensor:
    """The tables (..., 256) that spread levels (..., pixels), integers in 0..255, evenly: Pillow's rule."""
    counts = torch.zeros(*levels.shape[:-1], 256, dtype=torch.int32, device=levels.device)
    counts.scatter_add_(-1, levels, counts.new_ones(()).expand(levels.shape))
    brightest = counts.gather(-1, levels.amax(dim=-1, keepdim=True))
    step = (levels.shape[-1] - brightest) // 255
    below = counts.cumsum(-1, dtype=torch.int32) - counts
    spread = ((below + step // 2) // step.clamp_min(1)).clamp_max(255)
    return torch.where(step > 0, spread, torch.arange(256, device=levels.device))


def cut_out(x: Tensor, hole: Boxes, *, fill: float | tuple[float, float, float] = 0.0) -> Tensor:
    """The part of each image inside its hole replaced by fill."""
    top, left, height, width = (value[..., None] for value in hole)
    rows, columns = torch.arange(x.shape[-2], device=x.device), torch.arange(x.shape[-1], device=x.device)
    inside_rows = (rows >= top) & (rows < top + height)
    inside_columns = (columns >= left) & (columns < left + width)
    inside = (inside_rows[..., :, None] & inside_columns[..., None, :]).unsqueeze(-3)
    shades = fill if isinstance(fill, tuple) else (fill,)
    # Filled one by one: a tensor made of a list would be copied from the host, which a CUDA graph cannot capture.
    paint = torch.stack([torch.full((1, 1), shade, dtype=x.dtype, device=x.device) for shade in shades])
    return torch.lerp(x, paint, inside.to(x.dtype))
