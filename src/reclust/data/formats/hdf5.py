"""HDF5 files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...utils.lazy import require
from ..errors import explain_read_errors


class Hdf5Arrays:
    """Arrays of an open HDF5 file by their full names, such as "train/data"."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.names: list[str] = []
        file.visit(lambda name: self.names.append(name) if hasattr(file[name], "dtype") else None)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._file[name].shape or ())

    def read(self, name: str) -> NDArray[Any]:
        """Load an array of numbers or text."""
        dataset = self._file[name]
        if dataset.dtype.kind == "O":
            return np.asarray(dataset.asstr()[()]).astype(str)
        return np.asarray(dataset[()])


@contextmanager
def open_hdf5(path: Path) -> Iterator[Hdf5Arrays]:
    """Open an HDF5 file for reading."""
    h5py = require("h5py", purpose="Reading HDF5 files")
    with explain_read_errors(path), h5py.File(path, "r") as file:
        yield Hdf5Arrays(file)
