"""GTSRB, the five classes of the German Traffic Sign Recognition Benchmark that the paper uses: zips of PPM images."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ..errors import DataError, reading, require
from ..formats.archives import ZipMembers, open_zip
from ..formats.images import decode
from .download import RemoteFile
from .known_set import Form, NamedSet, Part

CLASSES = (2, 12, 17, 18, 35)
_SIDE = 32
_LIMIT = 2 << 30
_URL = "https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/"


def read_train(path: Path) -> Part:
    """`GTSRB/Training/00002/*.ppm` and so on, a folder a class."""
    with open_zip(path, limit=_LIMIT) as members:
        found = []
        for name in sorted(members.names):
            if match := re.search(r"(?:^|/)Training/(\d{5})/[^/]+\.ppm$", name):
                found.append((name, int(match[1])))
        return _read(members, found, path)


def read_test(images: Path, truth: Path) -> Part:
    """`GTSRB/Final_Test/Images/*.ppm`, with the classes in `GT-final_test.csv` of the other archive."""
    with open_zip(truth, limit=_LIMIT) as members:
        where = f"{truth}: GT-final_test.csv"
        text = members.read("GT-final_test.csv").decode("ascii", "replace")
    with reading(where):
        rows = csv.DictReader(io.StringIO(text), delimiter=";", skipinitialspace=True)
        classes = [(f"GTSRB/Final_Test/Images/{row['Filename']}", int(row["ClassId"])) for row in rows]
    if not any(label in CLASSES for _, label in classes):
        raise DataError(f"{where} has {len(classes)} rows, none of the classes {CLASSES}.")
    with open_zip(images, limit=_LIMIT) as members:
        return _read(members, classes, images)


def _read(members: ZipMembers, labelled: Iterable[tuple[str, int]], path: Path) -> Part:
    """The images of our classes, resized with Pillow's default filter, which for colour images is bicubic."""
    image = require("PIL.Image", purpose="GTSRB")
    chosen = [(name, CLASSES.index(label)) for name, label in labelled if label in CLASSES]
    if not chosen:
        raise DataError(f"{path} has no images of the classes {CLASSES}; is it the archive of the name it bears?")
    images = np.empty((len(chosen), _SIDE, _SIDE, 3), np.uint8)
    for row, (name, _) in enumerate(chosen):
        original = decode(members.read(name), f"{path}: {name}", formats=("PPM",)).convert("RGB")
        images[row] = np.asarray(original.resize((_SIDE, _SIDE), image.Resampling.BICUBIC))
    return Part(images, np.array([label for _, label in chosen]), np.array([name for name, _ in chosen]))


def _read_all(paths: Sequence[Path]) -> list[Part]:
    train, test, truth = paths
    return [read_train(train), read_test(test, truth)]


GTSRB = NamedSet(
    name="gtsrb",
    image_shape=(3, _SIDE, _SIDE),
    forms=(
        Form(
            (
                RemoteFile(
                    "GTSRB-Training_fixed.zip",
                    (_URL + "GTSRB-Training_fixed.zip",),
                    "md5:513f3c79a4c5141765e10e952eaa2478",
                ),
                RemoteFile(
                    "GTSRB_Final_Test_Images.zip",
                    (_URL + "GTSRB_Final_Test_Images.zip",),
                    "md5:c7e4e6327067d32654124b0fe9e82185",
                ),
                RemoteFile(
                    "GTSRB_Final_Test_GT.zip",
                    (_URL + "GTSRB_Final_Test_GT.zip",),
                    "md5:fe31e9c9270bbcd7b84b7f21a9d9d9e5",
                ),
            ),
            _read_all,
        ),
    ),
    counts=(5_280, 2_580),
    histogram=(2250, 2100, 1110, 1200, 1200),
    resize_to=(_SIDE, _SIDE),
    equalize=True,
    folders=("gtsrb", "."),
    citation="J. Stallkamp, M. Schlipsing, J. Salmen, C. Igel. Man vs. computer: benchmarking machine learning "
    "algorithms for traffic sign recognition. Neural Networks 32, 2012.",
    licence="research use with citation",
)
SETS = (GTSRB,)
