"""DataFrames and Parquet files: numbers, types and ids are kept, other columns stay a frame."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from reclust.data import DataError, read
from reclust.data.formats.tables import numbers_of, row_numbers

VALUES = np.random.default_rng(0).normal(size=(6, 3)) * 10.0 ** np.arange(-2, 1)
LABELS = ["cat", "dog", "cat", "cat", "emu", "dog"]


def test_true_and_false_come_back_from_csv_as_from_a_frame(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(VALUES, columns=list("abc")).assign(flag=[True, False] * 3)
    frame.to_csv(tmp_path / "x.csv", index=False)
    np.testing.assert_array_equal(read(tmp_path / "x.csv").samples, read(frame).samples)


COUNTED = {"v": np.sin(np.arange(12)), "n": np.arange(12) % 5}
ROW_NUMBERS = {"k": np.arange(12), "count": np.arange(1, 13), "ID": np.arange(12)[::-1] * 3, "Sample_id": 1000.0 + np.arange(12)}
ROW_NUMBERS |= {name: 7 * np.arange(12) for name in ("customer_id", "PassengerId", "CustomerID", "user id", "Patient ID", "Unnamed: 0")}
NO_ROW_NUMBERS = {"year": 2000 + np.arange(12), "id": np.arange(12) // 2, "index": np.arange(12) / 7, "even": 2 * np.arange(12),
                  "k": np.r_[np.arange(11), 99], "fluid": 7 * np.arange(12), "region_id": np.arange(12) % 3}


def test_columns_that_number_the_rows_are_found():
    pandas = pytest.importorskip("pandas")
    for name, column in ROW_NUMBERS.items():
        assert row_numbers(pandas.DataFrame({**COUNTED, name: column})) == [name]
    assert row_numbers(pandas.DataFrame({**COUNTED, **ROW_NUMBERS})) == list(ROW_NUMBERS)
    for columns in ({**COUNTED, **NO_ROW_NUMBERS}, {"v": np.sin(np.arange(4)), "id": np.arange(4)}, {"k": np.arange(12)}):
        assert row_numbers(pandas.DataFrame(columns)) == []
        assert isinstance(read(pandas.DataFrame(columns)).samples, np.ndarray)


def test_many_rows_may_count_from_any_whole_number():
    pandas = pytest.importorskip("pandas")
    noise = np.sin(np.arange(150))
    assert row_numbers(pandas.DataFrame({"v": noise, "passenger": np.arange(892, 1042)})) == ["passenger"]
    for column in (np.arange(150) + 0.5, np.r_[np.arange(892, 1041), 5], np.sort(noise)):
        assert row_numbers(pandas.DataFrame({"v": noise, "k": column})) == []
    assert row_numbers(pandas.DataFrame({"v": noise[:19], "year": np.arange(2000, 2019)})) == []


def test_row_numbers_that_are_named_are_the_ids(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({**COUNTED, "k": pandas.array(range(12), dtype="Int64")})
    assert read(frame, ids="k").ids.tolist() == list(range(12))
    frame.to_csv(tmp_path / "x.csv", index=False)
    assert read(tmp_path / "x.csv", ids="k").samples.shape == (12, 2)
    np.savetxt(tmp_path / "x.csv", frame.to_numpy(float), delimiter=",")
    assert list(read(tmp_path / "x.csv").samples.columns) == ["0", "1", "2"]


def test_frames_keep_numbers_types_and_index():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(VALUES.astype(np.float32), columns=["a", "b", "c"], index=list("uvwxyz"))
    found = read(frame)
    np.testing.assert_array_equal(found.samples, VALUES.astype(np.float32))
    assert found.samples.dtype == np.float32 and found.ids.tolist() == list("uvwxyz")
    mixed = frame.assign(
        i=np.arange(6), flag=[True, False] * 3, n=pandas.array([1, 2, 3, 4, 5, 6], dtype="Int64"), kind=LABELS
    )
    found = read(mixed, labels="kind", ids="i")
    np.testing.assert_allclose(found.samples[:, 3:], [[1, 1], [0, 2], [1, 3], [0, 4], [1, 5], [0, 6]])
    assert found.ids.tolist() == list(range(6)) and found.labels.tolist() == [0, 1, 0, 0, 2, 1]


NUMBERS = {
    "decimals": ([Decimal("1.5"), Decimal(-2), Decimal(0)], [1.5, -2, 0]), "mixed": ([Decimal("0.5"), np.float32(2), True], [0.5, 2, 1]),
    "truths": ([True, False, np.True_], [1, 0, 1]), "whole numbers": ([1, 2, np.int8(3)], [1, 2, 3]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_columns_of_objects_that_are_numbers_are_numbers(name):
    pandas = pytest.importorskip("pandas")
    cells, numbers = NUMBERS[name]
    frame = pandas.DataFrame({"a": [1.0, 2.0, 4.0], "b": pandas.Series(cells, dtype=object)})
    np.testing.assert_array_equal(read(frame).samples, np.c_[[1, 2, 4], numbers])
    for nothing in (None, np.nan, pandas.NA, Decimal("NaN")):
        partly = frame.assign(b=pandas.Series([nothing, *cells[1:]], dtype=object))
        assert read(partly).samples["b"].isna().tolist() == [True, False, False]
        with pytest.raises(DataError, match=r"missing or infinite values in 'b' \(1 of 3 rows\);"):
            numbers_of(partly, "X")
    assert frame["b"].dtype == object and frame["b"].tolist() == cells


@pytest.mark.parametrize("form", ["table", "parquet", "arrow frame"])
def test_decimals_and_truths_of_arrow_are_numbers(form, tmp_path):
    pandas, arrow, parquet = (pytest.importorskip(name) for name in ("pandas", "pyarrow", "pyarrow.parquet"))

    def bring(table, **asked):
        if form == "table":
            return read(table, **asked)
        if form == "arrow frame":
            return read(table.to_pandas(types_mapper=pandas.ArrowDtype), **asked)
        parquet.write_table(table, tmp_path / "x.parquet")
        return read(tmp_path / "x.parquet", **asked)

    decimals = arrow.array([Decimal("1.5"), Decimal("2.25")], arrow.decimal128(10, 2))
    table = arrow.table({"d": decimals, "t": [True, False], "kind": ["x", "y"]})
    found = bring(table, labels="kind")
    assert found.samples.tolist() == [[1.5, 1], [2.25, 0]] and found.labels.tolist() == [0, 1] and found.feature_names == ("d", "t")
    for cells in ([True, None], arrow.array([Decimal(1), None], arrow.decimal128(4)), arrow.nulls(2)):
        assert bring(arrow.table({"d": decimals, "t": cells})).samples["t"].isna().any()
    told = r"not numeric: 't' \(list<" if form == "parquet" else r"'t' holds a (list|ndarray) in each row.*numpy\.stack\(frame\['t'\]\.to_list\(\)\)\."
    with pytest.raises(DataError, match=told):
        bring(arrow.table({"d": decimals, "t": [[1.0, 2.0], [3.0, 4.0]]}))


@pytest.mark.parametrize("kind", ["category", "string", "datetime64[ns]", "timedelta64[ns]"])
def test_columns_that_are_not_numeric_stay_a_frame(kind):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "colour": pandas.Series([1, 2]).astype(kind), "b": [3, 4]})
    assert read(frame).samples.equals(frame) and "(2, 3) mixed" in repr(read(frame))
    with pytest.raises(DataError, match=r"not numeric: 'colour' \(.*\)\. Encode such columns"):
        numbers_of(frame, "X")


def test_missing_labels_infinite_values_and_empty_frames_are_named():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="1 of 2 labels are missing, the first in row 2"):
        read(pandas.DataFrame({"a": [1, 2], "b": pandas.array(["x", None], dtype="string")}), labels="b")
    with pytest.raises(DataError, match="is empty"):
        read(pandas.DataFrame({"a": []}, dtype=float))
    twice = pandas.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])
    with pytest.raises(DataError, match="several columns are named 'a'; rename them"):
        read(twice)
    infinite = pandas.DataFrame({"a": [1, 2], "b": [np.inf, 1]})
    with pytest.raises(DataError, match=r"missing or infinite values in 'b' \(1 of 2 rows\)"):
        read(infinite)


def test_parquet_is_the_frame_it_was_made_of(tmp_path):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(VALUES, columns=["a", "b", "c"], index=list("uvwxyz")).assign(kind=LABELS)
    frame.to_parquet(tmp_path / "x.parquet")
    found, direct = read(tmp_path / "x.parquet", labels="kind"), read(frame, labels="kind")
    np.testing.assert_array_equal(found.samples, direct.samples)
    assert found.ids.tolist() == direct.ids.tolist() and found.labels.tolist() == direct.labels.tolist()
    assert read(tmp_path / "x.parquet").samples["kind"].tolist() == LABELS


def test_an_index_gives_the_ids_by_its_name(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(VALUES, columns=list("abc"), index=pandas.Index(list("uvwxyz"), name="patient"))
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=3)
    for asked in ({}, {"ids": "patient"}):
        assert read(tmp_path / "x.parquet", **asked).ids.tolist() == list("uvwxyz")
    frame.reset_index(drop=True).to_parquet(tmp_path / "y.parquet")
    assert read(tmp_path / "y.parquet").ids is None


NUMBERS_AND_DATES = ("decimal128(10)", "date32()")
EXTENSIONS = ("json_(arrow.string())", "opaque(arrow.string(), 'a', 'b')")


@pytest.mark.parametrize("name", ["dictionary(arrow.int32(), arrow.string())", "string()", "large_string()", "string_view()", "large_binary()", "binary(2000)",
                                  *NUMBERS_AND_DATES, *EXTENSIONS])
def test_small_parquet_files_do_not_become_large_frames(name, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kind = eval(f"arrow.{name}", {"arrow": arrow})
    many = arrow.array([0, 1] * (500_000 if name in NUMBERS_AND_DATES else 50_000), arrow.int32())
    text = arrow.DictionaryArray.from_arrays(many, [b"x" * 2000, b"y" * 2000])
    if name in NUMBERS_AND_DATES:
        column = many.cast(kind)
    elif name in EXTENSIONS:
        column = arrow.ExtensionArray.from_storage(kind, text.dictionary_decode().cast(arrow.string()))
    else:
        column = text.dictionary_decode().cast(arrow.binary(2000) if "2000" in name else arrow.string()).cast(kind)
    parquet.write_table(arrow.table({"a": many, "b": column}), tmp_path / "x.parquet", compression="zstd")
    told = "not numeric: 'b'" if name in EXTENSIONS else r"x\.parquet has \d+ bytes but claims to hold \d+"
    for asked in ({}, {"labels": "b"}, {"ids": "b"}):
        with pytest.raises(DataError, match=told):
            read(tmp_path / "x.parquet", **asked)
    assert read(tmp_path / "x.parquet", drop="b").samples.shape == (len(many), 1)
