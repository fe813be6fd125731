"""Files that were cut short, replaced or damaged: a DataError that names the file, or all samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from reclust.data import DataError, Dataset, load, read

ORIGINALS = {"mnist": 0, "usps": 0, "optdigits": 0, "gtsrb": 0, "cifar10": 0, "cifar100_20": 0, "optdigits-zip": 1}
OWN = ["npy", "npz", "compressed npz", "sparse npz", "csv", "parquet", "h5", "png"]
CHECKED = ("mnist", "gtsrb", "cifar10", "cifar100_20", "compressed npz")
"""Formats whose checksums find every flipped bit in the content."""


def replacements(content: bytes, *, flips: bool):
    """Truncated files, other programs' files, an error page, and random bytes or bits."""
    rng = np.random.default_rng(0)
    for cut in {0, 1, 3, len(content) // 2, len(content) - 9, len(content) - 1}:
        yield content[: max(cut, 0)]
    for magic in (b"\x1f\x8b", b"PK\x03\x04", b"\x89HDF\r\n\x1a\n", b"PAR1", b"\x93NUMPY", b"\x89PNG\r\n\x1a\n", b"P6\n"):
        yield magic
        yield magic + content[len(magic) :]
    yield rng.bytes(500)
    yield b"<!DOCTYPE html><html>Not Found</html>"
    for _ in range(10 if flips else 0):
        damaged = bytearray(content)
        damaged[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        yield bytes(damaged)


def whole_or_error(get, path: Path, expected: Dataset, *, complete: bool = True) -> None:
    try:
        found = get()
    except DataError as error:
        assert path.name in str(error), str(error)
        return
    assert not complete or found.samples.shape == expected.samples.shape


@pytest.mark.filterwarnings("ignore:loadtxt")
@pytest.mark.parametrize("case", ORIGINALS)
def test_original_files(case, tiny, tmp_path):
    if case == "gtsrb":
        pytest.importorskip("PIL")
    name = case.partition("-")[0]
    paths = tiny(name).write(tmp_path, form=ORIGINALS[case])
    expected = load(name, folder=tmp_path, download=False)
    for path in paths:
        content = path.read_bytes()
        for damaged in replacements(content, flips=case in CHECKED):
            path.write_bytes(damaged)
            whole_or_error(lambda: load(name, folder=tmp_path, download=False), path, expected)
        path.write_bytes(content)


def write(kind: str, folder: Path) -> Path:
    rng = np.random.default_rng(0)
    table, labels = rng.normal(size=(30, 4)), np.arange(30) % 3
    images = rng.integers(0, 256, (30, 6, 6), dtype=np.uint8)
    path = folder / f"x.{kind.split()[-1]}"
    if kind == "npy":
        np.save(path, table)
    elif kind == "npz":
        np.savez(path, images=images, labels=labels)
    elif kind == "compressed npz":
        np.savez_compressed(path, images=images, labels=labels)
    elif kind == "sparse npz":
        sparse.save_npz(path, sparse.csr_array(np.maximum(table, 0)))
    elif kind == "csv":
        pytest.importorskip("pandas")
        np.savetxt(path, table, delimiter=",", header="a,b,c,d", comments="")
    elif kind == "parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pytest.importorskip("pandas")
        parquet.write_table(arrow.table(dict(zip("abcd", table.T, strict=True))), path)
    elif kind == "h5":
        with pytest.importorskip("h5py").File(path, "w") as file:
            file["data"], file["y"] = table, labels
    else:
        pytest.importorskip("PIL.Image").fromarray(images[0]).save(path)
    return path


@pytest.mark.filterwarnings("ignore:.*is read as Windows-1252")
@pytest.mark.parametrize("kind", OWN)
def test_own_files(kind, tmp_path):
    path = write(kind, tmp_path)
    source = tmp_path if kind == "png" else path
    content, expected = path.read_bytes(), read(source)
    for damaged in replacements(content, flips=kind in CHECKED):
        path.write_bytes(damaged)
        # A text file that was cut between two lines is a shorter file.
        whole_or_error(lambda: read(source), path, expected, complete=kind != "csv")


def test_text_and_objects_are_no_samples(tmp_path):
    np.save(tmp_path / "x.npy", np.array([["a", "b"]]))
    with pytest.raises(DataError, match=r"x\.npy: values of type <U1; needed: numbers"):
        read(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", images=np.array([{}, []], dtype=object))
    with pytest.raises(DataError, match=r"x\.npz .*Object arrays cannot be loaded"):
        read(tmp_path / "x.npz")
