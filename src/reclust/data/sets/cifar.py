"""CIFAR-10, and CIFAR-100 with its 20 superclasses: tar archives of pickles.

Unpickling runs code, so the archives are read only after their checksums were verified.
"""

from __future__ import annotations

import pickle
import tarfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import explain_read_errors
from .download import RemoteFile
from .known_set import Form, NamedSet, SetPart

_URL = "https://www.cs.toronto.edu/~kriz/"


def read_cifar(paths: Sequence[Path], *, parts: Sequence[Sequence[str]],
               labels: str) -> list[SetPart]:
    """Read the batches of each part: dicts with `data` (n, 3072), planes R, G, B, and labels."""
    with explain_read_errors(paths[0]), tarfile.open(paths[0]) as archive:
        return [_join([_batch(archive, name, labels) for name in names]) for names in parts]


def _batch(archive: tarfile.TarFile, name: str, labels: str) -> SetPart:
    batch: dict[str, Any] = pickle.load(archive.extractfile(name), encoding="latin1")  # type: ignore[arg-type]
    images = batch["data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return SetPart(np.ascontiguousarray(images), np.array(batch[labels], dtype=np.int64))


def _join(parts: Sequence[SetPart]) -> SetPart:
    return SetPart(np.concatenate([part.images for part in parts]),
                   np.concatenate([part.labels for part in parts]))


def _set(name: str, file: str, md5: str, parts: Sequence[Sequence[str]], labels: str,
         histogram: tuple[int, ...]) -> NamedSet:
    return NamedSet(
        name=name,
        image_shape=(3, 32, 32),
        forms=(Form((RemoteFile(file, (_URL + file,), f"md5:{md5}"),),
                    partial(read_cifar, parts=parts, labels=labels), verify=True),),
        counts=(50_000, 10_000),
        histogram=histogram,
        resize_to=(32, 32),
        folders=(name, "."),
        citation="A. Krizhevsky. Learning multiple layers of features from tiny images. "
                 "University of Toronto, 2009.",
        licence="none stated; cite",
    )


_BATCHES = tuple(f"cifar-10-batches-py/data_batch_{i}" for i in range(1, 6))
SETS = (
    _set("cifar10", "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a",
         (_BATCHES, ("cifar-10-batches-py/test_batch",)), "labels", (6_000,) * 10),
    _set("cifar100_20", "cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85",
         (("cifar-100-python/train",), ("cifar-100-python/test",)), "coarse_labels",
         (3_000,) * 20),
)
