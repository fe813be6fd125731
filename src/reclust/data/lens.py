"""What an image looks like before it is augmented: larger, or without its light."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ..utils.values import check_int, value

DARK = 0.05
"""Of the sum of the channels: what is not much brighter than this has little colour, else its noise would."""

UNEVEN = 1 / 3
"""By which share of its mean light may vary before it is called uneven: that of traffic signs, photographed in sun and shadow,
varies by more, that of CIFAR10 by less."""


@value
class Lens:
    """Changes images in [0, 1], (..., channels, h, w), by what is known of them without looking at the set.

    least_side: images with a shorter side are enlarged (bicubic) until it has so many pixels, so that small motions of
        augmentation find places between the pixels of, say, 8 × 8.
    light: "removed" leaves each channel's share of a pixel's light instead of the light itself, so that things are alike in
        sun and shadow. Grey and white become one, and what is grey altogether is gone. For three channels.
    """

    least_side: int | None = None
    light: Literal["kept", "removed"] = "kept"

    def __post_init__(self) -> None:
        if self.least_side is not None:
            object.__setattr__(self, "least_side", check_int("least_side", self.least_side, 1))
        if self.light not in ("kept", "removed"):
            raise ValueError(f"light must be 'kept' or 'removed', got {self.light!r}.")

    def shape(self, height: int, width: int, channels: int) -> tuple[int, int, int]:
        """(channels, h, w) of what comes of such images."""
        if self.light == "removed" and channels != 3:
            raise ValueError(f"Lens(light='removed') is for images of three channels, these have {channels}: leave it out.")
        larger = max(1.0, (self.least_side or 0) / min(height, width))
        return channels, round(height * larger), round(width * larger)

    def __call__(self, images: Any) -> Any:
        """An array or a tensor gives the same of its kind and type."""
        channels, height, width = images.shape[-3:]
        _, *sides = self.shape(height, width, channels)
        if self.light == "removed":
            images = images.clip(0, 1)  # samples that a model was not fitted on may lie outside
            images = images / (images.sum(axis=-3, keepdims=True) + DARK)
        if sides == [height, width]:
            return images
        rows, columns = (_like(images, bicubic(old, new)) for old, new in zip((height, width), sides, strict=True))
        return (rows @ images @ columns.T).clip(0, 1)


def light_is_uneven(images: NDArray) -> bool:
    """Whether the light of colour images in [0, 1], (n, channels, h, w), varies much from one to the next.

    The light of an image is that of its bright parts, so that things before a dark ground do not count as lit by how large
    they are; where the ground of many is black, it cannot be told at all.
    """
    if images.shape[1] != 3 or images.std(axis=1).mean() < 0.01:  # grey in three channels
        return False
    pixels = images.mean(axis=1).reshape(len(images), -1)
    if (np.median(pixels, axis=1) < DARK).mean() > 0.1:
        return False
    light = np.quantile(pixels, 0.9, axis=1)
    return bool(light.std() > UNEVEN * light.mean())


def bicubic(old: int, new: int) -> NDArray[np.float64]:
    """(new, old): what each of so many pixels along a side takes from each of the old ones; beyond the edge is its last one."""
    a = -0.75  # how sharp: torch's own choice
    place = (np.arange(new) + 0.5) * old / new - 0.5
    weights = np.zeros((new, old))
    for step in range(-1, 3):
        taken = np.floor(place) + step
        far = np.abs(place - taken)
        near = ((a + 2) * far - (a + 3)) * far**2 + 1
        weight = np.where(far <= 1, near, ((far - 5) * far + 8) * far * a - 4 * a)
        np.add.at(weights, (np.arange(new), taken.clip(0, old - 1).astype(int)), weight)
    return weights


def _like(images: Any, matrix: NDArray[np.float64]) -> Any:
    if isinstance(images, torch.Tensor):
        return torch.from_numpy(matrix).to(images)
    return matrix.astype(images.dtype)
