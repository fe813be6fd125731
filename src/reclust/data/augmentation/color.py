"""Views of colour images for contrastive learning: crop, jitter, grey, flip, solarize.

Each operation is a pure function of images (..., 3, h, w) in [0, 1] and of parameters per image, as in torchvision.
Choices draw these parameters from keys. See `augment` for the protocol.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ... import draws
from ...utils.values import value
from .affine import ImageAugmentation

_TRIES = 10  # of torchvision's RandomResizedCrop, before it falls back to a centre crop
_CROP, _JITTER, _CHANCES = 2 * _TRIES + 2, 9, 3  # how many uniform numbers each stage takes


class Boxes(NamedTuple):
    """Crop windows in whole pixels, each of shape (..., B)."""

    top: Tensor
    left: Tensor
    height: Tensor
    width: Tensor


class Jitters(NamedTuple):
    """Factors around 1 and a hue shift in turns, each (..., B); rank (..., B, 4) says when each of the four acts."""

    brightness: Tensor
    contrast: Tensor
    saturation: Tensor
    hue: Tensor
    rank: Tensor


class ColorParameters(NamedTuple):
    """All that makes one view; flip, grey and solarize are boolean (..., B)."""

    boxes: Boxes | None
    jitters: Jitters | None
    grey: Tensor
    flip: Tensor
    solarize: Tensor


@value
class ResizedCrop:
    """A window of random area and aspect ratio (log-uniform), resized to `size` x `size`, None: to the image's own size.

    Bilinear without antialiasing: a window no larger than `size` is never shrunk.
    """

    size: int | None = None
    area: tuple[float, float] = (0.08, 1.0)
    aspect: tuple[float, float] = (3 / 4, 4 / 3)

    def __post_init__(self) -> None:
        windows = 0 < self.area[0] <= self.area[1] <= 1 and 0 < self.aspect[0] <= self.aspect[1]
        if (self.size is not None and self.size < 1) or not windows:
            raise ValueError(f"{self} needs size >= 1, area within (0, 1] and aspect > 0, both as (low, high).")

    def boxes(self, u: Tensor, height: int, width: int) -> Boxes:
        """From uniform numbers (..., B, 22): the first of ten tries that fits, else the largest window, centred."""
        area = (self.area[0] + (self.area[1] - self.area[0]) * u[..., :_TRIES]) * (height * width)
        low, high = math.log(self.aspect[0]), math.log(self.aspect[1])
        aspect = torch.exp(low + (high - low) * u[..., _TRIES:-2])
        # One more "try", which always fits, is the fall-back: the image's own shape, brought into the range of aspects.
        w = F.pad(torch.sqrt(area * aspect).round(), (0, 1), value=min(width, round(height * self.aspect[1])))
        h = F.pad(torch.sqrt(area / aspect).round(), (0, 1), value=min(height, round(width / self.aspect[0])))
        fits = (w > 0) & (w <= width) & (h > 0) & (h <= height)
        first = fits.to(torch.int32).argmax(dim=-1, keepdim=True)
        h, w = h.gather(-1, first)[..., 0], w.gather(-1, first)[..., 0]
        free = torch.stack((height - h, width - w), dim=-1)
        corner = torch.where(first < _TRIES, (u[..., -2:] * (free + 1)).floor(), (free / 2).floor())
        return Boxes(corner[..., 0], corner[..., 1], h, w)


@value
class ColorJitter:
    """Brightness, contrast and saturation (factors 1 ± strength) and hue (± turns), in random order, with chance p."""

    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.2
    hue: float = 0.1
    p: float = 0.8

    def __post_init__(self) -> None:
        if min(self.brightness, self.contrast, self.saturation) < 0 or not (0 <= self.hue <= 0.5 and 0 <= self.p <= 1):
            raise ValueError(f"{self} needs strengths >= 0, hue in [0, 0.5] and p in [0, 1].")

    def jitters(self, u: Tensor) -> Jitters:
        """From uniform numbers (..., B, 9); a sample left alone, with chance 1 - p, has factors 1 and shift 0."""
        chosen = u[..., 4] < self.p

        def factor(strength: float, u: Tensor) -> Tensor:
            low, high = max(0.0, 1 - strength), 1 + strength
            return torch.where(chosen, low + (high - low) * u, 1.0)

        # The order of four numbers is an order of four operations; the added bits, which none of them has, break ties.
        apart = u[..., 5:] + torch.arange(4, device=u.device) * 2.0**-30
        return Jitters(
            brightness=factor(self.brightness, u[..., 0]),
            contrast=factor(self.contrast, u[..., 1]),
            saturation=factor(self.saturation, u[..., 2]),
            hue=torch.where(chosen, self.hue * (2 * u[..., 3] - 1), 0.0),
            rank=(apart.unsqueeze(-1) > apart.unsqueeze(-2)).sum(dim=-1),
        )


class ColorAugmentation(ImageAugmentation):
    """Parent of augmentations of red, green and blue."""

    def check(self, x: Tensor, keys: Tensor) -> None:
        super().check(x, keys)
        if x.shape[-3] != 3:
            raise ValueError(f"x of shape {tuple(x.shape)} needs three channels at axis -3; use Affine for grey images.")


@value
class ColorViews(ColorAugmentation):
    """The chain of the contrastive runs; grey, flip and solarize are chances, None leaves out crop or jitter."""

    crop: ResizedCrop | None = ResizedCrop()
    jitter: ColorJitter | None = ColorJitter()
    grey: float = 0.2
    flip: float = 0.5
    solarize: float = 0.2

    def __post_init__(self) -> None:
        if not all(0 <= p <= 1 for p in (self.grey, self.flip, self.solarize)):
            raise ValueError(f"{self} needs chances in [0, 1].")

    def parameters(self, keys: Tensor, height: int, width: int) -> ColorParameters:
        """Parameters for images of this size, from one draw for all stages: kernels on small tensors are what costs."""
        u = draws.uniform(draws.fold(keys, "color"), (_CROP + _JITTER + _CHANCES,), dtype=torch.float64)
        return ColorParameters(
            boxes=None if self.crop is None else self.crop.boxes(u[..., :_CROP], height, width),
            jitters=None if self.jitter is None else self.jitter.jitters(u[..., _CROP:-_CHANCES]),
            grey=u[..., -3] < self.grey,
            flip=u[..., -2] < self.flip,
            solarize=u[..., -1] < self.solarize,
        )

    def apply(self, x: Tensor, parameters: ColorParameters) -> Tensor:
        boxes, jitters, grey, flip, solarized = parameters
        # A flip commutes with all that follows the crop, and costs nothing as part of it.
        if self.crop is None or boxes is None:
            x = torch.where(per_image(flip), x.flip(-1), x)
        else:
            x = crop_resize(x, boxes, flip, size=self.crop.size)
        if jitters is not None:
            x = jitter(x, jitters)
        x = torch.lerp(x, luma(x), per_image(grey).to(x.dtype))
        return solarize(x, torch.where(solarized, 0.5, torch.inf))



def crop_resize(x: Tensor, boxes: Boxes, flip: Tensor, *, size: int | None = None) -> Tensor:
    """The window of each image resized to (size, size), None: to the image's own size, mirrored where flip is true.

    Nothing outside the window is seen.
    """
    top, left, height, width = (value.reshape(-1, 1) for value in boxes)
    tall, wide = x.shape[-2:] if size is None else (size, size)
    down, across = (torch.arange(side, device=x.device) + 0.5 for side in (tall, wide))
    mirrored = torch.where(flip.reshape(-1, 1), wide - across, across)
    rows = torch.minimum((down * height / tall - 0.5).clamp_min(0), height - 1) + top
    columns = torch.minimum((mirrored * width / wide - 0.5).clamp_min(0), width - 1) + left
    rows, columns = ((2 * place + 1) / side - 1 for place, side in zip((rows, columns), x.shape[-2:], strict=True))
    places = (columns[:, None, :].expand(-1, tall, -1), rows[:, :, None].expand(-1, -1, wide))
    grid = torch.stack(places, dim=1).to(x.dtype)
    images = x.reshape(-1, *x.shape[-3:])
    views = F.grid_sample(images, grid.permute(0, 2, 3, 1), mode="bilinear", padding_mode="border", align_corners=False)
    return views.reshape(*x.shape[:-2], tall, wide)


def jitter(x: Tensor, jitters: Jitters) -> Tensor:
    """The four adjustments, each image in its own order.

    A hue shift costs as much as three blends, so it happens once, for all images at the same time: the blends that an
    image has before it go first, those after it last, and a turn that an image does not use leaves it as it is.
    """
    fade = 1 - torch.stack((jitters.brightness, jitters.contrast, jitters.saturation), dim=-1)
    rank, hue = jitters.rank[..., :3], jitters.rank[..., 3:]
    turn = rank + 2 * (rank > hue)  # 0, 1, 2 before the shift, 3, 4, 5 after it
    every_turn = torch.arange(6, device=x.device).reshape(6, *(1,) * turn.dim())
    fades = torch.where(turn == every_turn, fade, 0).to(x.dtype)
    for i in range(3):
        x = blend(x, fades[i])
    x = shift_hue(x, jitters.hue)
    for i in range(3, 6):
        x = blend(x, fades[i])
    return x


def blend(x: Tensor, fade: Tensor) -> Tensor:
    """x faded to black, to its mean grey and to its grey version by the three entries of fade (..., B, 3)."""
    _, mean, grey = per_image(fade.movedim(-1, 0))
    shades = luma(x)
    base = (shades * grey).add_(shades.mean(dim=(-2, -1), keepdim=True) * mean)
    return torch.addcmul(base, x, per_image(1 - fade.sum(dim=-1))).clamp_(0, 1)


def luma(x: Tensor) -> Tensor:
    """Grey versions (..., 1, h, w), with the weights of ITU-R 601 as torchvision rounds them."""
    red, green, blue = x.unbind(dim=-3)
    return (red * 0.2989).add_(green, alpha=0.587).add_(blue, alpha=0.114).unsqueeze(-3)


def shift_hue(x: Tensor, turns: Tensor) -> Tensor:
    """Hue of the HSV colour model moved round by a share of the circle per image (..., B)."""
    red, green, blue = x.unbind(dim=-3)
    value = torch.maximum(torch.maximum(red, green), blue)
    low = torch.minimum(torch.minimum(red, green), blue)
    chroma = value - low
    # The smallest channel names the third of the circle, the other two the place in it. In sixths of the circle, hue is
    # 1 + (g - r) / chroma without blue, 3 + (b - g) / chroma without red, 5 + (r - b) / chroma without green.
    # Masks are numbers, since torch.where is slow on CPUs.
    no_red = low.clone().eq_(red)
    no_green = low.eq_(green).mul_(1 - no_red)
    place = green - red
    place = place.addcmul(no_red, blue - green - place).addcmul_(no_green, red - blue - place)
    hue = place.div_(chroma.clamp_min(torch.finfo(x.dtype).tiny)).add_(no_red, alpha=2).add_(no_green, alpha=4)
    hue = hue + (6 * turns + 1).to(x.dtype)[..., None, None]
    hue = hue.sub_((hue / 6).floor_(), alpha=6)
    # Back again: a channel is full within one sixth of its own hue (0, 2, 4), empty beyond two sixths, linear between.
    away = hue.unsqueeze(-3) - 2 * torch.arange(3, device=x.device)[:, None, None]
    near = away.abs_().sub_(3).abs_().clamp_(1, 2)  # in [0, 6) that is 3 less the way round the circle
    return torch.addcmul((value - 2 * chroma).unsqueeze(-3), near, chroma.unsqueeze(-3))


def solarize(x: Tensor, threshold: Tensor) -> Tensor:
    """Pixels at or above the threshold (..., B) of their image inverted."""
    bright = x.clone().ge_(per_image(threshold).to(x.dtype))
    return torch.lerp(x, 1 - x, bright)


def per_image(values: Tensor) -> Tensor:
    """One value per image, shaped to act on (..., c, h, w)."""
    return values[..., None, None, None]
