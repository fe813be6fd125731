"""NumPy's own files: `.npy` as a memory map, `.npz` as a dict of arrays; no pickles, no bombs, whole or not at all."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .archives import allowance, open_zip
from .errors import DataError, reading

NUMERIC = "biuf"
_TEXT = "US"


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
