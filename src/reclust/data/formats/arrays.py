"""NumPy's files: `.npy` (memory-mapped) and `.npz`, with arrays or a SciPy sparse matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import explain_read_errors

NUMERIC = "biuf"
"""Kinds of dtype that hold numbers."""


def map_npy(path: Path) -> NDArray[Any]:
    """Map the array of a `.npy` file into memory."""
    with explain_read_errors(path):
        return np.lib.format.open_memmap(path, mode="r")


def read_npz(path: Path) -> dict[str, NDArray[Any]] | sparse.csr_array:
    """Read the arrays of a `.npz` file, or the matrix that `scipy.sparse.save_npz` wrote."""
    with explain_read_errors(path), np.load(path, allow_pickle=False) as archive:
        if {"format", "shape", "data"} <= set(archive.files) and \
                {"indices", "row", "offsets"} & set(archive.files):
            return sparse.csr_array(sparse.load_npz(path))
        return {name: archive[name] for name in archive.files}
