"""Sets of color images: CIFAR-10, CIFAR-100 with its 20 superclasses, and GTSRB."""

import csv
import io
import pickle
import re
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...utils.exceptions import require
from ..errors import explain_read_errors
from .known_set import Reader, SetPart

CLASSES = (2, 12, 17, 18, 35)  # those of GTSRB that the paper uses
_SIDE = 32


def _read_cifar(paths: Sequence[Path], *, parts: Sequence[Sequence[str]],
                labels: str) -> list[SetPart]:
    """Read the pickles of each part: dicts with `data` (n, 3072), planes R, G, B, and labels."""
    with explain_read_errors(paths[0]), tarfile.open(paths[0]) as archive:
        return [_cifar_part([pickle.load(archive.extractfile(name), encoding="latin1")  # type: ignore[arg-type]
                             for name in names], labels) for names in parts]


def _cifar_part(batches: Sequence[dict[str, Any]], labels: str) -> SetPart:
    planes = np.concatenate([batch["data"] for batch in batches]).reshape(-1, 3, 32, 32)
    return SetPart(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)),
                   np.concatenate([batch[labels] for batch in batches]).astype(np.int64))


def read_gtsrb_train(path: Path) -> SetPart:
    """Read `GTSRB/Training/00002/*.ppm` and so on, one folder for each class."""
    with explain_read_errors(path), zipfile.ZipFile(path) as archive:
        matches = (re.search(r"(?:^|/)Training/(\d{5})/[^/]+\.ppm$", name)
                   for name in sorted(archive.namelist()))
        return _read_signs(archive, [(match.string, int(match[1])) for match in matches if match])


def _read_gtsrb_test(images: Path, truth: Path) -> SetPart:
    """Read `GTSRB/Final_Test/Images/*.ppm`, with classes in another archive."""
    with explain_read_errors(truth), zipfile.ZipFile(truth) as archive:
        text = io.TextIOWrapper(archive.open("GT-final_test.csv"), encoding="ascii")
        labeled = [(f"GTSRB/Final_Test/Images/{row['Filename']}", int(row["ClassId"]))
                    for row in csv.DictReader(text, delimiter=";", skipinitialspace=True)]
    with explain_read_errors(images), zipfile.ZipFile(images) as archive:
        return _read_signs(archive, labeled)


def _read_signs(archive: zipfile.ZipFile, labeled: Iterable[tuple[str, int]]) -> SetPart:
    """Read the images of the chosen classes, resized with Pillow's default filter (bicubic)."""
    image = require("PIL.Image", purpose="GTSRB")
    chosen = [(name, CLASSES.index(label)) for name, label in labeled if label in CLASSES]
    images = np.empty((len(chosen), _SIDE, _SIDE, 3), np.uint8)
    for row, (name, _) in enumerate(chosen):
        with archive.open(name) as stream:
            original = image.open(stream, formats=["PPM"]).convert("RGB")
        images[row] = np.asarray(original.resize((_SIDE, _SIDE), image.Resampling.BICUBIC))
    return SetPart(images, np.array([label for _, label in chosen], dtype=np.int64),
                   np.array([name for name, _ in chosen]))


_BATCHES = tuple(f"cifar-10-batches-py/data_batch_{i}" for i in range(1, 6))
READERS: dict[str, tuple[Reader, ...]] = {
    "gtsrb": (lambda paths: [read_gtsrb_train(paths[0]), _read_gtsrb_test(*paths[1:])],),
    "cifar10": (partial(_read_cifar, labels="labels",
                        parts=(_BATCHES, ("cifar-10-batches-py/test_batch",))),),
    "cifar100_20": (partial(_read_cifar, labels="coarse_labels", parts=(
        ("cifar-100-python/train",), ("cifar-100-python/test",))),)}
