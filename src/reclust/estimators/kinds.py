"""Kinds of data, and how each is prepared."""

from typing import Any, Literal

import numpy as np
import torch
from scipy import sparse
from sklearn.decomposition import TruncatedSVD

from ..data.accept import SampleSet
from ..data.augmentation.affine import Augmentation
from ..data.augmentation.color import ColorViews, ResizedCrop
from ..data.dataset import dense_rows
from ..data.lens import Lens, light_is_uneven
from ..data.scaling import are_components, some_rows
from .presets import MOTION, check_known

Kind = Literal["table", "embeddings", "images"]
MAX_COLUMNS, MAX_COMPONENTS = 2_000, 128  # of sparse rows, and what they are reduced to
COLOR_VIEWS = ColorViews(ResizedCrop(area=(0.5, 1.0)), grey=0.2, flip=0, solarize=0)


def kind_of(samples: SampleSet, wanted: str = "auto") -> Kind:
    check_known("kind", wanted, ("auto", "table", "embeddings", "images"))
    if samples.image_shape is not None:
        return "images"
    if wanted == "images":
        raise ValueError("kind='images' needs images: pass image_shape=(height, width).")
    if wanted != "auto":
        return wanted  # type: ignore[return-value]
    if samples.encoder is not None:
        return "table"
    return "embeddings" if _looks_like_embeddings(samples.array) else "table"


def _looks_like_embeddings(X: Any) -> bool:
    """Tell unit-length rows, principal components, and many dense similar columns from tables."""
    if sparse.issparse(X):
        return X.shape[1] > MAX_COLUMNS
    some = some_rows(X)
    lengths, spread = np.linalg.norm(some, axis=1), some.std(0)
    equal = some.shape[1] > 8 and lengths.std() < 1e-3 * lengths.mean()
    one_column = np.linalg.norm(some, axis=0).max() > 0.7 * np.linalg.norm(some)  # as of years
    if are_components(X) or (equal and not one_column):
        return True
    similar = spread.max() < 10 * np.median(spread) and (some != 0).mean() > 0.95
    return some.shape[1] >= 128 and len(X) >= 2 * some.shape[1] and bool(similar)


def flat_rows(samples: SampleSet) -> np.ndarray:
    """Return dense rows (n, d) in float64; wide sparse ones are reduced."""
    array = samples.array
    if sparse.issparse(array) and array.shape[1] > MAX_COLUMNS:
        return TruncatedSVD(MAX_COMPONENTS, random_state=0).fit_transform(array)
    return dense_rows(array, slice(None)).reshape(samples.n_samples, -1).astype(np.float64)


def lens_for(samples: SampleSet, device: torch.device) -> Lens:
    """Enlarge small images, and remove brightness where it varies from image to image."""
    if samples.image_shape is None:
        return Lens()
    images = samples.array[:1000].reshape(-1, *samples.image_shape)
    images = np.moveaxis(images, -1, 1) / images.max()
    side = 16 if device.type == "cpu" else 28
    return Lens(side, "removed" if light_is_uneven(images) else "kept")


def augmentation_for(samples: SampleSet) -> Augmentation | None:
    if samples.image_shape is None:
        return None
    return COLOR_VIEWS if samples.image_shape[2] == 3 else MOTION
