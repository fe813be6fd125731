"""From what users bring to what a network sees, learned in `fit` and repeated in `predict`."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data
from torch import Tensor
from torch.utils.data import DataLoader, Dataset as TorchDataset

from ..utils.exceptions import warn
from ..utils.values import check_int
from . import Dataset, read
from .assemble import as_names, channels_come_first
from .formats.images import holds_images
from .formats.memory import as_numpy, is_arrow_or_polars
from .formats.tables import check_complete, check_finite, check_numeric, refuse_masked
from .inputs import Inputs, ResidentInputs
from .lens import Lens, light_is_uneven
from .outliers import crowded_columns, erased_columns, some_rows
from .scaling import Scaling, identity, to_unit_range, z_score
from .streams import StreamedInputs, dense_rows

FEW = 5
"""In fewer new rows values may be far out by chance."""
FAR_OUT = 10
"""Standard deviations by which the median of new rows is off where their unit is another one; in the fit it is below 1.5."""


def opened(X: Any, image_shape: Sequence[int] | None = None) -> Any:
    """Files, folders, torch data sets, AnnData, tables of Arrow and polars are read into a `Dataset`; others are left alone.

    image_shape: (h, w, channels) that images in files are to have, whatever theirs are.
    """
    anndata = sys.modules.get("anndata")  # whoever brings one has imported it already
    if isinstance(X, TorchDataset) or (anndata is not None and isinstance(X, anndata.AnnData)) or is_arrow_or_polars(X):
        return read(X)
    if isinstance(X, DataLoader):
        raise ValueError("X is a DataLoader, whose batches and order are its own: give its data set, X.dataset.")
    if not isinstance(X, (str, os.PathLike)):
        return X
    return read(X, size=image_shape if holds_images(X) else None)


def names_of_rows(X: Any) -> np.ndarray | None:
    """Of a `Dataset` that has ids, or of a DataFrame whose index is more than a count."""
    if isinstance(X, Dataset):
        return X.ids
    pandas = sys.modules.get("pandas")
    named = pandas is not None and isinstance(X, pandas.DataFrame) and not isinstance(X.index, pandas.RangeIndex)
    return as_names(X.index.to_numpy(), "X") if named else None


def as_array(X: Any) -> Any:
    """Data sets, tensors and lists become arrays; everything else is left to scikit-learn's own checks."""
    if isinstance(X, Dataset):
        X = X.samples
    if isinstance(X, Tensor):
        return as_numpy(X)
    refuse_masked(X)
    if getattr(getattr(X, "dtype", None), "kind", None) in ("m", "M"):
        raise ValueError("X holds dates or times: give what matters of them as numbers, such as days since the first one.")
    return np.asarray(X) if isinstance(X, (list, tuple)) else X


def check_samples(estimator: BaseEstimator, X: Any, *, reset: bool) -> np.ndarray:
    """Rows of numbers as scikit-learn checks them, or images (n, h, w) or (n, h, w, channels); at least two to fit."""
    X = opened(X, None if reset else estimator.preparation_.image_shape)
    if isinstance(X, Dataset) and not reset:
        X = in_columns_of(estimator, X)
    names = X.feature_names if isinstance(X, Dataset) else None
    X = as_array(X)
    pandas = sys.modules.get("pandas")  # whoever brings a DataFrame has imported it already
    if pandas is not None and isinstance(X, pandas.DataFrame):
        check_numeric(X)
        check_complete(X)
    if not (isinstance(X, np.ndarray) and X.ndim in (3, 4)):
        return _check_rows(estimator, X, names, reset=reset)
    X = check_array(_channels_last(estimator, X, reset=reset), allow_nd=True, ensure_min_samples=2 if reset else 1,
                    dtype=None if X.dtype == np.uint8 else (np.float64, np.float32))
    if reset:
        estimator.n_features_in_ = math.prod(X.shape[1:])
        vars(estimator).pop("feature_names_in_", None)  # of an earlier fit on a table
    elif math.prod(X.shape[1:]) != estimator.n_features_in_:
        raise ValueError(f"X has {math.prod(X.shape[1:])} features, but {type(estimator).__name__} is expecting "
                         f"{estimator.n_features_in_} features as input.")
    return X


def _check_rows(estimator: BaseEstimator, X: Any, names: tuple[str, ...] | None, *, reset: bool) -> np.ndarray:
    """names: of the columns of a file, which are held to be as in `fit`, as scikit-learn holds those of a DataFrame."""
    if names is not None and not reset:
        _check_names(names, getattr(estimator, "feature_names_in_", names))
    with warnings.catch_warnings():
        if names is not None:
            warnings.filterwarnings("ignore", "X does not have valid feature names")
        try:
            rows = validate_data(estimator, X, reset=reset, dtype=(np.float64, np.float32), accept_sparse="csr",
                                 ensure_min_samples=2 if reset else 1)
        except ValueError:
            if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":  # say where, if that is what is wrong
                check_finite(X, names or [f"feature {i}" for i in range(X.shape[1])], "X")
            raise
    if names is not None and reset:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    if not reset:
        estimator.preparation_.warn_of_another_unit(rows, getattr(estimator, "feature_names_in_", None))
    return rows


def in_columns_of(estimator: BaseEstimator, found: Dataset) -> Dataset:
    """Columns in the order of those of the fit, without others; as it is where one is lacking or names do not tell."""
    names, fitted = found.feature_names, getattr(estimator, "feature_names_in_", None)
    if names is None or fitted is None or list(names) == list(fitted):
        return found
    place, known = {name: i for i, name in enumerate(names)}, set(fitted)
    mapped = isinstance(found.samples, np.memmap)  # which would be read into memory
    if len(place) < len(names) or len(known) < len(fitted) or not place.keys() >= known or mapped:
        return found
    more = [name for name in names if name not in known]
    if more:
        warn(f"{found.name} has columns that the model was not fitted with, which are left out: {_listed(more)}.")
    return replace(found, samples=found.samples[:, [place[name] for name in fitted]], feature_names=tuple(fitted))


def _check_names(names: Sequence[str], fitted: Sequence[str]) -> None:
    if list(names) == list(fitted):
        return
    missing, more = ([name for name in one if name not in set(other)] for one, other in ((fitted, names), (names, fitted)))
    said = [f"{what} {_listed(some)}" for what, some in (("it lacks", missing), ("it was not fitted with", more)) if some]
    raise ValueError("X has other columns than the model was fitted on: " + ("; ".join(said) or "they come in another order") +
                     ". Bring the same columns in the same order.")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + ", …" * (len(names) > 5)


def _called(names: Sequence[str] | None, column: int) -> str:
    return f"feature {column}" if names is None else repr(names[column])


def _channels_last(estimator: BaseEstimator, X: np.ndarray, *, reset: bool) -> np.ndarray:
    """Images (n, channels, h, w), as torch has them, as (n, h, w, channels); others as they are."""
    if X.ndim == 3:
        if reset and getattr(estimator, "image_shape", None) is None and max(X.shape[1:]) > 4 * min(X.shape[1:]):
            warn(f"X of shape {X.shape} is taken for grey images of {X.shape[1]} × {X.shape[2]}, all on one scale. "
                 "If these are series of several channels, give rows, X.reshape(len(X), -1), where each value has a scale of "
                 f"its own; if they are images, image_shape={X.shape[1:]} says so.")
        return X
    known = getattr(estimator, "image_shape", None) if reset else estimator.preparation_.image_shape
    shape = X.shape[1:]
    moved = channels_come_first(shape) if known is None else shape != tuple(known) == (*shape[1:], shape[0])
    few = 2 * shape[0] <= min(shape[1:]) or shape[0] < shape[1] == shape[2]  # to be the height of images
    if known is None and not moved and shape[2] not in (1, 3) and few:
        warn(f"Images of shape {shape} are taken for {shape[2]} channels of {shape[0]} × {shape[1]}. Where the "
             f"{shape[0]} are the channels, bring them last (np.moveaxis(X, 1, -1)); where not, image_shape={shape} says so.")
    return np.moveaxis(X, 1, -1) if moved else X


@dataclass(frozen=True)
class Preparation:
    """Two scalings with the augmentation between them: `first` and the lens before it, `second` after it.

    Tables are standardised before (noise is measured in standard deviations), images are brought to [0, 1] before (fills
    and colours are defined there) and standardised after. image_shape: (h, w, channels), None for tables.
    """

    image_shape: tuple[int, int, int] | None
    first: Scaling
    second: Scaling
    lens: Lens = Lens()

    @classmethod
    def fit(cls, X: np.ndarray, image_shape: Sequence[int] | None, *, standardize: bool, lens: Lens = Lens(),
            names: Sequence[str] | None = None) -> Preparation:
        """names: of the columns of a table, to speak of them."""
        shape = full_image_shape(X.shape[1:], image_shape)
        if shape is None:
            if lens != Lens():
                raise ValueError(f"{lens} is for images: give image_shape=(height, width) for images in flat rows.")
            # No weights were trained for a column that never varied: whatever it holds later stays 0.
            made = cls(None, z_score(X, identity(), constant=np.inf) if standardize else identity(), identity())
            if standardize:
                made._warn_of_erased_columns(X, names)
                _hint_at_logarithms(X, names)
            return made
        if X.ndim == 2 and channels_come_first(shape):
            warn(f"image_shape={shape} means a height of {shape[0]}, a width of {shape[1]} and {shape[2]} channels. "
                 "Where channels come first, give images (n, channels, height, width) instead of flat rows.")
        growth, unit = math.prod(lens.shape(*shape)) / math.prod(shape), to_unit_range(X)
        if standardize:
            seen = z_score(X, lambda x: lens(unit(_channels_first(x, shape))), axes=(0, 2, 3), growth=growth)
            return cls(shape, unit, seen, lens)
        return cls(shape, unit, identity() if lens.light == "removed" else unit.inverse(), lens)

    @property
    def sample_shape(self) -> tuple[int, ...] | None:
        """(channels, h, w) of images as the network sees them; None for tables, which stay as they are."""
        return None if self.image_shape is None else self.lens.shape(*self.image_shape)

    @property
    def channels(self) -> int | None:
        """How many colour channels images have; None for tables."""
        return None if self.image_shape is None else self.image_shape[2]

    def inputs(self, X: Any, *, limit: float = float("inf")) -> Inputs:
        """All of X for training: in memory, or streamed from where it is when it would take more bytes than `limit`."""
        tables = self.image_shape is None
        shift, scale = (None if tables else torch.from_numpy(part) for part in (self.second.shift, self.second.scale))
        if 4 * X.shape[0] * math.prod(self.sample_shape or X.shape[1:]) > limit:
            return StreamedInputs(X, self._load, shift, scale)
        return ResidentInputs(torch.from_numpy(self._load(dense_rows(X, slice(None)))), shift, scale)

    def warn_of_another_scale(self, X: np.ndarray) -> None:
        """Bytes where fractions are expected, or the other way round."""
        if self.image_shape is None:
            return
        low, high = self.first.shift.item(), (self.first.shift + self.first.scale).item()
        brightest = float(dense_rows(X, some_rows(X)).max())
        times = 10 if X.shape[0] >= 10 else 200  # a few images may be dark
        if 0 < brightest < high / times or brightest > times * high > 0:
            warn(f"The brightest value is {brightest:g}, and the model was fitted on values from {low:g} to {high:g}: "
                 "bring images to the same scale, such as bytes (0 to 255) or fractions (0 to 1).")

    def warn_of_another_unit(self, X: Any, names: Sequence[str] | None) -> None:
        """Of columns of new rows that mostly lie far from those of the fit, as mg/dL do from mmol/L."""
        standardized = self.first.shift.any() or (self.first.scale != 1).any()
        if self.image_shape is not None or not standardized or X.shape[0] < FEW:
            return
        rows = dense_rows(X, some_rows(X))
        far = np.flatnonzero(np.median(np.abs(self.first(rows)), axis=0) > FAR_OUT)
        if len(far):
            said = [f"{_called(names, i)} (about {np.median(rows[:, i]):.3g}, in the fit {self.first.shift[i]:.3g} ± "
                    f"{self.first.scale[i]:.3g})" for i in far[:5].tolist()]
            warn(f"Columns lie far from those that the model was fitted on: {', '.join(said)}{', …' * (len(far) > 5)}. "
                 "Bring them to the same units; otherwise the clusters of these rows mean little.")

    def _warn_of_erased_columns(self, X: Any, names: Sequence[str] | None) -> None:
        found = list(erased_columns(X, self.first))
        if found:
            said = [f"{_called(names, column)} ({farthest:g}; {count} of {X.shape[0]} rows)"
                    for column, count, farthest in found[:5]]
            warn("Some values lie so far out that standardising all but erases the differences among all others in "
                 f"{', '.join(said)}{', …' * (len(found) > 5)}. Correct them, leave out their rows, or fill them in where they "
                 "stand for missing ones.")

    def hint_at_uneven_light(self, X: np.ndarray) -> None:
        """For whom has not said what to do with it."""
        if self.channels == 3 and light_is_uneven(self.first(self._arrange(dense_rows(X, some_rows(X))))):
            warn("Light varies much from image to image. Where the same things are lit differently and colours tell them "
                 f"apart, lens={replace(self.lens, light='removed')} (on the command line --light removed) takes it away; "
                 f"lens={self.lens} (--light kept) keeps it and this warning away.")

    def network_input(self, X: np.ndarray) -> Tensor:
        """A part of X as the network sees it, (B, *sample_shape) in float64."""
        return torch.from_numpy(self.second(self._load(dense_rows(X, slice(None)), np.float64)))

    def _load(self, raw: np.ndarray, dtype: type = np.float32) -> np.ndarray:
        scaled = self.first(self._arrange(raw), dtype)
        return scaled if self.image_shape is None else self.lens(scaled)

    def _arrange(self, X: np.ndarray) -> np.ndarray:
        if self.image_shape is None:
            if X.ndim > 2:
                raise ValueError(f"X holds images of shape {X.shape[1:]}, but the model was fitted on rows of a table.")
            return X
        if X.ndim > 2:
            full_image_shape(X.shape[1:], self.image_shape)
        return _channels_first(X, self.image_shape)


def _hint_at_logarithms(X: Any, names: Sequence[str] | None) -> None:
    crowded = crowded_columns(X)
    if len(crowded):
        said = ", ".join(_called(names, column) for column in crowded[:5].tolist()) + ", …" * (len(crowded) > 5)
        warn(f"Values of {len(crowded)} of {X.shape[1]} columns are crowded at the low end ({said}), so that standardised most "
             "look alike. Amounts that span powers of ten usually cluster better as logarithms: np.log1p of these columns.")


def _channels_first(X: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    return np.moveaxis(X.reshape(len(X), *shape), -1, 1)


def full_image_shape(sample_shape: tuple[int, ...], given: Sequence[int] | None) -> tuple[int, int, int] | None:
    """(h, w, channels) of samples that are flat rows or images themselves; None for a table."""
    if given is None and len(sample_shape) == 1:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable | None):
        raise ValueError(f"image_shape={given!r}; needed: (height, width) or (height, width, channels).")
    wanted = tuple(check_int("each side of image_shape", side, 1) for side in (sample_shape if given is None else given))
    height, width, channels = (*wanted, 1) if len(wanted) == 2 else wanted if len(wanted) == 3 else (0, 0, 0)
    allowed = {(height * width * channels,), (height, width, channels), *({(height, width)} if channels == 1 else set())}
    if sample_shape not in allowed:
        raise ValueError(f"image_shape={wanted} does not go with samples of shape {sample_shape}: it must be (height, width) "
                         "or (height, width, channels), the same for every image and in fit and predict.")
    return height, width, channels
