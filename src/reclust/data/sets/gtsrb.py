"""GTSRB: five classes of the German Traffic Sign Recognition Benchmark, zips of PPM images."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ...utils.lazy import require
from ..errors import explain_read_errors
from .download import RemoteFile
from .known_set import Form, NamedSet, SetPart

CLASSES = (2, 12, 17, 18, 35)
"""The classes that the paper uses."""
_SIDE = 32
_URL = "https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/"
_FILES = {
    "GTSRB-Training_fixed.zip": "513f3c79a4c5141765e10e952eaa2478",
    "GTSRB_Final_Test_Images.zip": "c7e4e6327067d32654124b0fe9e82185",
    "GTSRB_Final_Test_GT.zip": "fe31e9c9270bbcd7b84b7f21a9d9d9e5",
}


def read_train(path: Path) -> SetPart:
    """Read `GTSRB/Training/00002/*.ppm` and so on, one folder for each class."""
    with explain_read_errors(path), zipfile.ZipFile(path) as archive:
        matches = (re.search(r"(?:^|/)Training/(\d{5})/[^/]+\.ppm$", name)
                   for name in sorted(archive.namelist()))
        return _read(archive, [(match.string, int(match[1])) for match in matches if match])


def read_test(images: Path, truth: Path) -> SetPart:
    """Read `GTSRB/Final_Test/Images/*.ppm`, with classes in another archive."""
    with explain_read_errors(truth), zipfile.ZipFile(truth) as archive:
        text = io.TextIOWrapper(archive.open("GT-final_test.csv"), encoding="ascii")
        labelled = [(f"GTSRB/Final_Test/Images/{row['Filename']}", int(row["ClassId"]))
                    for row in csv.DictReader(text, delimiter=";", skipinitialspace=True)]
    with explain_read_errors(images), zipfile.ZipFile(images) as archive:
        return _read(archive, labelled)


def _read(archive: zipfile.ZipFile, labelled: Iterable[tuple[str, int]]) -> SetPart:
    """Read the images of the chosen classes, resized with Pillow's default filter (bicubic)."""
    image = require("PIL.Image", purpose="GTSRB")
    chosen = [(name, CLASSES.index(label)) for name, label in labelled if label in CLASSES]
    images = np.empty((len(chosen), _SIDE, _SIDE, 3), np.uint8)
    for row, (name, _) in enumerate(chosen):
        with archive.open(name) as stream:
            original = image.open(stream, formats=["PPM"]).convert("RGB")
        images[row] = np.asarray(original.resize((_SIDE, _SIDE), image.Resampling.BICUBIC))
    return SetPart(images, np.array([label for _, label in chosen], dtype=np.int64),
                   np.array([name for name, _ in chosen]))


def _read_all(paths: Sequence[Path]) -> list[SetPart]:
    train, test, truth = paths
    return [read_train(train), read_test(test, truth)]


SETS = (NamedSet(
    name="gtsrb",
    image_shape=(3, _SIDE, _SIDE),
    forms=(Form(tuple(RemoteFile(name, (_URL + name,), f"md5:{md5}")
                      for name, md5 in _FILES.items()), _read_all),),
    counts=(5_280, 2_580),
    histogram=(2250, 2100, 1110, 1200, 1200),
    resize_to=(_SIDE, _SIDE),
    equalize=True,
    folders=("gtsrb", "."),
    citation="J. Stallkamp, M. Schlipsing, J. Salmen, C. Igel. Man vs. computer: benchmarking "
             "machine learning algorithms for traffic sign recognition. Neural Networks 32, 2012.",
    licence="research use with citation",
),)
