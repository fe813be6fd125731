"""From raw samples to what training takes: equalise, scale, resize, and the statistics of the z-score.

The z-score itself comes after augmentation, so `prepare` keeps images in [0, 1] and hands its mean and deviation along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from .dataset import Dataset, Samples
from .errors import DataError
from .lens import Lens
from .moments import Moments, chunks, statistics as statistics_of

Statistics = Literal["after_resize", "before_resize"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Images (n, c, h, w) float32 in [0, 1] with mean and std (c, 1, 1), or a table (n, d) with mean and std (d,)."""

    samples: Samples
    mean: NDArray[np.float32]
    std: NDArray[np.float32]

    def standardized(self, index: Any = slice(None)) -> NDArray[np.float32]:
        """The samples at `index`, dense, with the z-score applied."""
        chosen = self.samples[index]
        dense = chosen if isinstance(chosen, np.ndarray) else chosen.toarray()
        return ((dense - self.mean) / self.std).astype(np.float32)


def prepare(
    dataset: Dataset,
    *,
    size: tuple[int, int] | None = None,
    equalized: bool | None = None,
    max_value: float | None = None,
    statistics: Statistics = "after_resize",
    lens: Lens = Lens(),
) -> Prepared:
    """Equalise, scale to [0, 1], resize (bilinear), look through the lens, and take the statistics; each as the data set says
    unless given.

    statistics="before_resize" takes them from the images as distributed, as the published program does, so that the
    deviation after the z-score is below 1 where resizing smooths (0.86 on OPTDIGITS). That program also divides GTSRB
    by 255 twice: max_value=255 * 255. Tables stay as they are, mapped or sparse; statistics are those of the columns.
    """
    if statistics not in ("after_resize", "before_resize"):
        raise ValueError(f"statistics={statistics!r}; needed: 'after_resize' or 'before_resize'.")
    if lens != Lens() and (dataset.image_shape is None or statistics == "before_resize"):
        raise ValueError(f"{lens} is for images, whose statistics are then those of what is seen through it.")
    if dataset.image_shape is None:
        return Prepared(dataset.samples, *_single(statistics_of(dataset.samples)))
    channels, height, width = dataset.image_shape
    size = size or dataset.resize_to or (height, width)
    equalized = dataset.equalize if equalized is None else equalized
    raw = dataset.images.reshape(len(dataset), height, width, channels)
    images = np.empty((len(dataset), *lens.shape(*size, channels)), np.float32)
    seen = Moments((0, 2, 3))
    for rows in chunks(raw):
        chunk = np.moveaxis(np.asarray(raw[rows]), 3, 1)
        chunk = scale(equalize(chunk) if equalized else chunk, dataset.max_value if max_value is None else max_value)
        images[rows] = lens(resize_bilinear(chunk, size))
        seen.add(chunk if statistics == "before_resize" else images[rows])
    return Prepared(images, *_single(seen.result()))


def _single(statistics: tuple[NDArray[Any], NDArray[Any]]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    return statistics[0].astype(np.float32), statistics[1].astype(np.float32)


def scale(images: NDArray[Any], max_value: float) -> NDArray[np.float32]:
    """Pixels 0..max_value as float32 in [0, 1]."""
    scaled = images.astype(np.float32) / np.float32(max_value)
    if not (scaled.min() >= 0 and scaled.max() <= 1):  # written so that NaN fails
        raise DataError(
            f"Pixels are {images.min()}..{images.max()}, needed: 0..{max_value:g}. Give images as they were before any "
            "standardisation, or say with max_value= which value stands for 1."
        )
    return scaled


def resize_bilinear(images: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
    """Images (n, c, h, w) to `size` (h, w), bilinear, pixels as areas; reducing averages (antialias) as in Pillow."""
    if images.shape[2:] == tuple(size):
        return images
    tensor = torch.from_numpy(np.ascontiguousarray(images))
    resized = F.interpolate(tensor, size, mode="bilinear", align_corners=False, antialias=True)
    return np.asarray(resized.numpy(), np.float32)


def equalize(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Histogram equalisation of every image and channel of (n, c, h, w) by itself, exactly as Pillow computes it."""
    if images.dtype != np.uint8:
        raise DataError(f"Equalising needs images of bytes 0..255, these are {images.dtype}.")
    n, channels, height, width = images.shape
    planes = images.reshape(n * channels, height * width)
    offsets = 256 * np.arange(len(planes))[:, None]
    histogram = np.bincount((planes + offsets).ravel(), minlength=256 * len(planes)).reshape(-1, 256)
    step = (height * width - np.take_along_axis(histogram, planes.max(axis=1, keepdims=True), axis=1)) // 255
    below = np.cumsum(histogram, axis=1) - histogram
    table = np.minimum((step // 2 + below) // np.maximum(step, 1), 255).astype(np.uint8)
    # Too few different values to spread: Pillow leaves such a plane alone.
    table = np.where(step == 0, np.arange(256, dtype=np.uint8), table)
    return np.take_along_axis(table, planes, axis=1).reshape(images.shape)
