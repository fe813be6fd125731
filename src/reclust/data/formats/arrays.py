"""Files of arrays: `.npy` (memory-mapped), `.npz` (also a SciPy sparse matrix) and HDF5."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...utils.exceptions import require
from ..errors import DataError, check_size, explain_read_errors, listed

NUMERIC = "biuf"  # kinds of dtype that hold numbers
_DEPTH = 50
_CHUNK = 2**24  # bytes of a chunk of text, which is kept while parts of it are read


def map_npy(path: Path) -> NDArray[Any]:
    with explain_read_errors(path):
        return np.lib.format.open_memmap(path, mode="r")


def read_npz(path: Path) -> dict[str, NDArray[Any]] | sparse.sparray:
    """Read the arrays of a `.npz` file, or the matrix that `scipy.sparse.save_npz` wrote."""
    with explain_read_errors(path), np.load(path, allow_pickle=False) as archive:
        names, size = set(archive.files), path.stat().st_size
        check_size(path, sum(entry.file_size for entry in archive.zip.infolist()), size)
        if {"format", "shape", "data"} <= names and {"indices", "row", "offsets"} & names:
            check_size(path, 8 * int(archive["shape"].max()), size)
            return sparse.load_npz(path)
        return {name: archive[name] for name in archive.files}


@contextmanager
def open_hdf5(path: Path) -> Iterator[dict[str, Any]]:
    """Open an HDF5 file and yield its arrays by their full names, such as "train/data"."""
    h5py = require("h5py", purpose="Reading HDF5 files")
    with explain_read_errors(path), h5py.File(path, "r", rdcc_nbytes=_CHUNK) as file:
        links: dict[str, Any] = {}

        def visit(name: str, link: Any) -> bool | None:
            links[name] = link
            return name.count("/") > _DEPTH or None  # which are looked up from the first group

        if file.visititems_links(visit):
            raise DataError(f"{path}: groups lie in each other more than {_DEPTH} deep.")
        objects = {name: file[name] for name, link in links.items()
                   if isinstance(link, h5py.HardLink)}
        arrays = {name: found for name, found in objects.items() if isinstance(found, h5py.Dataset)}
        outside = [name for name, link in links.items() if isinstance(link, h5py.ExternalLink)]
        outside += [name for name, found in arrays.items() if found.is_virtual or found.external]
        if outside:
            raise DataError(f"{path} takes {listed(map(repr, outside))} from other files (external "
                            "or virtual data): save the arrays themselves in one file.")
        yield arrays


def bytes_of(array: Any) -> int:
    """Return the size of an array of HDF5, of which a whole chunk is read at least."""
    return int(max(array.nbytes, array.dtype.itemsize * math.prod(array.chunks or ())))


def load_array(array: Any) -> NDArray[Any]:
    """Load an array of numbers or text, which HDF5 stores as objects."""
    if isinstance(array, np.ndarray):
        return array
    path, parts, length = array.file.filename, [], 0
    size = os.path.getsize(path)
    check_size(path, bytes_of(array), size)
    if array.dtype.kind != "O" or not array.ndim:
        return np.asarray(array[()])
    if array.chunks and 16 * math.prod(array.chunks) > _CHUNK:
        raise DataError(f"{path}: {array.name} holds more than {_CHUNK // 16} texts in a chunk; "
                        "save it in smaller chunks.")
    step = max(16, 2**26 // size)  # each text may be as long as the file
    for start in range(0, len(array), step):
        parts.append(array.asstr()[start : start + step])
        length += sum(map(len, parts[-1].flat))
        check_size(path, length, size, times=1)  # texts are not compressed
    return np.concatenate(parts)
