"""OPTDIGITS: the two comma-separated files of the UCI repository; and `digits`, its test part inside scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import DataError, reading
from ..formats.archives import open_zip, read_file
from .download import RemoteFile
from .known_set import Form, NamedSet, Part

_LIMIT = 16 << 20
_PARTS = ("optdigits.tra", "optdigits.tes")
_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/optdigits/"
_ZIP = "optical+recognition+of+handwritten+digits.zip"


def parse_optdigits(content: bytes, where: str) -> Part:
    """Lines of 64 counts 0..16 and a label 0..9."""
    with reading(where):
        rows = np.array([line.split(b",") for line in content.split()], dtype=np.int64)
    if rows.ndim != 2 or rows.shape[1] != 65:
        raise DataError(f"{where}: rows of shape {rows.shape}; needed: 64 pixels and a label a line.")
    if rows.min() < 0 or rows[:, :64].max() > 16:
        raise DataError(f"{where}: values {rows.min()}..{rows[:, :64].max()}; needed: 0..16.")
    return Part(rows[:, :64].astype(np.uint8).reshape(-1, 8, 8), rows[:, 64])


def _read_plain(paths: Sequence[Path]) -> list[Part]:
    return [parse_optdigits(read_file(path, limit=_LIMIT), str(path)) for path in paths]


def _read_zip(paths: Sequence[Path]) -> list[Part]:
    with open_zip(paths[0], limit=_LIMIT) as members:
        return [parse_optdigits(members.read(name), f"{paths[0]}: {name}") for name in _PARTS]


def _read_embedded(_: Sequence[Path]) -> list[Part]:
    from sklearn.datasets import (
        load_digits,  # imported here: scikit-learn's data sets take a while to import
    )

    digits = load_digits()
    return [Part(digits.images.astype(np.uint8), digits.target)]


_CITATION = "E. Alpaydin, C. Kaynak. Optical Recognition of Handwritten Digits. UCI Machine Learning Repository, 1998. "
_CITATION += "https://doi.org/10.24432/C50P49"

OPTDIGITS = NamedSet(
    name="optdigits",
    image_shape=(1, 8, 8),
    forms=(
        Form(
            (
                RemoteFile(
                    _PARTS[0],
                    (_URL + _PARTS[0],),
                    "sha256:e1b683cc211604fe8fd8c4417e6a69f31380e0c61d4af22e93cc21e9257ffedd",
                ),
                RemoteFile(
                    _PARTS[1],
                    (_URL + _PARTS[1],),
                    "sha256:6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8",
                ),
            ),
            _read_plain,
        ),
        Form(
            (
                RemoteFile(
                    _ZIP,
                    ("https://archive.ics.uci.edu/static/public/80/" + _ZIP,),
                    "sha256:0d7b054fea010270e9b3f06411c654c5e59547732ad626381980baffe0a23fb0",
                ),
            ),
            _read_zip,
        ),
    ),
    counts=(3_823, 1_797),
    histogram=(554, 571, 557, 572, 568, 558, 558, 566, 554, 562),
    total=1_766_476,
    max_value=16,
    folders=("optdigits", "."),
    citation=_CITATION,
    licence="CC BY 4.0",
)
DIGITS = NamedSet(
    name="digits",
    image_shape=(1, 8, 8),
    forms=(Form((), _read_embedded),),
    counts=(1_797,),
    histogram=(178, 182, 177, 183, 181, 182, 181, 179, 174, 180),
    total=561_718,
    max_value=16,
    folders=(),
    citation=_CITATION,
    licence="CC BY 4.0",
)
SETS = (OPTDIGITS, DIGITS)
