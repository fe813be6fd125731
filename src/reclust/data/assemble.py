"""From samples, labels and names of any kind to a Dataset, or a word about what is wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..utils.values import is_missing
from .dataset import Dataset, Samples
from .errors import DataError
from .formats.arrays import NUMERIC


def assemble(
    *, samples: Any, labels: Any = None, ids: Any = None, split: Any = None, feature_names: tuple[str, ...] | None = None,
    max_value: float | None = None, name: str, files: tuple[str, ...]
) -> Dataset:
    checked, image_shape = _layout(samples, name)
    integers = None if labels is None else as_integers(np.asarray(labels), name)
    if split is not None:
        check_split(split, name)
    bits = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}
    return Dataset(
        samples=checked,
        labels=integers,
        ids=None if ids is None else as_names(np.asarray(ids), name),
        split=None if split is None else np.asarray(split).astype(np.uint8),
        feature_names=feature_names,
        name=name,
        image_shape=image_shape,
        n_clusters=None if integers is None else len(np.unique(integers)),
        max_value=bits.get(checked.dtype, 1.0) if max_value is None else max_value,
        files=files,
    )


def _layout(samples: Any, name: str) -> tuple[Samples, tuple[int, int, int] | None]:
    """Tables as (n, d), images as (n, h, w) or (n, h, w, 3), with their (c, h, w)."""
    if samples.dtype.kind not in NUMERIC:
        raise DataError(
            f"{name}: values of type {samples.dtype}; needed: numbers. Encode or drop what is not a number."
        )
    if 0 in samples.shape or samples.ndim not in (2, 3, 4):
        raise DataError(
            f"{name}: shape {samples.shape}; needed: (n, d) for a table, (n, h, w) or (n, h, w, c) for images."
        )
    if sparse.issparse(samples):
        return sparse.csr_array(samples), None
    if samples.dtype.kind == "b":
        samples = samples.astype(np.uint8) if samples.ndim == 2 else samples.astype(np.float32)
    if samples.ndim == 2:
        return samples, None
    if samples.ndim == 4:
        if channels_come_first(samples.shape[1:]):
            samples = np.moveaxis(samples, 1, 3)
        if samples.shape[3] not in (1, 3):
            raise DataError(f"{name}: images of shape {samples.shape[1:]}; needed: 1 or 3 channels, first or last.")
        samples = samples[..., 0] if samples.shape[3] == 1 else samples
    height, width, *channels = samples.shape[1:]
    return samples, (channels[0] if channels else 1, height, width)


def channels_come_first(shape: tuple[int, ...]) -> bool:
    """Whether images of three axes seem to be (channels, h, w), as torch has them, and not (h, w, channels)."""
    return shape[0] in (1, 3) and shape[2] not in (1, 3)


def as_integers(labels: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Labels as they are if they are whole numbers, else numbered in sorted order; there must be one for each sample."""
    absent = np.flatnonzero([_is_absent(label) for label in labels.flat] if labels.dtype.kind in "OU" else [])
    if len(absent):
        raise DataError(
            f"{name}: {len(absent)} of {labels.size} labels are missing, the first in row {absent[0] + 1}; fill them in, "
            "drop those rows, or do without labels."
        )
    if labels.dtype.kind in "iub":
        return labels.astype(np.int64)
    if labels.dtype.kind == "f":
        wrong = labels[(labels != np.round(labels)) | ~(np.abs(labels) < 2**63)]
        if len(wrong):
            raise DataError(f"{name}: labels are fractions, missing, infinite or of more than 64 bits, such as {wrong[0]}; "
                            "needed: whole numbers or texts.")
        return labels.astype(np.int64)
    return np.unique(labels.astype(str), return_inverse=True)[1].reshape(labels.shape).astype(np.int64)


def _is_absent(label: Any) -> bool:
    """Empty text or nothing; other texts may be names of classes, "None" and "NA" too."""
    return is_missing(label) or str(label).strip() == ""


def as_names(ids: NDArray[Any], name: str) -> NDArray[Any]:
    """Numbers and texts as they are, anything else as text: model files hold no other kinds."""
    if ids.ndim != 1:
        raise DataError(f"{name}: ids of shape {ids.shape}; needed: one for each sample.")
    if ids.dtype.kind == "M":
        return np.datetime_as_string(ids, unit="auto")
    if ids.dtype.kind in "iufbU":
        return ids
    return np.array([one.decode(errors="replace") if isinstance(one, bytes) else str(one) for one in ids.tolist()])


def check_split(split: Any, name: str) -> None:
    if not np.isin(split, (0, 1)).all():
        raise DataError(f"{name}: `split` must be 0 (train) or 1 (test).")
