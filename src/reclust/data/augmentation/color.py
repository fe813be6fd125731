"""Views of color images (..., 3, h, w) in [0, 1] for contrastive learning, as in torchvision."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ... import draws
from ...utils.values import integer, number, value
from .affine import ImageAugmentation

_TRIES = 10  # as torchvision's RandomResizedCrop, before it falls back to a center crop
_CROP, _JITTER, _CHANCES = 2 * _TRIES + 2, 9, 3  # uniform numbers of each stage


class Boxes(NamedTuple):
    """Crop windows in whole pixels, (..., B) each."""

    top: Tensor
    left: Tensor
    height: Tensor
    width: Tensor


class Jitters(NamedTuple):
    """Factors around 1 and a hue shift in turns, (..., B) each; rank (..., B, 4) is their order."""

    brightness: Tensor
    contrast: Tensor
    saturation: Tensor
    hue: Tensor
    rank: Tensor


class ColorParameters(NamedTuple):
    """Parameters of a view; flip, gray and solarize are boolean (..., B)."""

    boxes: Boxes | None
    jitters: Jitters | None
    grey: Tensor
    flip: Tensor
    solarize: Tensor


@value
class ResizedCrop:
    """Bilinear crop of random area and aspect ratio, resized to `size` or the image's size."""

    size: int | None = integer(default=None, least=1, optional=True)
    area: tuple[float, float] = (0.08, 1.0)
    aspect: tuple[float, float] = (3 / 4, 4 / 3)

    def boxes(self, u: Tensor, height: int, width: int) -> Boxes:
        """Take the first of ten tries that fits, else the largest centered one; u (..., B, 22)."""
        area = (self.area[0] + (self.area[1] - self.area[0]) * u[..., :_TRIES]) * (height * width)
        low, high = math.log(self.aspect[0]), math.log(self.aspect[1])
        aspect = torch.exp(low + (high - low) * u[..., _TRIES:-2])
        # One more try, which always fits: the image's shape, within the range of aspects.
        widest = min(width, round(height * self.aspect[1]))
        tallest = min(height, round(width / self.aspect[0]))
        w = F.pad(torch.sqrt(area * aspect).round(), (0, 1), value=widest)
        h = F.pad(torch.sqrt(area / aspect).round(), (0, 1), value=tallest)
        fits = (w > 0) & (w <= width) & (h > 0) & (h <= height)
        first = fits.to(torch.int32).argmax(dim=-1, keepdim=True)
        h, w = h.gather(-1, first)[..., 0], w.gather(-1, first)[..., 0]
        free = torch.stack((height - h, width - w), dim=-1)
        drawn, centered = (u[..., -2:] * (free + 1)).floor(), (free / 2).floor()
        corner = torch.where(first < _TRIES, drawn, centered)
        return Boxes(corner[..., 0], corner[..., 1], h, w)


@value
class ColorJitter:
    """With probability p change brightness, contrast, saturation and hue, in random order."""

    brightness: float = number(default=0.4, least=0, convert=False)
    contrast: float = number(default=0.4, least=0, convert=False)
    saturation: float = number(default=0.2, least=0, convert=False)
    hue: float = number(default=0.1, least=0, most=0.5, convert=False)
    p: float = number(default=0.8, least=0, most=1, convert=False)

    def jitters(self, u: Tensor) -> Jitters:
        """Turn uniform numbers (..., B, 9) into factors, which are 1 for unchanged images."""
        chosen = u[..., 4] < self.p

        def factor(strength: float, u: Tensor) -> Tensor:
            low, high = max(0.0, 1 - strength), 1 + strength
            return torch.where(chosen, low + (high - low) * u, 1.0)

        # Four random numbers order four operations; bits below their precision break ties.
        apart = u[..., 5:] + torch.arange(4, device=u.device) * 2.0**-30
        return Jitters(
            brightness=factor(self.brightness, u[..., 0]),
            contrast=factor(self.contrast, u[..., 1]),
            saturation=factor(self.saturation, u[..., 2]),
            hue=torch.where(chosen, self.hue * (2 * u[..., 3] - 1), 0.0),
            rank=(apart.unsqueeze(-1) > apart.unsqueeze(-2)).sum(dim=-1))


class ColorAugmentation(ImageAugmentation):
    def check(self, x: Tensor, keys: Tensor) -> None:
        super().check(x, keys)
        if x.shape[-3] != 3:
            raise ValueError(f"Three color channels needed, got {tuple(x.shape)}: use Affine().")


@value
class ColorViews(ColorAugmentation):
    """Crop, jitter and, with these probabilities, gray, flip and solarize, as in SimCLR."""

    crop: ResizedCrop | None = ResizedCrop()
    jitter: ColorJitter | None = ColorJitter()
    grey: float = number(default=0.2, least=0, most=1, convert=False)
    flip: float = number(default=0.5, least=0, most=1, convert=False)
    solarize: float = number(default=0.2, least=0, most=1, convert=False)

    def parameters(self, keys: Tensor, height: int, width: int) -> ColorParameters:
        # One draw for all stages, since many kernels on small tensors are slow.
        count = _CROP + _JITTER + _CHANCES
        u = draws.uniform(draws.fold(keys, "color"), (count,), dtype=torch.float64)
        return ColorParameters(
            boxes=None if self.crop is None else self.crop.boxes(u[..., :_CROP], height, width),
            jitters=None if self.jitter is None else self.jitter.jitters(u[..., _CROP:-_CHANCES]),
            grey=u[..., -3] < self.grey, flip=u[..., -2] < self.flip,
            solarize=u[..., -1] < self.solarize)

    def apply(self, x: Tensor, parameters: ColorParameters) -> Tensor:
        boxes, jitters, grey, flip, solarized = parameters
        # A flip commutes with what follows the crop, and is free as part of it.
        if self.crop is None or boxes is None:
            x = torch.where(per_image(flip), x.flip(-1), x)
        else:
            x = crop_resize(x, boxes, flip, size=self.crop.size)
        if jitters is not None:
            x = jitter(x, jitters)
        x = torch.lerp(x, luma(x), per_image(grey).to(x.dtype))
        return solarize(x, torch.where(solarized, 0.5, torch.inf))


def crop_resize(x: Tensor, boxes: Boxes, flip: Tensor, *, size: int | None = None) -> Tensor:
    """Resize each image's window to (size, size) or the image's size, flipped where `flip`."""
    top, left, height, width = (value.reshape(-1, 1) for value in boxes)
    tall, wide = x.shape[-2:] if size is None else (size, size)
    down, across = (torch.arange(side, device=x.device) + 0.5 for side in (tall, wide))
    mirrored = torch.where(flip.reshape(-1, 1), wide - across, across)
    rows = torch.minimum((down * height / tall - 0.5).clamp_min(0), height - 1) + top
    columns = torch.minimum((mirrored * width / wide - 0.5).clamp_min(0), width - 1) + left
    rows, columns = (2 * rows + 1) / x.shape[-2] - 1, (2 * columns + 1) / x.shape[-1] - 1
    places = (columns[:, None, :].expand(-1, tall, -1), rows[:, :, None].expand(-1, -1, wide))
    grid = torch.stack(places, dim=1).to(x.dtype)
    views = F.grid_sample(x.reshape(-1, *x.shape[-3:]), grid.permute(0, 2, 3, 1), mode="bilinear",
                          padding_mode="border", align_corners=False)
    return views.reshape(*x.shape[:-2], tall, wide)


def jitter(x: Tensor, jitters: Jitters) -> Tensor:
    """Apply the four adjustments to each image in its own order.

    A hue shift is as slow as three blends, so it runs once for all images: each image's blends
    before the shift run first, those after it last, and unused turns change nothing.
    """
    fade = 1 - torch.stack((jitters.brightness, jitters.contrast, jitters.saturation), dim=-1)
    rank, hue = jitters.rank[..., :3], jitters.rank[..., 3:]
    turn = rank + 2 * (rank > hue)  # 0, 1, 2 before the shift, 3, 4, 5 after it
    every_turn = torch.arange(6, device=x.device).reshape(6, *(1,) * turn.dim())
    fades = torch.where(turn == every_turn, fade, 0).to(x.dtype)
    for i in range(6):
        x = blend(shift_hue(x, jitters.hue) if i == 3 else x, fades[i])
    return x


def blend(x: Tensor, fade: Tensor) -> Tensor:
    """Fade x to black, to its mean gray and to its gray version by fade (..., B, 3)."""
    _, mean, grey = per_image(fade.movedim(-1, 0))
    shades = luma(x)
    base = (shades * grey).add_(shades.mean(dim=(-2, -1), keepdim=True) * mean)
    return torch.addcmul(base, x, per_image(1 - fade.sum(dim=-1))).clamp_(0, 1)


def luma(x: Tensor) -> Tensor:
    """Return gray versions (..., 1, h, w), with ITU-R 601 weights as in torchvision."""
    red, green, blue = x.unbind(dim=-3)
    return (red * 0.2989).add_(green, alpha=0.587).add_(blue, alpha=0.114).unsqueeze(-3)


def shift_hue(x: Tensor, turns: Tensor) -> Tensor:
    """Shift the HSV hue of each image by a share of the circle (..., B)."""
    red, green, blue = x.unbind(dim=-3)
    value = torch.maximum(torch.maximum(red, green), blue)
    low = torch.minimum(torch.minimum(red, green), blue)
    chroma = value - low
    # The smallest channel gives the third of the circle. In sixths of the circle, hue is
    # 1 + (g - r) / chroma without blue, 3 + (b - g) / chroma without red, and
    # 5 + (r - b) / chroma without green. Masks are numbers, since torch.where is slow on CPUs.
    no_red = low.clone().eq_(red)
    no_green = low.eq_(green).mul_(1 - no_red)
    place = green - red
    place = place.addcmul(no_red, blue - green - place).addcmul_(no_green, red - blue - place)
    hue = place.div_(chroma.clamp_min(torch.finfo(x.dtype).tiny))
    hue = hue.add_(no_red, alpha=2).add_(no_green, alpha=4)
    hue = hue + (6 * turns + 1).to(x.dtype)[..., None, None]
    hue = hue.sub_((hue / 6).floor_(), alpha=6)
    # A channel is full within a sixth of its own hue (0, 2, 4) and empty beyond two sixths.
    away = hue.unsqueeze(-3) - 2 * torch.arange(3, device=x.device)[:, None, None]
    near = away.abs_().sub_(3).abs_().clamp_(1, 2)  # 3 minus the distance round the circle
    return torch.addcmul((value - 2 * chroma).unsqueeze(-3), near, chroma.unsqueeze(-3))


def solarize(x: Tensor, threshold: Tensor) -> Tensor:
    """Invert pixels at or above the threshold (..., B) of their image."""
    bright = x.clone().ge_(per_image(threshold).to(x.dtype))
    return torch.lerp(x, 1 - x, bright)


def per_image(values: Tensor) -> Tensor:
    """Reshape one value for each image to broadcast over (..., c, h, w)."""
    return values[..., None, None, None]
