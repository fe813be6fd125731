"""Check samples, labels and ids of any kind, and combine them into a Dataset."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..utils.values import is_missing
from .dataset import Dataset, Samples
from .errors import DataError
from .formats.arrays import NUMERIC


def assemble(*, samples: Any, labels: Any = None, ids: Any = None, split: Any = None,
             feature_names: tuple[str, ...] | None = None, max_value: float | None = None,
             name: str, files: tuple[str, ...]) -> Dataset:
    """Build a Dataset; errors name its first file, or `name` if there is none."""
    where = files[0] if files else name
    checked, image_shape = _layout(samples, where)
    integers = None if labels is None else as_integers(np.asarray(labels), where)
    if split is not None:
        check_split(split, where)
    depths = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}
    return Dataset(
        samples=checked,
        labels=integers,
        ids=None if ids is None else as_names(np.asarray(ids), where),
        split=None if split is None else np.asarray(split).astype(np.uint8),
        feature_names=feature_names,
        name=name,
        image_shape=image_shape,
        n_clusters=None if integers is None else len(np.unique(integers)),
        max_value=depths.get(checked.dtype, 1.0) if max_value is None else max_value,
        files=files,
    )


def _layout(samples: Any, where: str) -> tuple[Samples, tuple[int, int, int] | None]:
    """Return tables as (n, d), images as (n, h, w) or (n, h, w, 3) with their (c, h, w)."""
    if samples.dtype.kind not in NUMERIC:
        raise DataError(f"{where}: values of type {samples.dtype}; needed: numbers. Encode or drop "
                        "the others.")
    images = samples.ndim == 4
    if images and channels_come_first(samples.shape[1:]):
        samples = np.moveaxis(samples, 1, 3)
    if 0 in samples.shape or samples.ndim not in (2, 3, 4) or (
            images and samples.shape[3] not in (1, 3)):
        raise DataError(f"{where}: shape {samples.shape}; needed: (n, d) for a table, (n, h, w) "
                        "for grey images, (n, h, w, c) or (n, c, h, w) with 1 or 3 channels.")
    if sparse.issparse(samples):
        return sparse.csr_array(samples), None
    if samples.dtype.kind == "b":
        samples = samples.astype(np.uint8 if samples.ndim == 2 else np.float32)
    if samples.ndim == 2:
        return samples, None
    samples = samples[..., 0] if images and samples.shape[3] == 1 else samples
    height, width, *channels = samples.shape[1:]
    return samples, (channels[0] if channels else 1, height, width)


def channels_come_first(shape: tuple[int, ...]) -> bool:
    """Guess that an image of three axes is (c, h, w), as in torch, and not (h, w, c)."""
    return shape[0] in (1, 3) and shape[2] not in (1, 3)


def as_integers(labels: NDArray[Any], where: str) -> NDArray[np.int64]:
    """Return integers as they are and number other labels in sorted order."""
    if labels.dtype.kind in "OU":
        # Text such as "None" and "NA" may be the name of a class.
        missing = np.flatnonzero([is_missing(label) or not str(label).strip()
                                  for label in labels.flat])
        if len(missing):
            raise DataError(f"{where}: {len(missing)} of {labels.size} labels are missing, the "
                            f"first in row {missing[0] + 1}; fill them in, drop those rows, or do "
                            "without labels.")
    if labels.dtype.kind not in NUMERIC:
        numbers = np.unique(labels.astype(str), return_inverse=True)[1]
        return numbers.reshape(labels.shape).astype(np.int64)
    if labels.dtype.kind == "f":
        wrong = labels[(labels != np.round(labels)) | ~(np.abs(labels) < 2**63)]
        if len(wrong):
            raise DataError(f"{where}: labels are fractions, missing or infinite, such as "
                            f"{wrong[0]}; needed: integers or text.")
    return labels.astype(np.int64)


def as_names(ids: NDArray[Any], where: str) -> NDArray[Any]:
    """Return numbers and text as they are, anything else as text, which model files can store."""
    if ids.ndim != 1:
        raise DataError(f"{where}: ids of shape {ids.shape}; needed: one for each sample.")
    if ids.dtype.kind == "M":
        return np.datetime_as_string(ids, unit="auto")
    if ids.dtype.kind in "iufbU":
        return ids
    return np.array([one.decode(errors="replace") if isinstance(one, bytes) else str(one)
                     for one in ids.tolist()])


def check_split(split: Any, where: str) -> None:
    """Raise if `split` holds anything but 0 and 1."""
    if not np.isin(split, (0, 1)).all():
        raise DataError(f"{where}: `split` must be 0 (train) or 1 (test).")
