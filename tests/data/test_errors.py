"""Small files take little memory, whatever they claim to hold."""

import sys

import numpy as np
import pytest
from scipy import sparse
from support import memory_of

from reclust.data import DataError, read

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured the way Linux does")
LONG = ["x" * 100_000] + ["a"] * 3000


def small(path, **options):
    """Read a file, which takes at most 64 MB and 20 times its size."""
    size = sum(one.stat().st_size for one in ([path] if path.is_file() else path.iterdir()))
    taken, found = memory_of(lambda: read(path, **options))
    assert taken < 64e6 + 20 * size, f"{taken / 1e6:.0f} MB for {size / 1e3:.0f} KB"
    return found


def test_one_long_string_makes_no_other_longer(tmp_path):
    pandas, h5py = pytest.importorskip("pandas"), pytest.importorskip("h5py")
    (tmp_path / "x.csv").write_text("id,a,b\n" + "".join(f"{name},{i % 9},{i % 7}\n" for i, name in enumerate(LONG)))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["data"], file["ids"], file["y"] = np.ones((3001, 2)), LONG, LONG
    frame = pandas.DataFrame({"a": 2.0, "b": 1.0}, index=LONG)
    for name, options in (("x.csv", {"ids": "id"}), ("x.csv", {"labels": "id"}), ("x.h5", {}), ("x.h5", {"labels": "y"})):
        found = small(tmp_path / name, **options)
        assert len(found.ids if "labels" not in options else found.labels) == 3001
    taken, found = memory_of(lambda: read(frame))
    assert taken < 64e6 and found.ids.tolist() == LONG


def test_parquet_columns_that_are_not_wanted_are_not_read(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("pandas")
    n = 20_000
    text = arrow.DictionaryArray.from_arrays(arrow.array(np.zeros(n, np.int32)), arrow.array(["x" * 20_000]))
    lists = arrow.ListArray.from_arrays(arrow.array(np.arange(n + 1, dtype=np.int32) * 1000), arrow.array(np.zeros(n * 1000)))
    numbers = arrow.array(np.arange(n, dtype=float))
    parquet.write_table(arrow.table({"a": numbers, "text": text, "lists": lists}), tmp_path / "x.parquet", compression="zstd")
    del lists
    assert small(tmp_path / "x.parquet", drop=["text", "lists"]).samples.shape == (n, 1)
    for wanted in ("labels", "ids"):
        assert "claims to hold 400000000" in str(small(tmp_path / "x.parquet", drop=["lists"], **{wanted: "text"}))
        assert "not numeric: 'lists' (list" in str(small(tmp_path / "x.parquet", drop=["text"], **{wanted: "lists"}))
    assert "not numeric: 'lists'" in str(small(tmp_path / "x.parquet"))


def test_claims_beyond_compression_are_refused(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    h5py, image = pytest.importorskip("h5py"), pytest.importorskip("PIL.Image")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("data", (10**9, 10), "f4", chunks=(1000, 10))
    constant = arrow.array(np.ones(10**7))
    parquet.write_table(arrow.table({"a": constant, "b": constant}), tmp_path / "x.parquet")
    del constant
    sparse.save_npz(tmp_path / "x.npz", sparse.coo_array(([1.0], ([0], [0])), shape=(10**9, 3)))
    (tmp_path / "folder").mkdir()
    image.new("1", (9000, 9000)).save(tmp_path / "folder" / "x.png")
    for name in ("x.h5", "x.parquet", "x.npz", "folder"):
        found = small(tmp_path / name)
        assert isinstance(found, DataError) and "claims to hold" in str(found), name


def test_images_that_would_fill_the_memory_together_are_refused(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for i in range(40):
        image.new("1", (2000, 2000)).save(tmp_path / f"{i}.png")
    assert "claims to hold" in str(small(tmp_path))
    assert read(tmp_path, size=(8, 8)).samples.shape == (40, 8, 8)
