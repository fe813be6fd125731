"""HDF5 files: plain arrays inside the file itself, read whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, reading, require
from .archives import allowance
from .arrays import NUMERIC


class Hdf5Arrays:
    """The arrays of an open HDF5 file by their full names, links out of the file left aside."""

    def __init__(self, file: Any, path: Path) -> None:
        self._file, self._path = file, path
        self.names: list[str] = []
        h5py = require("h5py", purpose="Reading HDF5 files")
        file.visititems(lambda name, item: self.names.append(name) if isinstance(item, h5py.Dataset) else None)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._dataset(name).shape or ())

    def read(self, name: str) -> NDArray[Any]:
        """A numeric or text array, whole."""
        dataset = self._dataset(name)
        shape, dtype = dataset.shape or (), dataset.dtype
        if math.prod(shape) * dtype.itemsize > allowance(self._path):
            raise DataError(f"{self._path}: {name} of shape {shape} is refused: far larger than its file.")
        if dtype.kind != "O" and not self._is_complete(dataset):  # texts lie elsewhere in the file
            raise DataError(
                f"{self._path}: {name} is corrupt or was never written to the end: its parts do not fit {shape}."
            )
        values = np.asarray(dataset.asstr()[()] if dtype.kind == "O" else dataset[()])
        if values.dtype.kind == "O":
            values = values.astype(str)
        if values.dtype.kind not in NUMERIC + "US" or not values.size:
            raise DataError(f"{self._path}: {name} is empty or holds {values.dtype}; needed: numbers.")
        return values

    def _is_complete(self, dataset: Any) -> bool:
        """Whether what is stored is what the shape says; HDF5 itself fills gaps with zeros and ignores a surplus."""
        if dataset.chunks is None:
            return bool(dataset.id.get_storage_size() == dataset.nbytes)
        needed = math.prod(-(-side // chunk) for side, chunk in zip(dataset.shape, dataset.chunks, strict=True))
        return bool(dataset.id.get_num_chunks() == needed)

    def _dataset(self, name: str) -> Any:
        if name not in self.names:
            raise DataError(f"{self._path} holds no array {name!r}; it holds {', '.join(self.names[:8]) or 'none'}.")
        dataset = self._file[name]
        if dataset.is_virtual or dataset.external is not None:
            raise DataError(f"{self._path}: {name} is refused: its values are in other files.")
        return dataset


@contextmanager
def open_hdf5(path: Path) -> Iterator[Hdf5Arrays]:
    """The arrays of an HDF5 file."""
    h5py = require("h5py", purpose="Reading HDF5 files")
    with reading(path), h5py.File(path, "r") as file:
        yield Hdf5Arrays(file, path)
