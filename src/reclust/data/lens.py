"""Changes to images before augmentation: enlarging them and removing brightness."""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import interpolate

from ..utils.values import choice, integer, value

DARK = 0.05  # added to the sum of the channels, so that noise in dark pixels is no color
UNEVEN = 1 / 3  # standard deviation of brightness between images, relative to the mean


@value
class Lens:
    """Enlarge small images or remove their brightness before augmentation.

    A lens depends on nothing but its parameters. It is called with images in [0, 1] of shape
    (..., channels, height, width), as an array or a tensor.

    Parameters
    ----------
    least_side : int, optional
        Images with a shorter side are enlarged (bicubic) until it has this many pixels, so that
        augmentation can move small images by fractions of their pixels.
    light : {"kept", "removed"}
        "removed" keeps each channel's share of a pixel's brightness only, so that objects look the
        same in sun and shadow. Needs three channels.

    Examples
    --------
    >>> import numpy as np
    >>> from reclust.data import Lens
    >>> Lens(least_side=16)(np.zeros((5, 1, 8, 8))).shape
    (5, 1, 16, 16)
    """

    least_side: int | None = integer(default=None, least=1, optional=True)
    light: Literal["kept", "removed"] = choice("kept", "removed", default="kept")

    def shape(self, height: int, width: int, channels: int) -> tuple[int, int, int]:
        """Return the shape (channels, h, w) of images of this size seen through the lens."""
        if self.light == "removed" and channels != 3:
            raise ValueError(f"Lens(light='removed') needs images of 3 channels, got {channels}.")
        factor = max(1.0, (self.least_side or 0) / min(height, width))
        return channels, round(height * factor), round(width * factor)

    def __call__(self, images: Any) -> Any:
        channels, height, width = images.shape[-3:]
        _, *sides = self.shape(height, width, channels)
        if self.light == "removed":
            images = images.clip(0, 1)  # new samples may lie outside of the range of the fit
            images = images / (images.sum(axis=-3, keepdims=True) + DARK)
        if sides == [height, width]:
            return images
        is_tensor = isinstance(images, torch.Tensor)
        rows, columns = (torch.from_numpy(w).to(images) if is_tensor else w.astype(images.dtype)
                         for w in map(bicubic, (height, width), sides))
        return (rows @ images @ columns.T).clip(0, 1)


def light_is_uneven(images: NDArray) -> bool:
    """Tell whether the brightness of color images in [0, 1], (n, channels, h, w), varies a lot."""
    if images.shape[1] != 3 or images.std(axis=1).mean() < 0.01:  # gray in three channels
        return False
    pixels = images.mean(axis=1).reshape(len(images), -1)
    if (np.median(pixels, axis=1) < DARK).mean() > 0.1:  # a black background tells nothing
        return False
    light = np.quantile(pixels, 0.9, axis=1)
    return bool(light.std() > UNEVEN * light.mean())


def bicubic(old: int, new: int) -> NDArray[np.float64]:
    """Return the matrix (new, old) that resizes one side as torch does."""
    rows = torch.eye(old, dtype=torch.float64)[None, None]
    return interpolate(rows, size=(new, old), mode="bicubic")[0, 0].numpy()
