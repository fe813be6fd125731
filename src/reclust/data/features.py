"""Features of images by a pretrained network."""

import copy
import os
from collections.abc import Callable
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

IMAGENET: dict[str, Any] = {"input_size": (3, 224, 224), "mean": (0.485, 0.456, 0.406),
            "std": (0.229, 0.224, 0.225)}


def features(model: Callable[[Tensor], Tensor], images: Any, *, size: int | None = None,
             batch_size: int = 64, device: str = "auto", progress: bool | None = None) -> Dataset:
    """Compute features of images once, in batches, with a pretrained network.

    Parameters
    ----------
    model : torch Module or function
        Images (B, 3, size, size) -> features (B, d), or (B, d, h, w), of which the mean is taken.
        Such as a timm model with `num_classes=0`. It is not changed.
    images : path or array
        A folder of images or an array of images.
    size : int, optional
        Side to which images are resized, whatever their shape. By default it is that of timm's
        `model.pretrained_cfg`, or 224; so are mean and deviation of channels, or ImageNet's.
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
    shift, scale = (torch.tensor(known[name], device=place).view(-1, 1, 1)
                    for name in ("mean", "std"))
    if isinstance(model, nn.Module):
        model = copy.deepcopy(model).to(place).eval()
    read_as = (side, side, 3) if isinstance(images, (str, os.PathLike)) else None
    samples = accept(images, image_shape=read_as)
    if samples.image_shape is None:
        raise DataError(f"Features need images (n, h, w[, channels]), not {samples.array.shape}.")
    brightest, parts = 255 if samples.array.max() > 1 else 1, []
    with (torch.inference_mode(),
          progress_bar(samples.n_samples, progress, desc="features", leave=False) as bar):
        for start in range(0, samples.n_samples, batch_size):
            part = samples.array[start : start + batch_size].reshape(-1, *samples.image_shape)
            x = torch.from_numpy(part).to(place).float().movedim(-1, 1) / brightest
            x = x.expand(-1, 3, -1, -1)
            if x.shape[-2:] != (side, side):
                x = interpolate(x, (side, side), mode="bicubic", antialias=True).clamp(0, 1)
            z = model((x - shift) / scale)
            parts.append((z.flatten(2).mean(-1) if z.ndim > 2 else z).float().cpu().numpy())
            bar.update(len(x))
    return Dataset(samples=np.concatenate(parts), ids=samples.ids)
