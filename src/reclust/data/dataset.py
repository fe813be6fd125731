"""The Dataset class, and `assemble`, which checks samples, labels and ids for it."""

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..utils.values import is_missing
from .errors import DataError, explain_read_errors
from .formats.arrays import NUMERIC

Samples: TypeAlias = "NDArray[Any] | sparse.csr_array"
TRAIN, TEST = 0, 1


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset:
    """Images or rows of a table with their labels, ids and description.

    Parameters
    ----------
    samples
        Images (n, h, w) or (n, h, w, c), or a table (n, d): dense, memory-mapped or sparse, or a
        DataFrame of columns that `fit` turns into numbers.
    labels, split, ids
        Classes (n,), parts (n,) with 0 for train and 1 for test, and names (n,), or None.
    name, n_clusters
        Name in messages, and number of classes if known.
    image_shape, max_value
        (c, h, w), or None for tables, and the pixel value that stands for 1.0, such as 255.
    resize_to, equalize
        Size (h, w) and histogram equalization that `prepare` applies by default.
    citation, licence, files, feature_names
        How to cite the data, its terms, the paths that were read, and names of columns.

    Examples
    --------
    >>> from reclust.data import load
    >>> load("digits")
    Dataset('digits', (1797, 8, 8) uint8, n_clusters=10)
    """

    samples: Samples
    labels: NDArray[np.int64] | None = None
    split: NDArray[np.uint8] | None = None
    ids: NDArray[Any] | None = None
    name: str = "data"
    image_shape: tuple[int, int, int] | None = None
    n_clusters: int | None = None
    max_value: float = 1.0
    resize_to: tuple[int, int] | None = None
    equalize: bool = False
    citation: str = ""
    licence: str = ""
    files: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for field in ("labels", "split", "ids"):
            values, n = getattr(self, field), len(self)
            if values is not None and values.shape != (n,):
                raise DataError(f"{self.name}: {field} of shape {values.shape}; needed: ({n},).")

    def __len__(self) -> int:
        return int(self.samples.shape[0])

    def __repr__(self) -> str:
        known = "" if self.n_clusters is None else f", n_clusters={self.n_clusters}"
        kind = getattr(self.samples, "dtype", "mixed")
        return f"Dataset({self.name!r}, {self.samples.shape} {kind}{known})"

    @property
    def images(self) -> NDArray[Any]:
        if self.image_shape is None or isinstance(self.samples, sparse.csr_array):
            raise DataError(f"{self.name} holds rows of a table, not images; use `samples`.")
        return self.samples

    @property
    def train(self) -> "Dataset":
        return self._part(TRAIN, "train")

    @property
    def test(self) -> "Dataset":
        return self._part(TEST, "test")

    def take(self, index: Any) -> "Dataset":
        """Select samples by a slice, integers or a mask, with their labels, split and ids."""
        values = {name: getattr(self, name) for name in ("samples", "labels", "split", "ids")}
        chosen: dict[str, Any] = {name: getattr(value, "iloc", value)[index]
                                  for name, value in values.items() if value is not None}
        return replace(self, **chosen)

    def rows(self, index: Any) -> NDArray[Any]:
        """Return the samples at `index` as a dense array in memory."""
        return np.asarray(dense_rows(self.samples, index))

    def _part(self, which: int, name: str) -> "Dataset":
        part = np.flatnonzero(self.split == which)
        if self.split is None or not len(part):
            raise DataError(f"{self.name} has no {name} part; give `split` (0 train, 1 test).")
        return self.take(part)


def dense_rows(samples: Any, rows: Any) -> NDArray[Any]:
    """Return some rows of an array or a sparse matrix as an array."""
    chosen = samples[rows]
    return chosen if isinstance(chosen, np.ndarray) else chosen.toarray()


def assemble(*, samples: Any, labels: Any = None, ids: Any = None, split: Any = None,
             feature_names: tuple[str, ...] | None = None, max_value: float | None = None,
             name: str, files: tuple[str, ...]) -> Dataset:
    """Build a Dataset; errors name its first file, or `name` if there is none."""
    where = files[0] if files else name
    checked, image_shape = _layout(samples, where)
    integers = None if labels is None else as_integers(np.asarray(labels), where)
    depths = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}
    return Dataset(
        samples=checked, image_shape=image_shape, labels=integers,
        ids=None if ids is None else as_names(np.asarray(ids)),
        split=None if split is None else as_split(split, where), feature_names=feature_names,
        name=name, files=files, n_clusters=None if integers is None else len(np.unique(integers)),
        max_value=max_value or depths.get(getattr(checked, "dtype", None), 1.0))


def _layout(samples: Any, where: str) -> tuple[Samples, tuple[int, int, int] | None]:
    """Return tables as (n, d), images as (n, h, w) or (n, h, w, 3) with their (c, h, w)."""
    if hasattr(samples, "iloc"):
        return samples, None
    if samples.dtype.kind not in NUMERIC:
        raise DataError(f"{where}: values of type {samples.dtype}; needed: numbers.")
    images = samples.ndim == 4
    if images and channels_come_first(samples.shape[1:]):
        samples = np.moveaxis(samples, 1, 3)
    if 0 in samples.shape or samples.ndim not in (2, 3, 4) or (
            images and samples.shape[3] not in (1, 3)):
        raise DataError(f"{where}: shape {samples.shape}; needed: (n, d) for a table, (n, h, w) "
                        "for gray images, (n, h, w, c) or (n, c, h, w) with 1 or 3 channels.")
    if sparse.issparse(samples):
        with explain_read_errors(where):
            if hasattr(samples, "indptr"):  # a wrong index would write anywhere in memory
                samples.check_format()
            return sparse.csr_array(samples), None
    if samples.dtype.kind == "b":
        samples = samples.astype(np.uint8 if samples.ndim == 2 else np.float32)
    if samples.ndim == 2:
        return samples, None
    height, width, channels = (*samples.shape[1:], 1)[:3]
    return samples[..., 0] if images and channels == 1 else samples, (channels, height, width)


def channels_come_first(shape: tuple[int, ...]) -> bool:
    """Guess that an image of three axes is (c, h, w), as in torch, and not (h, w, c)."""
    return shape[0] in (1, 3) and shape[2] not in (1, 3)


def as_integers(labels: NDArray[Any], where: str) -> NDArray[np.int64]:
    """Return integers as they are and number other labels in sorted order."""
    if labels.dtype.kind in "OU":
        # Text such as "None" and "NA" may be the name of a class.
        missing = np.flatnonzero([is_missing(x) or not str(x).strip() for x in labels.flat])
        if len(missing):
            raise DataError(f"{where}: {len(missing)} of {labels.size} labels are missing, the "
                            f"first in row {missing[0] + 1}; fill them in or drop those rows.")
    if labels.dtype.kind not in NUMERIC:
        numbers = np.unique(as_text(labels), return_inverse=True)[1]
        return numbers.reshape(labels.shape).astype(np.int64)
    if labels.dtype.kind == "f":
        wrong = labels[(labels != np.round(labels)) | ~(np.abs(labels) < 2**63)]
        if len(wrong):
            raise DataError(f"{where}: labels are fractions, missing or infinite, such as "
                            f"{wrong[0]}; needed: integers or text.")
    return labels.astype(np.int64)


def as_names(ids: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as they are, anything else as text, which model files can store."""
    return ids if ids.dtype.kind in NUMERIC else as_text(ids)


def as_text(values: NDArray[Any]) -> NDArray[Any]:
    """Return strings as objects: in a fixed width all would be as long as the longest."""
    if values.dtype.kind == "M":
        values = np.datetime_as_string(values, unit="auto")
    text = [value.decode(errors="replace") if isinstance(value, bytes) else str(value)
            for value in values.ravel().tolist()]
    return np.array(text, dtype=object).reshape(values.shape)


def as_split(split: Any, where: str) -> NDArray[np.uint8]:
    if not np.isin(split, (0, 1)).all():
        raise DataError(f"{where}: `split` must be 0 (train) or 1 (test).")
    return np.asarray(split).astype(np.uint8)
