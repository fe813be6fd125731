"""Tables: what pandas or NumPy wrote is read back, and what is not a number is named."""

from __future__ import annotations

import gzip
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from reclust import ReclustWarning
from reclust.data import DataError, read
from reclust.data.formats.tables import check_complete, check_numeric

VALUES = np.random.default_rng(0).normal(size=(6, 3)) * 10.0 ** np.arange(-2, 1)
LABELS = ["cat", "dog", "cat", "cat", "emu", "dog"]


def csv(tmp_path, text, name="x.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("header", ["", "a{0}b{0}c"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_round_trip(delimiter, header, end, tmp_path):
    lines = [delimiter.join(map(repr, row)) for row in VALUES.tolist()]
    path = tmp_path / "x.csv"
    path.write_bytes((end.join(([header.format(delimiter)] if header else []) + lines) + end).encode())
    found = read(path)
    np.testing.assert_array_equal(found.samples, VALUES)
    assert (found.name, found.ids, found.labels, found.image_shape) == ("x", None, None, None)


def test_csv_with_labels_ids_quotes_and_a_byte_order_mark(tmp_path):
    rows = "".join(
        f'"id, {i}",{a!r},{b!r},{c!r},"{label}"\n'
        for i, ((a, b, c), label) in enumerate(zip(VALUES.tolist(), LABELS, strict=True))
    )
    found = read(csv(tmp_path, "\ufeffname,a,b,c,kind\n" + rows), labels="kind", ids="name")
    np.testing.assert_array_equal(found.samples, VALUES)
    assert found.ids.tolist() == [f"id, {i}" for i in range(6)]
    assert found.labels.tolist() == [0, 1, 0, 0, 2, 1] and found.n_clusters == 3


def test_csv_of_pandas_with_its_index(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(VALUES, columns=["a", "b", "c"], index=list("uvwxyz"))
    frame.to_csv(tmp_path / "x.csv")
    found = read(tmp_path / "x.csv")
    np.testing.assert_array_equal(found.samples, VALUES)
    assert found.ids.tolist() == list("uvwxyz")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("a,b\n", "no rows"),
        ("a,b\n1,red\n2,blue\n", r"'b' \(row 1 has 'red'\).*get_dummies.*reclust\.data\.read\(…, drop=\[…\], labels=…, ids=…\), --drop, --labels and --ids\."),
        ("a,b\n1,2\n3,\n", r"missing or infinite values in 'b' \(1 of 2 rows\); fill them in \(SimpleImputer\), or drop"),
        ("a,b,c\nNA,2,n/a\n3,NULL,\n,None,1\n,?,1\n", r"in 'a' \(3 of 4 rows\), 'c' \(2 of 4 rows\), 'b' \(3 of 4 rows\);"),
        ("a,b\n1,\n2,red\n", r"not numeric: 'b' \(row 2 has 'red'\)"),
        ("1,2\n3,x\n", r"'1' \(row 2 has 'x'\)"),
        ("a,b\n1,2\n3\n", "row 2 has 1 cells, needed: 2"),
        ("a,b\n1,2,3,4\n4,5,6,7\n", r"2 rows of 4 columns under 2 names\. Cells are cut at commas\."),
        ("a,b\n1,2,\n4,5,\n", "row 1 has 3 cells, needed: 2"),
        ("a,b\n1,2,3\n1,5,6\n", "2 rows of 3 columns under 2 names"),
        ("a,b\n1,2,3\n4,5\n", "row 2 has 2 cells, needed: 3|row 1 has 3 cells, needed: 2"),
        ("a,b\n5,1_000\n", r"'b' \(row 1 has '1_000'\)"),
        ("a,b\n1,nan\n", "missing or infinite values in 'b'"),
        ("a,b,a\n1,2,3\n", "several columns have the same name, 'a'; rename them"),
        ("a,b\n1,2\n\0\0,3\n", "x.csv"),
    ],
)
def test_csv_that_is_not_a_table_of_numbers_is_explained(text, message, tmp_path):
    with pytest.raises(DataError, match=message) as caught:
        read(csv(tmp_path, text))
    assert "x.csv" in str(caught.value)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("names", [list("uvwxyz"), ["1", "2", "3", "4", "5", "9"]], ids=["texts", "numbers"])
@pytest.mark.parametrize("columns", [["a", "b", "c"], ["a"], ["1", "2", "3"]], ids=["names", "one name", "counted"])
def test_names_of_rows_as_r_writes_them_are_ids(delimiter, names, columns, tmp_path):
    lines = [[f'"{name}"', *map(repr, row[:len(columns)])] for name, row in zip(names, VALUES.tolist(), strict=True)]
    text = "\n".join(delimiter.join(line) for line in [[f'"{column}"' for column in columns], *lines])
    found = read(csv(tmp_path, text))
    np.testing.assert_array_equal(found.samples, VALUES[:, :len(columns)])
    assert found.feature_names == tuple(columns) and found.ids.tolist() == names
    if len(columns) > 1:
        other = read(csv(tmp_path, text.replace('"', "")), ids=columns[0])
        assert other.feature_names == tuple(columns[1:]) and len(other.ids) == 6
    if delimiter != ",":
        np.testing.assert_array_equal(read(csv(tmp_path, text.replace(".", ","))).samples, found.samples)


@pytest.mark.parametrize("line", ["sep=;", "SEP=;", '"sep=;"'])
@pytest.mark.parametrize("header", ["a;b\n", ""])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_first_line_of_excel_says_the_delimiter(line, header, end, tmp_path):
    found = read(csv(tmp_path, f"{line}\n{header}1,5;2\n3;4,5\n".replace("\n", end)))
    assert found.samples.tolist() == [[1.5, 2], [3, 4.5]] and found.feature_names == (("a", "b") if header else None)
    assert read(csv(tmp_path, "sep=~\na~b\n1~2\n")).samples.tolist() == [[1, 2]]


@pytest.mark.parametrize(("text", "what", "marks"), [
    ("# made by x\na,b,c\n1,2,3\n", "row 1 has 3 cells, needed: 1", "commas"),
    ("# made by x\na,b\n1,2\n3,4\n", "row 1 has 2 cells, needed: 1", "commas"),
    ("# made by x\n1;2\n3;4\n", "2 rows of 2 columns under 1 names", "semicolons"),
    ("# x, y\na,b\n1,2\n", "'# x' seems to be a comment and not the name of a column", "commas"),
    ("My table\na\tb\n1\t2\n", "row 1 has 2 cells, needed: 1", "tabs"),
    ("My table\n1,2\n3,4\n", "2 rows of 2 columns under 1 names", "commas"),
    ('"a\nlong",b,c\n1,2,3\n', "row 1 has 3 cells, needed: 1", "commas"),
    ("a b c\n0.0 0 0\n", "blanks seem to separate the cells, as in row 1, '0.0 0 0'", "commas"),
    ("1 2\n3 4\n", "blanks seem to separate the cells, as in row 1, '3 4'", "commas"),
    ('"a" "b"\n"u" 1 2\n', "blanks seem to separate the cells, as in row 1, 'u 1 2'", "commas"),
    ('"x"\n0,5\n1,5\n', "2 rows of 2 columns under 1 names", "commas"),
])
def test_what_does_not_fit_names_the_delimiter_and_another_reader(text, what, marks, tmp_path):
    with pytest.raises(DataError, match=rf"x\.txt: {what}\. Cells are cut at {marks}\. .*pandas\.read_csv\(…, sep=, comment=, .*index_col=\)"):
        read(csv(tmp_path, text, "x.txt"))


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".txt", ".CSV.gz", ".tsv.gz", ".txt.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_text_is_read_packed_or_not(ending, encoding, tmp_path):
    lines = ["größe\tb\tc\tkind", *("\t".join([*map(repr, row), kind]) for row, kind in zip(VALUES.tolist(), LABELS, strict=True))]
    text = "\n".join(lines).encode(encoding)
    path = tmp_path / f"x.y{ending}"
    path.write_bytes(gzip.compress(text) if "gz" in ending else text)
    found = read(path, labels="kind")
    np.testing.assert_array_equal(found.samples, VALUES)
    assert (found.name, found.feature_names, found.labels.tolist()) == ("x.y", ("größe", "b", "c"), [0, 1, 0, 0, 2, 1])


def test_packed_text_that_is_broken_or_a_bomb_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.csv.gz"
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 300_000)
    path.write_bytes(whole[:-20])
    with pytest.raises(DataError, match=r"x\.csv\.gz is corrupt, truncated"):
        read(path)
    monkeypatch.setattr("reclust.data.formats.archives.GIB", 1 << 20)
    path.write_bytes(whole)
    with pytest.raises(DataError, match=r"x\.csv\.gz is refused: more than 1048576 bytes unpacked"):
        read(path)


COUNTED_ROWS = {
    "fractions": "5.1,3.5,1.4\n4.9,3.0,2.0\n", "whole numbers": "7,5,3\n0,0,5\n", "whole floats": "5.0,3.0,1.0\n6.0,2.0,4.0\n"
}


@pytest.mark.parametrize("rows", COUNTED_ROWS.values(), ids=COUNTED_ROWS.keys())
@pytest.mark.parametrize("header", ["0,1,2", "1,2,3"])
def test_a_first_line_that_counts_the_columns_holds_their_names(header, rows, tmp_path):
    found = read(csv(tmp_path, f"{header}\n{rows}"))
    np.testing.assert_array_equal(found.samples, np.loadtxt(rows.splitlines(), delimiter=","))
    assert found.feature_names == tuple(header.split(",")) and found.ids is None
    # pandas names new columns and an index beside those that it counts
    lines = [f"{name},{line},{kind}" for name, line, kind in zip("uv", rows.splitlines(), ("cat", "dog"), strict=True)]
    for first in ("", "name"):
        more = read(csv(tmp_path, "\n".join([f"{first},{header},kind", *lines])), labels="kind", ids=first or None)
        np.testing.assert_array_equal(more.samples, found.samples)
        assert more.ids.tolist() == ["u", "v"] and more.labels.tolist() == [0, 1]


@pytest.mark.parametrize("text", ["1,2,3\n3,1,2\n", "0,1,2\n3,4,5\n", "2019,2020\n1.5,2.5\n", "0\n1.5\n", "1,3,2\n1.5,2,2\n"])
def test_a_first_line_of_numbers_that_may_be_data_is_data(text, tmp_path):
    found = read(csv(tmp_path, text))
    assert len(found) == 2 and found.feature_names is None


def test_a_frame_without_names_comes_back_from_csv(tmp_path):
    pandas = pytest.importorskip("pandas")
    for options in ({}, {"index": False}, {"sep": ";", "decimal": ","}, {"sep": "\t", "decimal": ",", "header": False, "index": False}):
        pandas.DataFrame(VALUES).to_csv(tmp_path / "x.csv", **options)
        np.testing.assert_array_equal(read(tmp_path / "x.csv").samples, VALUES)
    pandas.DataFrame(np.arange(12).reshape(3, 4)).to_csv(tmp_path / "x.csv")
    assert read(tmp_path / "x.csv").samples.tolist() == np.arange(12).reshape(3, 4).tolist()


@pytest.mark.parametrize("text", [
    "a;b\n0,329;1,5\n2;-,5e1\n", "0,329;1,5\n2;-,5e1\n", "0,329\t1,5\n2\t-,5e1\n", 'a,b\n"0,329","1,5"\n2,"-,5e1"\n', "a;b\n0,329;1,5\n\n2;-,5e1\n",
])
def test_decimal_commas_are_read_where_they_can_be_nothing_else(text, tmp_path):
    np.testing.assert_array_equal(read(csv(tmp_path, text)).samples, [[0.329, 1.5], [2, -5]])


def test_decimal_commas_beside_labels_and_missing_values(tmp_path):
    found = read(csv(tmp_path, "a;kind;b\n0,5;x, y;1\n1,5;z;2\n"), labels="kind")
    assert found.samples.tolist() == [[0.5, 1], [1.5, 2]] and found.labels.tolist() == [0, 1]
    with pytest.raises(DataError, match=r"missing or infinite values in 'b' \(1 of 2 rows\)"):
        read(csv(tmp_path, "a;b\n0,5;\n1,5;2\n"))


@pytest.mark.parametrize("rows", ["1,234;5", "0,5;1.5", "1.234,5;2", "1,234,567;0,5"])
def test_commas_that_may_group_thousands_are_refused(rows, tmp_path):
    with pytest.raises(DataError, match=r"commas such as in '1?.*' in row 1 of 'a'.*decimal marks or group thousands.*pandas\.read_csv"):
        read(csv(tmp_path, f"a;b\n{rows}\n"))


def test_csv_columns_that_are_not_there_and_ragged_rows_beside_labels(tmp_path):
    with pytest.raises(DataError, match="no column 'kind'; it has 'a', 'b'"):
        read(csv(tmp_path, "a,b\n1,2\n"), labels="kind")
    with pytest.raises(DataError, match=r"x\.csv: .*2 of 3 labels are missing, the first in row 2"):
        read(csv(tmp_path, "a,kind\n1,x\n2,\n3, \n"), labels="kind")
    assert read(csv(tmp_path, f"a,kind\n1,{10**20}\n2,7\n"), labels="kind").labels.tolist() == [0, 1]
    with pytest.raises(DataError, match="cells"):
        read(csv(tmp_path, "a,b,kind\n1,2,x\n1,2,x,9\n"), labels="kind")
    with pytest.raises(DataError, match="not in the format"):
        path = tmp_path / "x.csv"
        path.write_bytes(b"\xff\xfe\x00a,b\n1,2\n")
        read(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_that_says_its_encoding(encoding, end, tmp_path):
    lines = ["größe\tb\tart", *(f"{a!r}\t{b!r}\t{label}ä" for (a, b, _), label in zip(VALUES.tolist(), LABELS, strict=True))]
    text = ("\ufeff" if encoding[-3:] in ("-le", "-be") else "") + end.join(lines)
    (tmp_path / "x.csv").write_bytes(text.encode(encoding))
    found = read(tmp_path / "x.csv", labels="art")
    np.testing.assert_array_equal(found.samples, VALUES[:, :2])
    assert found.feature_names == ("größe", "b") and found.labels.tolist() == [0, 1, 0, 0, 2, 1]


@pytest.mark.parametrize("far", [0, 20_000], ids=["in the first row", "far below"])
def test_csv_as_excel_writes_it_on_windows(far, tmp_path):
    rows = "a;b;ort\n" + "0,5;1;Graz\n" * far + "0,5;1;Köln\n1,5;2;Genève\n"
    path = tmp_path / "x.csv"
    path.write_bytes(rows.encode("cp1252"))
    with pytest.warns(ReclustWarning, match=r"x\.csv is not UTF-8 and is read as Windows-1252.*'CSV UTF-8'") as caught:
        found = read(path, ids="ort")
    assert len(caught) == 1 and found.ids[-2:].tolist() == ["Köln", "Genève"] and found.samples[-1].tolist() == [1.5, 2]
    with pytest.raises(DataError, match=r"not numeric: 'ort' \(row 1 has '(Köln|Graz)'\)"):
        read(path)
    path.write_bytes(b"a,b\n1,\x81\n")
    with pytest.raises(DataError, match=r"x\.csv is corrupt, truncated or not in the format"):
        read(path)


@pytest.mark.parametrize("text", [
    "a,b,c\n0.5,True,FALSE\n1.5, false ,true\n", "a;b;c\n0,5;TRUE;FALSE\n1,5;FALSE;TRUE\n", '0.5,"True",False\n1.5,False,True\n',
])
def test_columns_of_true_and_false_are_one_and_zero(text, tmp_path):
    assert read(csv(tmp_path, text)).samples.tolist() == [[0.5, 1, 0], [1.5, 0, 1]]


def test_true_and_false_come_back_from_csv_as_from_a_frame(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(VALUES, columns=list("abc")).assign(flag=[True, False] * 3)
    frame.to_csv(tmp_path / "x.csv", index=False)
    np.testing.assert_array_equal(read(tmp_path / "x.csv").samples, read(frame).samples)


@pytest.mark.parametrize(("text", "message"), [
    ("a,b\n1,True\n2,3\n", r"not numeric: 'b' \(True or False in some rows, numbers in others\)"),
    ("a,b\n1,True\n2,red\n", r"not numeric: 'b' \(row 2 has 'red'\)"),
    ("a,b\n1,True\n2,\n", r"missing or infinite values in 'b' \(1 of 2 rows\)"),
])
def test_true_and_false_beside_something_else_are_refused(text, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read(csv(tmp_path, text))


COUNTED = {"v": np.sin(np.arange(12)), "n": np.arange(12) % 5}
ROW_NUMBERS = {"k": np.arange(12), "count": np.arange(1, 13), "ID": np.arange(12)[::-1] * 3, "Sample_id": 1000.0 + np.arange(12)}
ROW_NUMBERS |= {name: 7 * np.arange(12) for name in ("customer_id", "PassengerId", "CustomerID", "user id", "Patient ID", "Unnamed: 0")}
NO_ROW_NUMBERS = {"year": 2000 + np.arange(12), "id": np.arange(12) // 2, "index": np.arange(12) / 7, "even": 2 * np.arange(12),
                  "k": np.r_[np.arange(11), 99], "fluid": 7 * np.arange(12), "region_id": np.arange(12) % 3}


@pytest.mark.parametrize("form", ["frame", "checked frame", "csv", "parquet", "mapped parquet"])
def test_columns_that_number_the_rows_are_warned_of(form, tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")

    def bring(columns):
        frame = pandas.DataFrame(columns)
        if form == "frame":
            return read(frame)
        if form == "checked frame":
            return check_numeric(frame)
        if form == "csv":
            frame.to_csv(tmp_path / "x.csv", index=False)
            return read(tmp_path / "x.csv")
        pytest.importorskip("pyarrow")
        if form == "mapped parquet":
            monkeypatch.setattr("reclust.data.formats.tables.IN_MEMORY", 10)
        frame.to_parquet(tmp_path / "x.parquet")
        return read(tmp_path / "x.parquet")

    for name, column in ROW_NUMBERS.items():
        with pytest.warns(ReclustWarning, match=f"^'{name}' looks like a row number and is clustered with the other columns: "
                          rf"leave it out, or make it the ids by frame\.set_index\('{name}'\), reclust\.data\.read\(…, ids='{name}'\) or --ids\.") as caught:
            bring({**COUNTED, name: column})
        assert len(caught) == 1
    with pytest.warns(ReclustWarning, match="^'k', 'count', 'ID', 'Sample_id', .* look like row numbers.*: leave them out, or make one of them the ids by"):
        bring({**COUNTED, **ROW_NUMBERS})
    for name, column in NO_ROW_NUMBERS.items():  # warnings are errors here
        bring({**COUNTED, name: column})
    bring({"v": np.sin(np.arange(4)), "id": np.arange(4)})
    bring({"k": np.arange(12)})


def test_many_rows_may_count_from_any_whole_number():
    pandas = pytest.importorskip("pandas")
    noise = np.sin(np.arange(150))
    with pytest.warns(ReclustWarning, match="^'passenger' looks like a row number"):
        read(pandas.DataFrame({"v": noise, "passenger": np.arange(892, 1042)}))
    for column in (np.arange(150) + 0.5, np.r_[np.arange(892, 1041), 5], np.sort(noise)):  # warnings are errors here
        read(pandas.DataFrame({"v": noise, "k": column}))
    read(pandas.DataFrame({"v": noise[:19], "year": np.arange(2000, 2019)}))


def test_row_numbers_that_are_named_are_not_warned_of(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({**COUNTED, "k": pandas.array(range(12), dtype="Int64")})
    assert read(frame, ids="k").ids.tolist() == list(range(12))
    frame.to_csv(tmp_path / "x.csv", index=False)
    assert read(tmp_path / "x.csv", ids="k").samples.shape == (12, 2)
    np.savetxt(tmp_path / "x.csv", frame.to_numpy(float), delimiter=",")
    with pytest.warns(ReclustWarning, match="^'2' looks like a row number"):
        read(tmp_path / "x.csv")
    frame.loc[3, "k"] = None
    with pytest.raises(DataError, match="missing or infinite values in 'k'"):
        read(frame)
    check_numeric(frame)  # what is missing is not for it to say


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
    check_numeric(frame)
    check_complete(frame)
    for nothing in (None, np.nan, pandas.NA, Decimal("NaN")):
        partly = frame.assign(b=pandas.Series([nothing, *cells[1:]], dtype=object))
        check_numeric(partly)
        for refused in (read, check_complete):
            with pytest.raises(DataError, match=r"missing or infinite values in 'b' \(1 of 3 rows\);"):
                refused(partly)
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
        with pytest.raises(DataError, match=r"missing or infinite values in 't' \([12] of 2 rows\)"):
            bring(arrow.table({"d": decimals, "t": cells}))
    with pytest.raises(DataError, match=r"'t' holds an array in each row; .*numpy\.stack\(frame\['t'\]\.to_list\(\)\)\."):
        bring(arrow.table({"d": decimals, "t": [[1.0, 2.0], [3.0, 4.0]]}))


@pytest.mark.parametrize("kind", ["category", "string", "complex128"])
def test_columns_that_are_not_numeric_are_named_with_a_remedy(kind):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "colour": pandas.Series([1, 2]).astype(kind), "b": [3, 4]})
    with pytest.raises(DataError, match=r"not numeric: 'colour' \(.*\)\. Encode such columns"):
        read(frame)


@pytest.mark.parametrize("kind", ["datetime64[ns]", "timedelta64[ns]"])
def test_dates_in_a_frame_are_told_to_become_days(kind):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "since": pandas.Series([1, 2]).astype(kind)})
    with pytest.raises(DataError, match=r"not numeric: 'since' \(.*\)\. Give dates and times as numbers, such as days since the first one"):
        read(frame)
    with pytest.raises(DataError, match="Encode such columns .*, give dates and times as numbers"):
        read(frame.assign(town="here"))


def test_missing_values_and_empty_frames_are_named():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="missing or infinite values in 'b'"):
        read(pandas.DataFrame({"a": [1, 2], "b": pandas.array([1, None], dtype="Int64")}))
    with pytest.raises(DataError, match="1 of 2 labels are missing, the first in row 2"):
        read(pandas.DataFrame({"a": [1, 2], "b": pandas.array(["x", None], dtype="string")}), labels="b")
    with pytest.raises(DataError, match="is empty"):
        read(pandas.DataFrame({"a": []}, dtype=float))
    twice = pandas.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])
    for refused in (read, check_numeric):
        with pytest.raises(DataError, match="several columns have the same name, 'a'; rename them"):
            refused(twice)
    infinite = pandas.DataFrame({"a": [1, 2], "b": [np.inf, np.nan]})
    for refused in (read, check_complete):
        with pytest.raises(DataError, match=r"missing or infinite values in 'b' \(2 of 2 rows\)"):
            refused(infinite)


def test_parquet_is_the_frame_it_was_made_of(tmp_path):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(VALUES, columns=["a", "b", "c"], index=list("uvwxyz")).assign(kind=LABELS)
    frame.to_parquet(tmp_path / "x.parquet")
    found, direct = read(tmp_path / "x.parquet", labels="kind"), read(frame, labels="kind")
    np.testing.assert_array_equal(found.samples, direct.samples)
    assert found.ids.tolist() == direct.ids.tolist() and found.labels.tolist() == direct.labels.tolist()
    with pytest.raises(DataError, match=r"x\.parquet: not numeric: 'kind'"):
        read(tmp_path / "x.parquet")


def test_a_parquet_bomb_is_refused(tmp_path, monkeypatch):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("reclust.data.formats.archives.GIB", 1 << 20)
    parquet.write_table(arrow.table({"a": np.zeros(1_000_000)}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"x\.parquet is refused"):
        read(tmp_path / "x.parquet")


def test_a_large_parquet_file_is_unpacked_to_disk_and_mapped(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(VALUES, columns=list("abc")).assign(kind=LABELS, name=[f"row{i}" for i in range(len(VALUES))])
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=3)
    given = {"labels": "kind", "ids": "name"}
    small = read(tmp_path / "x.parquet", **given)
    monkeypatch.setattr("reclust.data.formats.tables.IN_MEMORY", 10)
    large = read(tmp_path / "x.parquet", **given)
    assert isinstance(large.samples, np.memmap) and not isinstance(small.samples, np.memmap)
    assert (large.samples == small.samples).all() and (large.labels == small.labels).all() and (large.ids == small.ids).all()
    kept = large.samples.filename
    del large
    assert not Path(kept).exists()


def test_an_index_of_pandas_is_no_feature_where_other_ids_are_named(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(VALUES, columns=list("abc"), index=[5, 3, 9, 1, 0, 7]).assign(name=list("uvwxyz"))
    frame.to_csv(tmp_path / "x.csv")
    found = read(tmp_path / "x.csv", ids="name")
    assert found.feature_names == ("a", "b", "c") and found.ids.tolist() == list("uvwxyz")
    assert read(csv(tmp_path, ",a\n1,2\n3,4\n")).samples.tolist() == [[2], [4]]


@pytest.mark.parametrize(("text", "names", "shape"), [
    ("Xist,2610005E09,Rik3,Tsix\n1,2,3,4\n5,6,7,8\n", ("Xist", "2610005E09", "Rik3", "Tsix"), (2, 4)),
    ("True,False\nFalse,True\n", None, (2, 2)),
    ("height, cm\tweight, kg, net\tage, years\n1\t2\t3\n4\t5\t6\n", ("height, cm", "weight, kg, net", "age, years"), (2, 3)),
    ("a;b, in cm, perhaps\n1,5;2,5\n", ("a", "b, in cm, perhaps"), (1, 2)),
    ('"a;b;c",d\n1,2\n', ("a;b;c", "d"), (1, 2)),
    ("a,b\n1,2", ("a", "b"), (1, 2)),
])
def test_lines_of_names_that_look_like_something_else(text, names, shape, tmp_path):
    found = read(csv(tmp_path, text))
    assert found.feature_names == names and found.samples.shape == shape


def test_a_first_row_with_one_cell_that_is_no_number_is_data(tmp_path):
    with pytest.raises(DataError, match="row 1 has 'N.D.'"):
        read(csv(tmp_path, "1,2,N.D.\n4,5,6\n"))


def test_columns_of_one_name_and_frames_without_columns_are_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[np.nan, 1.0], [2.0, 3.0]], columns=["a", "a"])
    with pytest.raises(DataError, match=r"values in 'a' \(1 of 2 rows\);"):
        check_complete(frame)
    check_numeric(frame[[]])


def test_an_index_gives_the_ids_by_its_name_and_of_large_files_too(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(VALUES, columns=list("abc"), index=pandas.Index(list("uvwxyz"), name="patient"))
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=3)
    for limit in (2**30, 10):
        monkeypatch.setattr("reclust.data.formats.tables.IN_MEMORY", limit)
        for asked in ({}, {"ids": "patient"}):
            assert read(tmp_path / "x.parquet", **asked).ids.tolist() == list("uvwxyz")
    frame.reset_index(drop=True).to_parquet(tmp_path / "y.parquet")
    assert read(tmp_path / "y.parquet").ids is None
