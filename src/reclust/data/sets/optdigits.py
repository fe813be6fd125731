"""OPTDIGITS (two comma-separated files of the UCI repository), and `digits` of scikit-learn."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import explain_read_errors
from .download import RemoteFile
from .known_set import Form, NamedSet, SetPart

_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/optdigits/"
_ZIP = "optical+recognition+of+handwritten+digits.zip"
_PARTS = {
    "optdigits.tra": "e1b683cc211604fe8fd8c4417e6a69f31380e0c61d4af22e93cc21e9257ffedd",
    "optdigits.tes": "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8",
}
_CITATION = ("E. Alpaydin, C. Kaynak. Optical Recognition of Handwritten Digits. UCI Machine "
             "Learning Repository, 1998. https://doi.org/10.24432/C50P49")


def _parse(stream: Any) -> SetPart:
    """Parse lines of 64 counts 0..16 and a label 0..9."""
    rows = np.loadtxt(stream, delimiter=",", dtype=np.int64, ndmin=2)
    return SetPart(rows[:, :64].astype(np.uint8).reshape(-1, 8, 8), rows[:, 64])


def _read_plain(paths: Sequence[Path]) -> list[SetPart]:
    parts = []
    for path in paths:
        with explain_read_errors(path):
            parts.append(_parse(path))
    return parts


def _read_zip(paths: Sequence[Path]) -> list[SetPart]:
    with explain_read_errors(paths[0]), zipfile.ZipFile(paths[0]) as archive:
        return [_parse(io.BytesIO(archive.read(name))) for name in _PARTS]


def _read_embedded(_: Sequence[Path]) -> list[SetPart]:
    from sklearn.datasets import load_digits  # slow to import

    digits = load_digits()
    return [SetPart(digits.images.astype(np.uint8), digits.target)]


OPTDIGITS = NamedSet(
    name="optdigits",
    image_shape=(1, 8, 8),
    forms=(
        Form(tuple(RemoteFile(name, (_URL + name,), f"sha256:{sha256}")
                   for name, sha256 in _PARTS.items()), _read_plain),
        Form((RemoteFile(_ZIP, ("https://archive.ics.uci.edu/static/public/80/" + _ZIP,)),),
             _read_zip),
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
