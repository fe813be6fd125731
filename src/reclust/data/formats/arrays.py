"""Files of arrays: `.npy` (memory-mapped), `.npz` (also a SciPy sparse matrix) and HDF5."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...utils.exceptions import require
from ..errors import check_size, explain_read_errors

NUMERIC = "biuf"  # kinds of dtype that hold numbers


def map_npy(path: Path) -> NDArray[Any]:
    with explain_read_errors(path):
        return np.lib.format.open_memmap(path, mode="r")


def read_npz(path: Path) -> dict[str, NDArray[Any]] | sparse.csr_array:
    """Read the arrays of a `.npz` file, or the matrix that `scipy.sparse.save_npz` wrote."""
    with explain_read_errors(path), np.load(path, allow_pickle=False) as archive:
        names, size = set(archive.files), path.stat().st_size
        check_size(path, sum(entry.file_size for entry in archive.zip.infolist()), size)
        if {"format", "shape", "data"} <= names and {"indices", "row", "offsets"} & names:
            check_size(path, 8 * int(archive["shape"].max()), size)
            return sparse.csr_array(sparse.load_npz(path))
        return {name: archive[name] for name in archive.files}


@contextmanager
def open_hdf5(path: Path) -> Iterator[dict[str, Any]]:
    """Open an HDF5 file and yield its arrays by their full names, such as "train/data"."""
    h5py = require("h5py", purpose="Reading HDF5 files")
    with explain_read_errors(path), h5py.File(path, "r") as file:
        names: list[str] = []
        file.visit(names.append)
        yield {name: file[name] for name in names if hasattr(file[name], "dtype")}


def load_array(array: Any) -> NDArray[Any]:
    """Load an array of numbers or text, which HDF5 stores as objects."""
    if not isinstance(array, np.ndarray):
        path = array.file.filename
        size, start = os.path.getsize(path), array.id.get_offset()
        check_size(path, array.nbytes, size)
        if array.dtype.kind == "O" and start is not None:  # a length, and where the text is
            stored = np.fromfile(path, "<u4, <u8, <u4", array.size, offset=start)
            check_size(path, int(stored["f0"].sum(dtype=np.int64)), size)
    return np.asarray(array.asstr()[()] if array.dtype.kind == "O" else array[()])
