"""USPS: bzip2-packed libsvm lines with values in [-1, 1], or an HDF5 file with [0, 1]."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, explain_read_errors
from ..formats.arrays import open_hdf5
from .download import RemoteFile
from .known_set import Form, NamedSet, SetPart

_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"


def read_libsvm(path: Path) -> SetPart:
    """Read lines "label index:value …" with labels 1..10 and indices 1..256 (absent: 0)."""
    from sklearn.datasets import load_svmlight_file  # slow to import

    with explain_read_errors(path):
        values, labels = load_svmlight_file(str(path), n_features=256, dtype=np.float32,
                                            zero_based=False)
        return SetPart(_to_bytes((values.toarray() + 1) / 2, path), labels.astype(np.int64) - 1)


def read_usps_hdf5(path: Path) -> list[SetPart]:
    """Read the groups `train` and `test`, each with `data` (n, 256) and `target` (n,)."""
    with open_hdf5(path) as file:
        return [SetPart(_to_bytes(file[f"{part}/data"][()].astype(np.float32), path),
                        file[f"{part}/target"][()].astype(np.int64)) for part in ("train", "test")]


def _to_bytes(values: NDArray[np.floating[Any]], path: Path) -> NDArray[np.uint8]:
    """Scale [0, 1] to 0..255, truncating like everyone else's copy of USPS."""
    if not (values.min() >= 0 and values.max() <= 1):  # also catches NaN
        raise DataError(f"{path}: scaled pixels are {values.min()}..{values.max()}; needed: 0..1.")
    return (values * 255).astype(np.uint8).reshape(-1, 16, 16)


SETS = (NamedSet(
    name="usps",
    image_shape=(1, 16, 16),
    forms=(
        Form((RemoteFile("usps.bz2", (_URL + "usps.bz2",), "md5:ec16c51db3855ca6c91edd34d0e9b197"),
              RemoteFile("usps.t.bz2", (_URL + "usps.t.bz2",),
                         "md5:8ea070ee2aca1ac39742fdd1ef5ed118")),
             lambda paths: [read_libsvm(path) for path in paths]),
        Form((RemoteFile("usps.h5"),), lambda paths: read_usps_hdf5(paths[0]), exact=False),
    ),
    counts=(7_291, 2_007),
    histogram=(1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821),
    total=155_814_423,
    folders=("usps", "."),
    citation="J. J. Hull. A database for handwritten text recognition research. IEEE Transactions "
             "on Pattern Analysis and Machine Intelligence 16(5), 1994.",
    licence="unclear; research use",
),)
