"""Files of arrays: `.npy` (memory-mapped), `.npz` (also a SciPy sparse matrix) and HDF5."""

import math
import os
import zlib
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
_DEPTH, _NAMES = 50, 10_000  # most levels and names in a file of HDF5
_REFERENCE, _DEFLATE, _SHUFFLE = 16, 1, 2  # bytes of a text's place, and numbers of HDF5's filters
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
            if archive["format"].tobytes() not in (b"csr", b"csc", b"coo"):
                raise DataError(f"{path}: save the matrix as CSR, CSC or COO.")
            check_size(path, 8 * int(archive["shape"].max()), size)
            return sparse.load_npz(path)
        arrays = {name: archive[name] for name in archive.files}
        check_size(path, sum(map(_object_bytes, arrays.values())), size)
        return arrays


@contextmanager
def open_hdf5(path: Path) -> Iterator[dict[str, Any]]:
    """Open an HDF5 file and yield its arrays by their full names, such as "train/data"."""
    h5py = require("h5py", purpose="Reading HDF5 files")
    with explain_read_errors(path), h5py.File(path, "r", rdcc_nbytes=_CHUNK) as file:
        links: dict[str, Any] = {}

        def visit(name: str, link: Any) -> bool | None:
            links[name] = link  # each is looked up from the first group
            return name.count("/") > _DEPTH or len(links) > _NAMES or None

        if file.visititems_links(visit):
            raise DataError(f"{path} is over {_DEPTH} levels deep or has over {_NAMES} arrays.")
        arrays = {name: found for name, link in links.items() if isinstance(link, h5py.HardLink)
                  and isinstance(found := file[name], h5py.Dataset)}
        outside = [name for name, link in links.items() if isinstance(link, h5py.ExternalLink)]
        outside += [name for name, found in arrays.items() if found.is_virtual or found.external]
        if outside:
            raise DataError(f"{path} takes {listed(map(repr, outside))} from other files (external "
                            "or virtual data): save the arrays themselves in one file.")
        yield arrays


def bytes_of(array: Any) -> int:
    """Return the size of an array of HDF5, of which a whole chunk is read at least."""
    return int(max(array.nbytes, array.dtype.itemsize * math.prod(array.chunks or ()),
                   _object_bytes(array)))


def _object_bytes(array: Any) -> int:
    """Return what texts and dates take in memory, each as an object of Python."""
    return 0 if array.dtype.kind in NUMERIC else 64 * int(array.size)


def load_array(array: Any) -> NDArray[Any]:
    """Load an array of numbers or text, which HDF5 stores as objects."""
    if isinstance(array, np.ndarray):
        return array
    path, is_text = array.file.filename, array.dtype.kind == "O"
    check_size(path, bytes_of(array), os.path.getsize(path))
    if not is_text and array.dtype.kind not in NUMERIC + "S":
        raise DataError(f"{path}: {array.name} holds neither numbers nor text.")
    if is_text:
        check_texts(array)
    return np.asarray((array.asstr() if is_text else array)[()])


def check_texts(array: Any) -> None:
    """Raise if the texts of an array claim to be longer than its file: they are not compressed."""
    path, claimed = array.file.filename, 0
    if array.chunks and 16 * math.prod(array.chunks) > _CHUNK:
        raise DataError(f"{path}: {array.name} holds more than {_CHUNK // 16} texts in a chunk; "
                        "save it in smaller chunks.")
    for references in _references(array):
        lengths = np.frombuffer(references, "<u4", len(references) // _REFERENCE * 4)[::4]
        claimed += int(lengths.sum(dtype=np.int64))
        check_size(path, claimed, os.path.getsize(path), times=1)


def _references(array: Any) -> Iterator[bytes]:
    """Yield what a dataset of texts stores: HDF5 makes room for the length that each one claims."""
    plan, stored = array.id.get_create_plist(), array.id
    filters = [plan.get_filter(i)[0] for i in range(plan.get_nfilters())]
    address, _ = array.file.id.get_create_plist().get_sizes()
    if address + 8 != _REFERENCE or not plan.get_layout() or {*filters} - {_DEFLATE, _SHUFFLE}:
        raise DataError(f"{array.file.filename}: texts of {array.name} are stored in an unusual "
                        "way: save them without compression, or with gzip.")
    if array.chunks is None:
        with open(array.file.filename, "rb") as file:
            file.seek(stored.get_offset() or 0)
            yield file.read(_REFERENCE * array.size if stored.get_offset() else 0)
    for i in range(stored.get_num_chunks() if array.chunks else 0):
        skipped, content = stored.read_direct_chunk(stored.get_chunk_info(i).chunk_offset)
        for j, kind in reversed([*enumerate(filters)]):
            if not skipped >> j & 1:
                content = (zlib.decompressobj().decompress(content, _CHUNK) if kind == _DEFLATE else
                           np.frombuffer(content, "u1").reshape(_REFERENCE, -1).T.tobytes())
        yield content
