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
from .download import RemoteFile
from .known_set import Form, NamedSet, SetPart

CLASSES = (2, 12, 17, 18, 35)  # those of GTSRB that the paper uses
_SIDE = 32
_CIFAR_URL = "https://www.cs.toronto.edu/~kriz/"
_GTSRB_URL = "https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/"
_GTSRB_FILES = {
    "GTSRB-Training_fixed.zip": "513f3c79a4c5141765e10e952eaa2478",
    "GTSRB_Final_Test_Images.zip": "c7e4e6327067d32654124b0fe9e82185",
    "GTSRB_Final_Test_GT.zip": "fe31e9c9270bbcd7b84b7f21a9d9d9e5",
}


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


def _read_gtsrb(paths: Sequence[Path]) -> list[SetPart]:
    train, test, truth = paths
    return [read_gtsrb_train(train), _read_gtsrb_test(test, truth)]


def _cifar(name: str, file: str, md5: str, parts: Sequence[Sequence[str]], labels: str,
           histogram: tuple[int, ...]) -> NamedSet:
    return NamedSet(
        name=name, image_shape=(3, 32, 32), counts=(50_000, 10_000), histogram=histogram,
        # Unpickling runs code, so the checksum is verified first.
        forms=(Form((RemoteFile(file, (_CIFAR_URL + file,), f"md5:{md5}"),),
                    partial(_read_cifar, parts=parts, labels=labels), verify=True),),
        resize_to=(32, 32), folders=(name, "."), licence="none stated; cite",
        citation="A. Krizhevsky. Learning multiple layers of features from tiny images. "
                 "University of Toronto, 2009.")


_BATCHES = tuple(f"cifar-10-batches-py/data_batch_{i}" for i in range(1, 6))
SETS = (
    NamedSet(
        name="gtsrb", image_shape=(3, _SIDE, _SIDE), counts=(5_280, 2_580),
        histogram=(2250, 2100, 1110, 1200, 1200), resize_to=(_SIDE, _SIDE), equalize=True,
        forms=(Form(tuple(RemoteFile(name, (_GTSRB_URL + name,), f"md5:{md5}")
                          for name, md5 in _GTSRB_FILES.items()), _read_gtsrb),),
        folders=("gtsrb", "."), licence="research use with citation",
        citation="J. Stallkamp, M. Schlipsing, J. Salmen, C. Igel. Man vs. computer: benchmarking "
                 "machine learning algorithms for traffic sign recognition. Neural Networks 32, "
                 "2012.",
    ),
    _cifar("cifar10", "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a",
           (_BATCHES, ("cifar-10-batches-py/test_batch",)), "labels", (6_000,) * 10),
    _cifar("cifar100_20", "cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85",
           (("cifar-100-python/train",), ("cifar-100-python/test",)), "coarse_labels",
           (3_000,) * 20),
)
