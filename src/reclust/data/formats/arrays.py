"""NumPy's own files: `.npy` as a memory map, `.npz` as a dict of arrays; no pickles, no bombs, whole or not at all."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import DataError, reading
from .archives import allowance, open_zip

NUMERIC = "biuf"
_TEXT = "US"
_COMPRESSED = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array}


def map_npy(path: Path) -> NDArray[Any]:
    """The numeric array of a `.npy` file, mapped into memory and read as it is used."""
    with reading(path), open(path, "rb") as stream:
        shape, fortran, dtype = _header(stream, str(path))
        _check(shape, dtype, path.stat().st_size - stream.tell(), where=str(path), kinds=NUMERIC)
        order = "F" if fortran else "C"
        return np.memmap(path, dtype=dtype, mode="r", offset=stream.tell(), shape=shape, order=order)  # type: ignore[call-overload,no-any-return]


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of a `.npz` file, numbers or texts."""
    with open_zip(path, limit=allowance(path)) as members:
        for name in members.names:
            if not name.endswith(".npy"):
                raise DataError(f"{path} holds {name!r}, which is not an array; is it a .npz file, and whole?")
        return {
            name.removesuffix(".npy"): _parse(members.read(name), where=f"{path}: {name}") for name in members.names
        }


def is_sparse(arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Whether these are the arrays of a sparse matrix, as scipy.sparse.save_npz names them."""
    return {"format", "shape", "data"} <= arrays.keys() and not arrays.keys().isdisjoint({"indices", "row", "offsets"})


def sparse_rows(arrays: Mapping[str, NDArray[Any]], path: Path) -> sparse.csr_array:
    """The sparse matrix in these arrays of the file `path`, its indices checked, as SciPy's own reader does not."""
    with reading(path):
        kind, shape = str(arrays["format"].astype("U")), tuple(arrays["shape"].tolist())
        if 8 * max(shape) > allowance(path):  # SciPy makes room for all rows, also for those that the file does not hold
            raise DataError(f"{path} is refused: shape {shape} is far more than its own size allows.")
        if kind in _COMPRESSED:
            made = _COMPRESSED[kind]((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
            made.check_format(full_check=True)
        elif kind == "coo":
            made = sparse.coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape=shape)
        elif kind == "dia":
            made = sparse.dia_array((arrays["data"], arrays["offsets"]), shape=shape)
        else:
            raise DataError(f"{path} holds a sparse matrix of the format {kind!r}; convert it with .tocsr() and save it again.")
        return sparse.csr_array(made)


def _parse(content: bytes, *, where: str) -> NDArray[Any]:
    with reading(where):
        stream = io.BytesIO(content)
        shape, fortran, dtype = _header(stream, where)
        _check(shape, dtype, len(content) - stream.tell(), where=where, kinds=NUMERIC + _TEXT)
        array = np.frombuffer(content, dtype, count=math.prod(shape), offset=stream.tell())
        return array.reshape(shape, order="F" if fortran else "C").copy()  # writable, as torch wants it


def _header(stream: Any, where: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise DataError(f"{where} is a .npy file of version {version}; save it again with numpy.save, as numbers.")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    return shape, fortran, dtype


def _check(shape: tuple[int, ...], dtype: np.dtype[Any], size: int, *, where: str, kinds: str) -> None:
    if dtype.kind not in kinds:
        raise DataError(f"{where} holds {dtype} values; needed: numbers. Convert them and save again.")
    # More bytes than the header says are as suspicious as fewer: one flipped digit of a shape would give half a set.
    if min(shape, default=1) < 1 or math.prod(shape) * dtype.itemsize != size:
        raise DataError(f"{where} is empty, truncated or corrupt: shape {shape} {dtype} does not fit its {size} bytes.")
