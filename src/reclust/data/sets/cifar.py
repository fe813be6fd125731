"""CIFAR-10, and CIFAR-100 with its 20 superclasses: tar archives of pickles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import DataError
from ..formats.archives import read_tar_gz
from .download import RemoteFile
from .known_set import Form, NamedSet, Part
from .pickles import load_plain

_LIMIT = 512 << 20
_URL = "https://www.cs.toronto.edu/~kriz/"
_CITATION = "A. Krizhevsky. Learning multiple layers of features from tiny images. University of Toronto, 2009."
_LICENCE = "none stated; cite"


def read_cifar(path: Path, *, parts: Sequence[Sequence[str]], labels: str) -> list[Part]:
    """The batches of each part, joined; each is a dict with `data` (n, 3072), planes R, G, B, and the list `labels`."""
    members = read_tar_gz(path, limit=_LIMIT)
    return [_join([_batch(members, name, labels, path) for name in names]) for names in parts]


def _batch(members: dict[str, memoryview], name: str, key: str, path: Path) -> Part:
    where = f"{path}: {name}"
    if name not in members:
        raise DataError(f"{path} holds no {name}; it holds {', '.join(list(members)[:5]) or 'nothing'} ….")
    batch = load_plain(members[name], where)
    if not isinstance(batch, dict) or not {"data", key} <= batch.keys():
        raise DataError(f"{where} is not a batch of CIFAR: needed: a dict with `data` and `{key}`.")
    data, labels = batch["data"], batch[key]
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != 3072:
        raise DataError(f"{where}: `data` is not an array (n, 3072) of bytes.")
    if not isinstance(labels, list) or len(labels) != len(data) or any(type(label) is not int for label in labels):
        raise DataError(f"{where}: `{key}` is not a list of {len(data)} whole numbers.")
    if not all(0 <= label < 100 for label in labels):
        raise DataError(f"{where}: `{key}` has labels outside 0..99.")
    images = np.ascontiguousarray(data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    return Part(images, np.array(labels, dtype=np.int64))


def _join(parts: Sequence[Part]) -> Part:
    return Part(np.concatenate([part.images for part in parts]), np.concatenate([part.labels for part in parts]))


_BATCHES = tuple(f"cifar-10-batches-py/data_batch_{i}" for i in range(1, 6))
CIFAR10 = NamedSet(
    name="cifar10",
    image_shape=(3, 32, 32),
    forms=(
        Form(
            (
                RemoteFile(
                    "cifar-10-python.tar.gz", (_URL + "cifar-10-python.tar.gz",), "md5:c58f30108f718f92721af3b95e74349a"
                ),
            ),
            lambda paths: read_cifar(paths[0], parts=(_BATCHES, ("cifar-10-batches-py/test_batch",)), labels="labels"),
        ),
    ),
    counts=(50_000, 10_000),
    histogram=(6_000,) * 10,
    resize_to=(32, 32),
    folders=("cifar10", "."),
    citation=_CITATION,
    licence=_LICENCE,
)
CIFAR100_20 = NamedSet(
    name="cifar100_20",
    image_shape=(3, 32, 32),
    forms=(
        Form(
            (
                RemoteFile(
                    "cifar-100-python.tar.gz",
                    (_URL + "cifar-100-python.tar.gz",),
                    "md5:eb9058c3a382ffc7106e4002c42a8d85",
                ),
            ),
            lambda paths: read_cifar(
                paths[0], parts=(("cifar-100-python/train",), ("cifar-100-python/test",)), labels="coarse_labels"
            ),
        ),
    ),
    counts=(50_000, 10_000),
    histogram=(3_000,) * 20,
    resize_to=(32, 32),
    folders=("cifar100_20", "."),
    citation=_CITATION,
    licence=_LICENCE,
)
SETS = (CIFAR10, CIFAR100_20)
