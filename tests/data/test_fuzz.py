"""Broken files of every format: a DataError that names the file, or all samples; no other exception, no part of a set.

Where damage can go unseen (a pixel of an unprotected format, a byte of a comment) the whole set comes back; its number
of samples and their shape are what a silent loss would change.
"""

from __future__ import annotations

import bz2
import faulthandler
import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from reclust.data import DataError, Dataset, load, read
from reclust.data.sets.pickles import load_plain

ORIGINALS = {
    "mnist": 0,
    "usps": 0,
    "optdigits": 0,
    "gtsrb": 0,
    "cifar10": 0,
    "cifar100_20": 0,
    "usps-hdf5": 1,
    "optdigits-zip": 1,
}
BROUGHT = ["npy", "npz", "packed npz", "sparse npz", "csv", "parquet", "h5", "png"]
ROUNDS = 40


def mutations(content: bytes, seed: int):
    """Cut short, with flipped bits, zeroed or doubled stretches, foreign beginnings, nothing at all, and rubbish."""
    rng = np.random.default_rng(seed)
    for cut in {0, 1, 3, len(content) // 2, len(content) - 9, len(content) - 1}:
        yield content[: max(cut, 0)]
    for magic in (
        b"\x1f\x8b",
        b"BZh9",
        b"PK\x03\x04",
        b"\x80\x04",
        b"\x89HDF\r\n\x1a\n",
        b"PAR1",
        b"\x93NUMPY",
        b"\x89PNG\r\n\x1a\n",
        b"P6\n",
    ):
        yield magic + content[len(magic) :]
        yield magic
    yield rng.bytes(500)
    yield b"<!DOCTYPE html><html>Not Found</html>"
    for i in range(ROUNDS):
        damaged = bytearray(content)
        # Half of the damage goes where headers and directories are, at both ends.
        spread = len(content) if i % 2 else min(len(content), 300)
        for at in rng.integers(0, spread, 1 + i % 4):
            where = int(at) if i % 3 else len(content) - 1 - int(at)
            damaged[where] ^= 1 << int(rng.integers(8))
        if i % 5 == 4:
            start = int(rng.integers(len(content)))
            damaged[start : start + 20] = bytes(20) if i % 2 else damaged[start : start + 20] * 2
        yield bytes(damaged)


def whole_or_error(get, path: Path, expected: Dataset, *, complete: bool = True) -> bool:
    try:
        found = get()
    except DataError as error:
        assert path.name in str(error), str(error)
        return True
    assert found.samples.shape[1:] == expected.samples.shape[1:] or not complete
    assert len(found) == len(expected) or not complete
    assert (found.labels is None) == (expected.labels is None)
    assert found.labels is None or found.labels.shape == expected.labels.shape
    return False


@pytest.fixture(autouse=True)
def no_hang():
    faulthandler.dump_traceback_later(60, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize("case", ORIGINALS)
def test_original_files(case, tiny, tmp_path):
    if case in ("gtsrb", "usps-hdf5"):
        pytest.importorskip("PIL" if case == "gtsrb" else "h5py")
    name = case.partition("-")[0]
    paths = tiny(name).write(tmp_path, form=ORIGINALS[case])
    expected = load(name, folder=tmp_path, download=False)
    for seed, path in enumerate(paths):
        content = path.read_bytes()
        refused = [
            whole_or_error(lambda: load(name, folder=tmp_path, download=False), path, expected)
            for damaged in mutations(content, seed)
            if path.write_bytes(damaged) or True
        ]
        path.write_bytes(content)
        assert sum(refused) > len(refused) / 3
    assert not whole_or_error(lambda: load(name, folder=tmp_path, download=False), paths[0], expected)


@pytest.mark.parametrize(("name", "packer"), [("mnist", gzip), ("cifar10", gzip), ("usps", bz2)])
def test_packed_anew_after_the_damage(name, packer, tiny, tmp_path):
    """Checksums of the packing would catch all of the above: here they fit, and the readers inside are on their own."""
    paths = tiny(name).write(tmp_path)
    expected = load(name, folder=tmp_path, download=False)
    for seed, path in enumerate(paths):
        content = path.read_bytes()
        for damaged in mutations(packer.decompress(content), seed):
            path.write_bytes(packer.compress(damaged, 1))
            whole_or_error(lambda: load(name, folder=tmp_path, download=False), path, expected)
        path.write_bytes(content)


def test_pickles(formats):
    data = np.arange(120, dtype=np.uint8).reshape(10, 12)
    for protocol in (0, 2, 4):
        batch = {"data": data, "labels": list(range(10)), "names": ["x"] * 10}
        content = formats.python2_pickle(batch) if not protocol else pickle.dumps(batch, protocol=protocol)
        for damaged in mutations(content, protocol):
            try:
                load_plain(damaged, "batch")
            except DataError as error:
                assert "batch" in str(error)


def brought(kind: str, folder: Path) -> Path:
    rng = np.random.default_rng(0)
    table, labels = rng.normal(size=(30, 4)), np.arange(30) % 3
    images = rng.integers(0, 256, (30, 6, 6), dtype=np.uint8)
    path = folder / f"x.{kind.split()[-1]}"
    if kind == "npy":
        np.save(path, table)
    elif kind == "npz":
        np.savez(path, images=images, labels=labels)
    elif kind == "packed npz":
        np.savez_compressed(path, images=images, labels=labels)
    elif kind == "sparse npz":
        sparse.save_npz(path, sparse.csr_array(np.maximum(table, 0)))
    elif kind == "csv":
        np.savetxt(path, table, delimiter=",", header="a,b,c,d", comments="")
    elif kind == "parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pytest.importorskip("pandas")
        parquet.write_table(arrow.table(dict(zip("abcd", table.T, strict=True))), path, write_page_checksum=True)
    elif kind == "h5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            file.create_dataset("data", data=table, compression="gzip", fletcher32=True)
            file["y"] = labels
    else:
        pytest.importorskip("PIL.Image").fromarray(images[0]).save(path)
    return path


@pytest.mark.filterwarnings("ignore:.*is read as Windows-1252")
@pytest.mark.parametrize("kind", BROUGHT)
def test_files_that_users_bring(kind, tmp_path):
    path = brought(kind, tmp_path)
    source = tmp_path if kind == "png" else path
    labels = {"npz": "labels", "packed npz": "labels", "h5": "y"}.get(kind)  # asked for, so that they cannot be lost
    content, expected = path.read_bytes(), read(source, labels=labels)
    for damaged in mutations(content, 1):
        path.write_bytes(damaged)
        # Lines of text do not say how many there should be: a file cut between two of them is a shorter file.
        whole_or_error(lambda: read(source, labels=labels), path, expected, complete=kind != "csv")


def test_text_of_a_wrong_type_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.array([["a", "b"]]))
    with pytest.raises(DataError, match=r"x\.npy holds <U1 values"):
        read(tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.zeros((3, 2), complex))
    with pytest.raises(DataError, match=r"x\.npy holds complex128 values"):
        read(tmp_path / "x.npy")
