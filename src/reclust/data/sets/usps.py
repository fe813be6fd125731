"""USPS: bzip2-packed libsvm lines with values in [-1, 1], or an HDF5 file with values in [0, 1]."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, reading
from ..formats.archives import bunzip
from ..formats.hdf5 import open_hdf5
from .download import RemoteFile
from .known_set import Form, NamedSet, Part

_PIXELS = 256
_LIMIT = 128 << 20
_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"


def read_libsvm(path: Path) -> Part:
    """Lines "label index:value …" with labels 1..10, indices 1..256 (absent: 0) and values in [-1, 1]."""
    content = bunzip(path, limit=_LIMIT)
    lines = [line for line in content.split(b"\n") if line.strip()]
    labels, values = np.empty(len(lines), np.int64), np.zeros((len(lines), _PIXELS), np.float32)
    with reading(path):
        for row, line in enumerate(lines):
            label, _, pairs = line.partition(b" ")
            flat = np.array([float(item) for item in pairs.replace(b":", b" ").split()]).reshape(-1, 2)
            index = flat[:, 0].astype(np.int64)
            if index.size and (index.min() < 1 or index.max() > _PIXELS or len(set(index.tolist())) != len(index)):
                raise DataError(f"{path}, line {row + 1}: indices must be different and 1..{_PIXELS}.")
            labels[row] = int(label) - 1
            values[row, index - 1] = flat[:, 1]
    return Part(_to_bytes((values + 1) / 2, path), labels)


def read_usps_hdf5(path: Path) -> list[Part]:
    """Groups `train` and `test`, each with `data` (n, 256) in [0, 1] and `target` (n,)."""
    with open_hdf5(path) as file:
        return [
            Part(
                _to_bytes(file.read(f"{part}/data").astype(np.float32), path), _whole(file.read(f"{part}/target"), path)
            )
            for part in ("train", "test")
        ]


def _to_bytes(values: NDArray[np.floating[Any]], path: Path) -> NDArray[np.uint8]:
    """[0, 1] to 0..255, cutting off rather than rounding: the bytes everyone else computes with."""
    if not len(values) or values.ndim != 2 or values.shape[1] != _PIXELS:
        raise DataError(f"{path}: values of shape {values.shape}; needed: (n, {_PIXELS}).")
    if not (values.min() >= 0 and values.max() <= 1):  # written so that NaN fails
        raise DataError(f"{path}: pixels are {values.min()}..{values.max()} once scaled; needed: 0..1.")
    return (values * 255).astype(np.uint8).reshape(-1, 16, 16)


def _whole(labels: NDArray[Any], path: Path) -> NDArray[np.int64]:
    whole = labels.astype(np.int64)
    if not np.array_equal(whole, labels):
        raise DataError(f"{path}: labels of type {labels.dtype} are not whole numbers.")
    return whole


_LIBSVM = Form(
    (
        RemoteFile("usps.bz2", (_URL + "usps.bz2",), "md5:ec16c51db3855ca6c91edd34d0e9b197"),
        RemoteFile("usps.t.bz2", (_URL + "usps.t.bz2",), "md5:8ea070ee2aca1ac39742fdd1ef5ed118"),
    ),
    lambda paths: [read_libsvm(path) for path in paths],
)
_HDF5 = Form((RemoteFile("usps.h5"),), lambda paths: read_usps_hdf5(paths[0]), exact=False)

USPS = NamedSet(
    name="usps",
    image_shape=(1, 16, 16),
    forms=(_LIBSVM, _HDF5),
    counts=(7_291, 2_007),
    histogram=(1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821),
    total=155_814_423,
    folders=("usps", "."),
    citation="J. J. Hull. A database for handwritten text recognition research. IEEE Transactions on Pattern Analysis "
    "and Machine Intelligence 16(5), 1994.",
    licence="unclear; research use",
)
SETS = (USPS,)
