"""Sets of gray images: MNIST and its variants, USPS, OPTDIGITS, and `digits` of scikit-learn."""

import gzip
import io
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, explain_read_errors
from .known_set import Reader, SetPart

_OPTDIGITS_FILES = ("optdigits.tra", "optdigits.tes")


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an idx file of bytes: 0, 0, 8, the number of axes, their lengths, the values."""
    with explain_read_errors(path):
        content = gzip.decompress(path.read_bytes())
        axes = content[3]
        shape = struct.unpack_from(f">{axes}I", content, 4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def read_libsvm(path: Path) -> SetPart:
    """Read lines "label index:value …" with labels 1..10 and values -1..1 at 1..256 (absent: 0)."""
    from sklearn.datasets import load_svmlight_file  # slow to import

    with explain_read_errors(path):
        values, labels = load_svmlight_file(str(path), n_features=256, dtype=np.float32,
                                            zero_based=False)
        pixels = (values.toarray() + 1) / 2
        if not (pixels.min() >= 0 and pixels.max() <= 1):  # also catches NaN
            raise DataError(f"{path}: pixels are {pixels.min()}..{pixels.max()}; needed: 0..1.")
        images = (pixels * 255).astype(np.uint8)  # truncated, as in the usual copies of USPS
        return SetPart(images.reshape(-1, 16, 16), labels.astype(np.int64) - 1)


def _parse_optdigits(path: Path, stream: Any = None) -> SetPart:
    """Parse lines of 64 counts 0..16 and a label 0..9."""
    with explain_read_errors(path):
        rows = np.loadtxt(stream or path, delimiter=",", dtype=np.int64, ndmin=2)
        return SetPart(rows[:, :64].astype(np.uint8).reshape(-1, 8, 8), rows[:, 64])


def _read_optdigits_zip(path: Path) -> list[SetPart]:
    with explain_read_errors(path), zipfile.ZipFile(path) as archive:
        return [_parse_optdigits(path, io.BytesIO(archive.read(name))) for name in _OPTDIGITS_FILES]


def _read_digits(_: Sequence[Path]) -> list[SetPart]:
    from sklearn.datasets import load_digits  # slow to import

    digits = load_digits()
    return [SetPart(digits.images.astype(np.uint8), digits.target)]


# Functions that read each form in which a set is distributed.
READERS: dict[str, tuple[Reader, ...]] = {
    **dict.fromkeys(("mnist", "fmnist", "kmnist"), (lambda paths: [
        SetPart(*map(read_idx, part)) for part in (paths[:2], paths[2:])],)),
    "usps": (lambda paths: [read_libsvm(path) for path in paths],),
    "optdigits": (lambda paths: [_parse_optdigits(path) for path in paths],
                  lambda paths: _read_optdigits_zip(paths[0])),
    "digits": (_read_digits,)}
