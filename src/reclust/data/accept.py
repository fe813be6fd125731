"""Everything that `fit` and `predict` take, as one value."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import assert_all_finite, check_array
from torch import Tensor
from torch.utils.data import DataLoader, Dataset as TorchDataset

from ..utils.exceptions import require, warn
from ..utils.values import check_ints
from .dataset import Dataset, as_names, channels_come_first
from .encoding import TableEncoder
from .errors import listed
from .formats.arrays import NUMERIC
from .formats.images import holds_images
from .formats.memory import as_numpy, is_arrow_or_polars, is_dataframe, is_instance
from .formats.tables import check_finite, numbers_of
from .reading import read
from .scaling import map_chunks


@dataclass(frozen=True)
class SampleSet:
    """Samples and what is known about them."""

    array: Any  # rows (n, d), dense, mapped or sparse, or images (n, h, w[, channels])
    image_shape: tuple[int, int, int] | None = None  # (h, w, channels), None for tables
    feature_names: tuple[str, ...] | None = None
    ids: np.ndarray | None = None  # names of the samples
    encoder: TableEncoder | None = None  # turned a table of mixed columns into the array
    texts: Sequence[str] | None = None  # what the rows are embeddings of

    @property
    def n_samples(self) -> int:
        return self.array.shape[0]

    @property
    def n_features(self) -> int:
        return math.prod(self.array.shape[1:])


def accept(X: Any, *, image_shape: Sequence[int] | None = None, min_samples: int = 1,
           columns: Sequence[str] | None = None, numeric: bool = False,
           encoder: TableEncoder | None = None) -> SampleSet:
    """Read and check samples: arrays, tensors, tables, sparse rows, data sets, files, folders.

    image_shape: (h, w) or (h, w, channels) of images in flat rows, and of images in files.
    columns: select these columns by name, if X comes with names. numeric: raise for other columns
    than numbers. encoder: of the fit; without one, tables of mixed columns are encoded anew.
    """
    dataset = load_input(X, image_shape)
    if dataset is None:
        array, ids, names = as_array(X), None, None
    else:
        dataset = dataset if columns is None else select_columns(dataset, columns)
        array, ids, names = dataset.samples, dataset.ids, dataset.feature_names
    if encoder is not None or is_dataframe(array):
        if not numeric:
            return _encode(array, names, ids, encoder)
        array = numbers_of(array, "X")
    if isinstance(array, np.ndarray) and array.ndim in (3, 4):
        array = _channels_last(array, image_shape)
    array = _check_numbers(array, names, min_samples)
    return SampleSet(array, full_image_shape(array.shape[1:], image_shape), names, ids)


def _encode(table: Any, names: Sequence[str] | None, ids: np.ndarray | None,
            encoder: TableEncoder | None) -> SampleSet:
    if not is_dataframe(table):
        pandas = require("pandas", purpose="Tables of mixed columns")
        wanted = len(names or encoder.names)  # type: ignore[union-attr]
        if table.shape[1:] != (wanted,):
            raise ValueError(f"X has shape {table.shape}, but the fit had {wanted} columns.")
        table = pandas.DataFrame(table, columns=names or encoder.names)  # type: ignore[union-attr]
    if encoder is None:
        encoder = TableEncoder.fit(table)
        if encoder.left_out:
            warn(f"Columns that name the rows or hold nothing to compare are left out: "
                 f"{listed(map(repr, encoder.left_out))}.")
    unique = (table[name] for name in encoder.left_out if name in table)
    named = next((cells.to_numpy() for cells in unique if cells.is_unique), None)
    return SampleSet(encoder.encode(table), None, tuple(x.name for x in encoder.features),
                     as_names(named) if ids is None and named is not None else ids, encoder)


def load_input(X: Any, image_shape: Sequence[int] | None = None) -> Dataset | None:
    """Read files and tables into a `Dataset`; return None for arrays and what resembles them."""
    if isinstance(X, Dataset):
        return X
    if isinstance(X, (str, os.PathLike)):
        return read(X, size=image_shape if holds_images(X) else None)
    if isinstance(X, DataLoader):
        return load_input(X.dataset)
    has_names = is_dataframe(X) or is_arrow_or_polars(X) or is_instance(X, "anndata", "AnnData")
    return read(X) if has_names or isinstance(X, TorchDataset) else None


def as_array(X: Any) -> Any:
    """Convert tensors and lists to arrays, masked values to NaN; leave the rest to scikit-learn."""
    if isinstance(X, Tensor):
        return as_numpy(X)
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.filled(X.astype(np.float64), np.nan)
    return np.asarray(X) if isinstance(X, (list, tuple)) else X


def select_columns(dataset: Dataset, columns: Sequence[str]) -> Dataset:
    """Select columns by name, in this order; a data set without names is left unchanged."""
    names = dataset.feature_names
    if names is None or list(names) == list(columns):
        return dataset
    place, wanted = {name: i for i, name in enumerate(names)}, set(columns)
    missing, more = ([repr(name) for name in first if name not in second]
                     for first, second in ((columns, place), (names, wanted)))
    if missing:
        raise ValueError(f"{dataset.name} lacks columns of the fit: {listed(missing)}.")
    if more:
        warn(f"{dataset.name} has columns that were not in the fit; they are ignored: "
             f"{listed(more)}.")
    samples = (numbers_of(dataset.samples[list(columns)], dataset.name)
               if is_dataframe(dataset.samples)
               else dataset.samples[:, [place[name] for name in columns]])
    return replace(dataset, samples=samples, feature_names=tuple(columns))


def _check_numbers(X: Any, names: Sequence[str] | None, min_samples: int) -> Any:
    """Return finite floats, or bytes of images; only rows may be sparse."""
    is_images = isinstance(X, np.ndarray) and X.ndim in (3, 4)
    kinds = (np.float64, np.float32) + (np.uint8,) * is_images
    try:
        if type(X) not in (np.ndarray, np.memmap) or X.dtype.kind not in NUMERIC or (
                X.ndim != 2 and not is_images) or 0 in X.shape or len(X) < min_samples:
            return check_array(X, accept_sparse="csr", dtype=kinds, allow_nd=is_images,
                               ensure_min_samples=min_samples, input_name="X")
        # `check_array` would change the filters of warnings, of which all threads share one list.
        halves = isinstance(X, np.memmap) and X.dtype == np.float16  # a file, perhaps a large one
        X = X if halves or X.dtype in kinds else X.astype(np.float64)
        for _ in map_chunks(lambda rows: assert_all_finite(
                X[rows].astype(np.float32) if halves else X[rows], input_name="X"), X):
            pass
        return X
    except ValueError:
        if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":  # name the columns
            check_finite(X, names or [f"feature {i}" for i in range(X.shape[1])], "X")
        raise


def _channels_last(X: np.ndarray, image_shape: Sequence[int] | None) -> np.ndarray:
    """Move channels from (n, channels, h, w) to the end; leave other layouts unchanged."""
    shape = X.shape[1:]
    if len(shape) == 3 and image_shape is not None:
        return np.moveaxis(X, 1, -1) if shape != tuple(image_shape) == (*shape[1:], shape[0]) else X
    if len(shape) == 3 and channels_come_first(shape):
        return np.moveaxis(X, 1, -1)
    if len(shape) == 2 and image_shape is None and max(shape) > 4 * min(shape):
        warn(f"X of shape {X.shape} is read as gray images of {shape[0]} × {shape[1]}. For series "
             f"of several channels, use X.reshape(len(X), -1); for images, image_shape={shape}.")
    # Too few rows for an image: probably channels that come first, as in torch.
    if len(shape) == 3 and shape[2] not in (1, 3) and (
            2 * shape[0] <= min(shape[1:]) or shape[0] < shape[1] == shape[2]):
        warn(f"X is read as images of {shape[0]} × {shape[1]} with {shape[2]} channels. If "
             f"channels come first, use np.moveaxis(X, 1, -1); if not, pass image_shape={shape}.")
    return X


def full_image_shape(sample_shape: tuple[int, ...],
                     image_shape: Sequence[int] | None) -> tuple[int, int, int] | None:
    """Return (h, w, channels) of images or of images in flat rows; None for a table."""
    if image_shape is None and len(sample_shape) == 1:
        return None
    sides = check_ints("image_shape", sample_shape if image_shape is None else image_shape, 1)
    height, width, channels = (*sides, 1)[:3] if len(sides) in (2, 3) else (0, 0, 0)
    shape = (height, width, channels)
    gray = {(height, width)} if channels == 1 else set()
    if sample_shape not in {(math.prod(shape),), shape, *gray}:
        raise ValueError(f"image_shape={sides} does not match samples of shape {sample_shape}: use "
                         "(height, width) or (height, width, channels).")
    return shape
