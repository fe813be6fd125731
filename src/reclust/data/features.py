"""Features of images by a pretrained network."""

import copy
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from ..utils.device import choose_device
from ..utils.progress import progress_bar
from .accept import accept
from .dataset import Dataset
from .errors import DataError
from .formats.images import find_images, holds_images, read_pixels

IMAGENET: dict[str, Any] = {"input_size": (3, 224, 224), "mean": (0.485, 0.456, 0.406),
            "std": (0.229, 0.224, 0.225)}


def features(model: Callable[[Tensor], Tensor], images: Any, *, size: int | None = None,
             mean: Sequence[float] | None = None, std: Sequence[float] | None = None,
             batch_size: int = 64, device: str = "auto", progress: bool | None = None) -> Dataset:
    """Compute features of images once, in batches, with a pretrained network.

    Parameters
    ----------
    model : torch Module or function
        Images (B, 3, size, size) -> features (B, d), or (B, d, h, w), of which the mean is taken.
        Such as a timm model with `num_classes=0`. It is not changed.
    images : path or array
        A folder of images, which are read batch by batch, or an array of images.
    size : int, optional
        Side to which images are resized, whatever their shape.
    mean, std : sequence of float, optional
        Of the channels of images in [0, 1]. By default these and the size are those of timm's
        `model.pretrained_cfg`, or ImageNet's and 224.
    batch_size : int, default=64
    device : str, default="auto"
        A torch device; "auto" uses a GPU if there is one.
    progress : bool, optional
        Show a progress bar; by default only in a terminal.

    Returns
    -------
    Dataset
        Features (n, d) as `samples`, and file names as `ids`, for `Reclust(kind="embeddings")`.

    Examples
    --------
    >>> import numpy as np, torch, reclust
    >>> network = torch.nn.Conv2d(3, 4, 3)
    >>> reclust.features(network, np.zeros((10, 8, 8), np.uint8), size=16)
    Dataset('data', (10, 4) float32)
    """
    known = {**IMAGENET, **getattr(model, "pretrained_cfg", {})}
    side, place = size or known["input_size"][-1], choose_device(device)
    shift, scale = (torch.tensor(default if given is None else given, device=place).view(-1, 1, 1)
                    for given, default in ((mean, known["mean"]), (std, known["std"])))
    if isinstance(model, nn.Module):
        model = copy.deepcopy(model).to(place).eval()
    ids, n, load = _source(images, side)
    parts = []
    with torch.inference_mode(), progress_bar(n, progress, desc="features", leave=False) as bar:
        for start in range(0, n, batch_size):
            x = torch.from_numpy(load(slice(start, start + batch_size))).to(place)
            if x.shape[-2:] != (side, side):
                x = interpolate(x, (side, side), mode="bicubic", antialias=True).clamp(0, 1)
            z = model((x - shift) / scale)
            parts.append((z.flatten(2).mean(-1) if z.ndim > 2 else z).float().cpu().numpy())
            bar.update(len(x))
    return Dataset(samples=np.concatenate(parts), ids=ids)


def _source(images: Any, side: int) -> tuple[Any, int, Callable[[slice], np.ndarray]]:
    """Return ids, number, and a function from a slice to images (B, channels, h, w) in [0, 1]."""
    if isinstance(images, (str, os.PathLike)) and holds_images(images):
        place = Path(images).expanduser()
        paths = find_images(place)
        folder = place if place.is_dir() else place.parent
        ids = np.array([path.relative_to(folder).as_posix() for path in paths], dtype=object)

        def read(rows: slice) -> np.ndarray:
            pixels = [read_pixels(path, size=(side, side), grey=False) for path in paths[rows]]
            return np.moveaxis(np.stack(pixels), -1, 1).astype(np.float32) / 255

        return ids, len(paths), read
    samples = accept(images)
    if samples.image_shape is None:
        raise DataError(f"Features need images (n, h, w[, channels]), not {samples.array.shape}.")
    array, shape = samples.array, samples.image_shape
    brightest = 255 if array.max() > 1 else 1

    def scaled(rows: slice) -> np.ndarray:
        x = np.moveaxis(array[rows].reshape(-1, *shape), -1, 1).astype(np.float32) / brightest
        return np.repeat(x, 3, axis=1) if shape[2] == 1 else x

    return samples.ids, samples.n_samples, scaled
