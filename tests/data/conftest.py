"""Tiny files in the real formats, written here by code that shares nothing with the readers."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import struct
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from reclust.data.sets import load

SHARED = Path(__file__).parents[3] / "shared" / "data"


def idx_gz(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(header + array.astype(np.uint8).tobytes())


def libsvm_bz2(values: np.ndarray, labels: np.ndarray) -> bytes:
    lines = (
        f"{label + 1} " + " ".join(f"{i + 1}:{value:g}" for i, value in enumerate(row)) + " \n"
        for row, label in zip(values, labels, strict=True)
    )
    return bz2.compress("".join(lines).encode())


def zip_of(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tar_gz_of(files: Mapping[str, bytes], *, kind: bytes = tarfile.REGTYPE) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.type = len(content), kind
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def python2_pickle(batch: Mapping[str, np.ndarray | list[int] | list[str]]) -> bytes:
    """Protocol 2 as Python 2 wrote it, byte strings and all: the format of the archives of CIFAR."""

    def text(value: str) -> bytes:
        return b"U" + bytes([len(value)]) + value.encode("latin1")

    def item(value: object) -> bytes:
        if isinstance(value, np.ndarray):
            head = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text("b") + b"\x87R"
            shape = b"".join(b"J" + struct.pack("<i", side) for side in value.shape) + b"\x86"
            kind = (
                b"cnumpy\ndtype\n"
                + text("u1")
                + b"K\x00K\x01\x87R(K\x03"
                + text("|")
                + b"NNN"
                + b"J\xff\xff\xff\xff" * 2
            )
            data = b"T" + struct.pack("<I", value.nbytes) + value.tobytes()
            return head + b"(K\x01" + shape + kind + b"K\x00tb\x89" + data + b"tb"
        if isinstance(value, list):
            return b"](" + b"".join(b"K" + bytes([v]) if isinstance(v, int) else text(v) for v in value) + b"e"
        return text(str(value))

    return b"\x80\x02}(" + b"".join(text(key) + item(value) for key, value in batch.items()) + b"u."


def ppm(image: np.ndarray) -> bytes:
    height, width, _ = image.shape
    return f"P6\n{width} {height}\n255\n".encode() + image.astype(np.uint8).tobytes()


@pytest.fixture(scope="session")
def formats() -> SimpleNamespace:
    return SimpleNamespace(
        idx_gz=idx_gz, libsvm_bz2=libsvm_bz2, zip_of=zip_of, tar_gz_of=tar_gz_of, python2_pickle=python2_pickle, ppm=ppm
    )


class Tiny:
    """A few images of the shape of a named set, in two parts, and its original files made of them."""

    def __init__(self, name: str, n_train: int = 12, n_test: int = 7) -> None:
        self.name, self.known = name, load.SETS[name]
        channels, height, width = self.known.image_shape
        rng = np.random.default_rng(7)
        shape = (height, width) if channels == 1 else (height, width, channels)
        n, k = n_train + n_test, self.known.n_clusters
        self.images = rng.integers(0, self.known.max_value + 1, (n, *shape), dtype=np.uint8)
        self.labels = np.arange(n) % k
        self.split = np.repeat([0, 1], [n_train, n_test]).astype(np.uint8)
        self._files: dict[int, dict[str, bytes]] = {}

    def facts(self) -> load.NamedSet:
        """The named set with the facts of these few images in place of its own."""
        counts = tuple(np.bincount(self.split).tolist())
        histogram = tuple(np.bincount(self.labels, minlength=self.known.n_clusters).tolist())
        total = None if self.known.total is None else int(self.images.sum(dtype=np.int64))
        forms = list(self.known.forms)
        for i, form in enumerate(forms):
            if form.verify:
                contents = self.files(form=i)
                files = tuple(replace(file, checksum=f"md5:{hashlib.md5(contents[file.name]).hexdigest()}") for file in form.files)
                forms[i] = replace(form, files=files)
        return replace(self.known, counts=counts, histogram=histogram, total=total, forms=tuple(forms))

    def files(self, *, form: int = 0) -> dict[str, bytes]:
        if form not in self._files:  # written once, since packed files hold the time
            parts = [(self.images[mask], self.labels[mask]) for mask in (self.split == 0, self.split == 1)]
            names = (file.name for file in self.known.forms[form].files)
            self._files[form] = dict(zip(names, _WRITERS[self.name](parts, form), strict=True))
        return self._files[form]

    def write(self, root: Path, *, form: int = 0) -> list[Path]:
        folder = root / self.known.folders[0]
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files(form=form).items():
            (folder / name).write_bytes(content)
        return [folder / name for name in self.files(form=form)]


Parts = list[tuple[np.ndarray, np.ndarray]]


def _idx(parts: Parts, _: int) -> list[bytes]:
    return [idx_gz(array) for part in parts for array in part]


def _usps(parts: Parts, _: int) -> list[bytes]:
    # Values half way between two bytes, so that neither text nor float32 can round them to a neighbour.
    scaled = [((images.reshape(-1, 256) + 0.5) / 255.5, labels) for images, labels in parts]
    return [libsvm_bz2(np.round(values * 2 - 1, 6), labels) for values, labels in scaled]


def _optdigits(parts: Parts, form: int) -> list[bytes]:
    texts = [
        "".join(",".join(map(str, [*image.ravel(), label])) + "\n" for image, label in zip(*part, strict=True)).encode()
        for part in parts
    ]
    return (
        texts
        if form == 0
        else [zip_of({"optdigits.names": b"about", "optdigits.tra": texts[0], "optdigits.tes": texts[1]})]
    )


def _gtsrb(parts: Parts, _: int) -> list[bytes]:
    classes = (2, 12, 17, 18, 35)
    (train, train_labels), (test, test_labels) = parts
    order = np.argsort(train_labels, kind="stable")
    names = [f"GTSRB/Training/{classes[train_labels[i]]:05d}/{i:05d}_00000.ppm" for i in order]
    training = {name: ppm(train[i]) for name, i in zip(names, order, strict=True)}
    training |= {
        "GTSRB/Training/00001/00000_00000.ppm": ppm(train[0]),
        "GTSRB/Training/00002/GT-00002.csv": b"Filename;",
    }
    tests = {f"GTSRB/Final_Test/Images/{i:05d}.ppm": ppm(image) for i, image in enumerate(test)}
    tests["GTSRB/Final_Test/Images/99999.ppm"] = ppm(test[0])
    rows = [f"{i:05d}.ppm;32;32;1;1;31;31;{classes[label]}" for i, label in enumerate(test_labels)] + [
        "99999.ppm;32;32;1;1;31;31;7"
    ]
    truth = "\r\n".join(["Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId", *rows]) + "\r\n"
    return [zip_of(training), zip_of(tests), zip_of({"GT-final_test.csv": truth.encode()})]


def _cifar(parts: Parts, folder: str, key: str, names: list[list[str]]) -> list[bytes]:
    files = {f"{folder}/readme.html": b"<html>"}
    for (images, labels), batches in zip(parts, names, strict=True):
        rows = np.moveaxis(images, 3, 1).reshape(len(images), -1)
        for name, mine in zip(batches, np.array_split(np.arange(len(images)), len(batches)), strict=True):
            batch = {
                "batch_label": "x",
                key: labels[mine].tolist(),
                "data": rows[mine],
                "filenames": ["a.png"] * len(mine),
            }
            files[f"{folder}/{name}"] = python2_pickle(batch)
    return [tar_gz_of(files)]


_WRITERS: dict[str, Callable[[Parts, int], list[bytes]]] = {
    "mnist": _idx,
    "fmnist": _idx,
    "kmnist": _idx,
    "usps": _usps,
    "optdigits": _optdigits,
    "gtsrb": _gtsrb,
    "cifar10": lambda parts, _: _cifar(
        parts, "cifar-10-batches-py", "labels", [[f"data_batch_{i}" for i in range(1, 6)], ["test_batch"]]
    ),
    "cifar100_20": lambda parts, _: _cifar(parts, "cifar-100-python", "coarse_labels", [["train"], ["test"]]),
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Tiny]:
    """Tiny sets by name; `load` accepts them as the whole set."""

    def make(name: str) -> Tiny:
        made = Tiny(name)
        monkeypatch.setitem(load.SETS, name, made.facts())
        return made

    return make


@pytest.fixture(scope="session")
def real_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the real sets that are at hand, or a skip."""
    if not (SHARED / "optdigits.npz").is_file():
        pytest.skip(f"no real data: {SHARED} is not there")
    folder = tmp_path_factory.mktemp("real")
    for path in SHARED.glob("*.npz"):
        if not path.name.endswith(".res.npz"):
            (folder / path.name).symlink_to(path.resolve())
            continue
        with np.load(path) as packed:
            # Colour sets are kept as differences modulo 256: down the rows, along the columns, of (R-G, G, B-G).
            planes = packed["residual"].cumsum(2, dtype=np.uint8).cumsum(3, dtype=np.uint8)
            planes[0] += planes[1]
            planes[2] += planes[1]
            images = np.moveaxis(planes, 0, -1)
            np.savez(
                folder / path.name.replace(".res", ""), images=images, labels=packed["labels"], split=packed["split"]
            )
    return folder
