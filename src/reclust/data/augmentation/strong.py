"""Strong views of color images for self-labeling: a few of fourteen operations, then a cutout.

As in SCAN (Van Gansbeke et al., 2020), with Pillow's definitions on numbers in [0, 1].
"""

import enum
import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ... import draws
from ...utils.values import integer, number, value
from .affine import warp
from .color import Boxes, ColorAugmentation, blend, per_image, solarize

Operation = enum.IntEnum("Operation", (
    "IDENTITY AUTOCONTRAST EQUALIZE ROTATE SOLARIZE COLOR CONTRAST BRIGHTNESS SHARPNESS SHEAR_X "
    "TRANSLATE_X TRANSLATE_Y POSTERIZE SHEAR_Y"), start=0)
# Strengths at levels 0 and 1: degrees, slopes, shares of the side, factors, thresholds, bits.
_ROTATE, _SHEAR, _TRANSLATE = (-30.0, 30.0), (-0.1, 0.1), (-0.1, 0.1)
_FACTOR, _THRESHOLD, _BITS = (0.05, 0.95), (0.0, 256 / 255), (4, 8)


class StrongParameters(NamedTuple):
    """Operations and their levels in [0, 1), (..., B, operations); the cutout; the flip."""

    operation: Tensor
    level: Tensor
    hole: Boxes
    flip: Tensor


@value
class StrongViews(ColorAugmentation):
    """Random operations, then a square of at most `cutout` pixels set to `fill`; perhaps a flip."""

    operations: int = integer(default=4)
    cutout: int = integer(default=16)
    fill: float | tuple[float, float, float] = 0.0
    flip: float = number(default=0.0, least=0, most=1, convert=False)

    def parameters(self, keys: Tensor, height: int, width: int) -> StrongParameters:
        count = 4 + 2 * self.operations
        u = draws.uniform(draws.fold(keys, "strong"), (count,), dtype=torch.float64)
        half = (1 + (u[..., 0] * self.cutout).floor()).div(2).floor()  # of a side in 1..cutout
        top, left = (u[..., 1] * height).floor() - half, (u[..., 2] * width).floor() - half
        operation = (u[..., 4::2] * len(Operation)).to(torch.int32)
        hole = Boxes(top, left, 2 * half, 2 * half)
        return StrongParameters(operation, u[..., 5::2], hole, u[..., 3] < self.flip)

    def apply(self, x: Tensor, parameters: StrongParameters) -> Tensor:
        x = torch.lerp(x, x.flip(-1), per_image(parameters.flip).to(x.dtype))
        for i in range(self.operations):
            x = operate(x, parameters.operation[..., i], parameters.level[..., i])
        return cut_out(x, parameters.hole, fill=self.fill) if self.cutout else x


def operate(x: Tensor, operation: Tensor, level: Tensor) -> Tensor:
    """Apply its own operation at its level, (..., B) each, to every image; all kinds run."""
    x = warp(x, _moves(operation, level, *x.shape[-2:]))
    x = _enhance(x, operation, _between(_FACTOR, level))
    x = autocontrast(x, operation == Operation.AUTOCONTRAST)
    threshold = _between(_THRESHOLD, level)
    x = solarize(x, torch.where(operation == Operation.SOLARIZE, threshold, torch.inf))
    return _remap(x, operation, _between(_BITS, level).floor())


def _between(bounds: tuple[float, float], level: Tensor) -> Tensor:
    return bounds[0] + (bounds[1] - bounds[0]) * level


def _moves(operation: Tensor, level: Tensor, height: int, width: int) -> Tensor:
    """Return maps for `warp`: rotation, shear that fixes the first row or column, shift."""

    def where(kind: Operation, values: Tensor) -> Tensor:
        return torch.where(operation == kind, values, 0.0)

    angle = where(Operation.ROTATE, _between(_ROTATE, level)) * (math.pi / 180)
    slope, shift = _between(_SHEAR, level), _between(_TRANSLATE, level)
    cos, sin = angle.cos(), angle.sin()
    along_x, along_y = where(Operation.SHEAR_X, slope), where(Operation.SHEAR_Y, slope)
    x0 = where(Operation.TRANSLATE_X, shift * width) + along_x * (height / 2)
    y0 = where(Operation.TRANSLATE_Y, shift * height) + along_y * (width / 2)
    entries = (cos, along_x - sin, x0, along_y + sin, cos, y0)
    return torch.stack(entries, dim=-1).reshape(*angle.shape, 2, 3)


def _enhance(x: Tensor, operation: Tensor, factor: Tensor) -> Tensor:
    """Blend with black, mean gray, gray or a smoothed version."""
    kinds = (Operation.BRIGHTNESS, Operation.CONTRAST, Operation.COLOR, Operation.SHARPNESS)
    fades = [torch.where(operation == kind, 1 - factor, 0.0) for kind in kinds]
    fade = torch.stack(fades, dim=-1).to(x.dtype)
    x = blend(x, fade[..., :3])
    return torch.lerp(x, smooth(x), per_image(fade[..., 3]))


def smooth(x: Tensor) -> Tensor:
    """Average 3 x 3 pixels with weight 5 for the middle one; border pixels stay."""
    planes = x.reshape(-1, *x.shape[-3:])
    result = planes.clone()
    inner = F.avg_pool2d(planes, 3, stride=1).mul_(9 / 13)
    result[..., 1:-1, 1:-1].mul_(4 / 13).add_(inner)
    return result.reshape(x.shape)


def autocontrast(x: Tensor, chosen: Tensor) -> Tensor:
    """Stretch the channels of chosen images to [0, 1]; constant channels stay."""
    low, high = x.amin(dim=(-2, -1), keepdim=True), x.amax(dim=(-2, -1), keepdim=True)
    stretch = per_image(chosen) & (high > low)
    low, high = torch.where(stretch, low, 0), torch.where(stretch, high, 1)
    return (x - low).div_(high - low)


def _remap(x: Tensor, operation: Tensor, bits: Tensor) -> Tensor:
    """Posterize and equalize with a lookup table of 256 levels for each channel."""
    levels = (x * 255).round().to(torch.int64).flatten(-2)
    identity = torch.arange(256, device=x.device)
    width = torch.exp2(8 - bits)[..., None, None]
    posterized = (identity / width).floor() * width
    equalized = operation == Operation.EQUALIZE
    table = torch.where(equalized[..., None, None], equalizer(levels), posterized).to(x.dtype)
    chosen = per_image((operation == Operation.POSTERIZE) | equalized).to(x.dtype)
    return torch.lerp(x, table.gather(-1, levels).view(x.shape) / 255, chosen)


def equalizer(levels: Tensor) -> Tensor:
    """Return Pillow's tables (..., 256) that equalize levels (..., pixels) in 0..255."""
    counts = torch.zeros(*levels.shape[:-1], 256, dtype=torch.int32, device=levels.device)
    counts.scatter_add_(-1, levels, counts.new_ones(()).expand(levels.shape))
    brightest = counts.gather(-1, levels.amax(dim=-1, keepdim=True))
    step = (levels.shape[-1] - brightest) // 255
    below = counts.cumsum(-1, dtype=torch.int32) - counts
    spread = ((below + step // 2) // step.clamp_min(1)).clamp_max(255)
    return torch.where(step > 0, spread, torch.arange(256, device=levels.device))


def cut_out(x: Tensor, hole: Boxes, *, fill: float | tuple[float, float, float] = 0.0) -> Tensor:
    top, left, height, width = (value[..., None] for value in hole)
    rows, columns = (torch.arange(side, device=x.device) for side in x.shape[-2:])
    inside_rows = (rows >= top) & (rows < top + height)
    inside_columns = (columns >= left) & (columns < left + width)
    inside = (inside_rows[..., :, None] & inside_columns[..., None, :]).unsqueeze(-3)
    shades = fill if isinstance(fill, tuple) else (fill,)
    # Not torch.tensor(shades): CUDA graphs cannot capture a copy from the host.
    paint = torch.stack([torch.full((1, 1), shade, dtype=x.dtype, device=x.device)
                         for shade in shades])
    return torch.lerp(x, paint, inside.to(x.dtype))
