"""Delimited text: files that pandas, NumPy, R and Excel write are read back, others are explained."""

from __future__ import annotations

import gzip
import sys

import numpy as np
import pytest
from support import memory_of

from reclust import ReclustWarning
from reclust.data import DataError, read

pandas = pytest.importorskip("pandas")
VALUES = np.random.default_rng(0).normal(size=(6, 3)) * 10.0 ** np.arange(-2, 1)
LABELS = ["cat", "dog", "cat", "cat", "emu", "dog"]


def csv(tmp_path, text, name="x.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8"))
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("header", ["", "a{0}b{0}c"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_round_trip(delimiter, header, end, tmp_path):
    lines = [delimiter.join(map(repr, row)) for row in VALUES.tolist()]
    text = end.join(([header.format(delimiter)] if header else []) + lines) + end
    found = read(csv(tmp_path, text))
    np.testing.assert_array_equal(found.samples, VALUES)
    assert (found.name, found.ids, found.labels, found.image_shape) == ("x", None, None, None)
    assert found.feature_names == (("a", "b", "c") if header else None)


def test_long_lines_of_names(tmp_path):
    names = [f"ENSG{i:011d}" for i in range(9000)]
    found = read(csv(tmp_path, ",".join(names) + "\n" + 4 * f"{','.join(['1'] * 9000)}\n"))
    assert found.samples.shape == (4, 9000) and found.feature_names == tuple(names)


def test_tables_of_many_columns_take_little_memory(tmp_path):
    X, names = np.arange(60_000).reshape(3, 20_000) % 7, [f"g{i}" for i in range(20_000)]
    path = csv(tmp_path, "\n".join([",".join(names), *(",".join(map(str, row)) for row in X)]))
    taken, found = memory_of(lambda: read(path))
    assert taken < 100e6 and (found.samples == X).all() and found.feature_names == tuple(names)


def test_cells_longer_than_the_csv_module_reads(tmp_path):
    found = read(csv(tmp_path, "a,b\n1,2\n" + f"3,{'word ' * 40_000}\n"))
    assert found.samples.shape == (2, 2)


def test_labels_ids_dropped_columns_quotes_and_a_byte_order_mark(tmp_path):
    rows = "".join(f'"id, {i}",{a!r},x{i},{b!r},{c!r},"{label}"\n'
                   for i, ((a, b, c), label) in enumerate(zip(VALUES.tolist(), LABELS, strict=True)))
    found = read(csv(tmp_path, "\ufeffname,a,note,b,c,kind\n" + rows), labels="kind", ids="name", drop=["note"])
    np.testing.assert_array_equal(found.samples, VALUES)
    assert found.ids.tolist() == [f"id, {i}" for i in range(6)] and found.feature_names == ("a", "b", "c")
    assert found.labels.tolist() == [0, 1, 0, 0, 2, 1] and found.n_clusters == 3


def test_labels_without_a_header(tmp_path):
    found = read(csv(tmp_path, "5.1,3.5,Iris-setosa\n6.2,2.9,Iris-virginica\n"), labels="2")
    assert found.samples.tolist() == [[5.1, 3.5], [6.2, 2.9]] and found.labels.tolist() == [0, 1]
    assert found.feature_names is None


@pytest.mark.parametrize("options", [
    {}, {"index": False}, {"sep": ";", "decimal": ","}, {"sep": "\t", "decimal": ",", "header": False, "index": False}, {"float_format": "%.17g"},
], ids=str)
def test_frames_come_back(options, tmp_path):
    for columns in (None, list("abc")):
        pandas.DataFrame(VALUES, columns=columns).to_csv(tmp_path / "x.csv", **options)
        np.testing.assert_array_equal(read(tmp_path / "x.csv").samples, VALUES)


def test_the_index_of_pandas_gives_the_ids_and_is_no_feature(tmp_path):
    frame = pandas.DataFrame(VALUES, columns=list("abc"), index=[5, 3, 9, 1, 0, 7]).assign(name=list("uvwxyz"))
    frame.to_csv(tmp_path / "x.csv")
    found = read(tmp_path / "x.csv", ids="name")
    assert found.feature_names == ("a", "b", "c") and found.ids.tolist() == list("uvwxyz")
    assert read(tmp_path / "x.csv", drop=["name"]).ids.tolist() == ["5", "3", "9", "1", "0", "7"]
    pandas.DataFrame(np.arange(12).reshape(3, 4)).to_csv(tmp_path / "x.csv")
    assert read(tmp_path / "x.csv").samples.tolist() == np.arange(12).reshape(3, 4).tolist()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_row_names_as_r_writes_them_are_ids(delimiter, tmp_path):
    lines = [[f'"{name}"', *map(repr, row)] for name, row in zip("uvwxyz", VALUES.tolist(), strict=True)]
    text = "\n".join(delimiter.join(line) for line in [['"a"', '"b"', '"c"'], *lines])
    found = read(csv(tmp_path, text))
    np.testing.assert_array_equal(found.samples, VALUES)
    assert found.feature_names == ("a", "b", "c") and found.ids.tolist() == list("uvwxyz")


@pytest.mark.parametrize(("text", "message"), [
    ("", "empty"),
    ("a,b\n", "empty"),
    ("a,b\n1,2,3,4\n4,5,6,7\n", r"rows have up to 4 cells, the first line has 2\. If ',' does not separate cells.*pandas\.read_csv"),
    ("# made by x\na,b,c\n1,2,3\n", "rows have up to 3 cells, the first line has 1"),
    ('"x"\n0,5\n1,5\n', "rows have up to 2 cells, the first line has 1"),
    ("a,b\n" + "1,2\n" * 100 + "1,2,3\n", "Expected 2 fields in line 102, saw 3"),
    ("a,b,a\n1,2,3\n", "several columns are named 'a'; rename them"),
])
def test_anything_but_a_table_of_numbers_is_explained(text, message, tmp_path):
    with pytest.raises(DataError, match=message) as caught:
        read(csv(tmp_path, text))
    assert "x.csv" in str(caught.value)


@pytest.mark.parametrize(("text", "missing"), [
    ("a,b\n1,red\n2,blue\n", [0, 0]), ("a,b\n1,2\n3,\n", [0, 1]), ("a,b,c\nNA,2,n/a\n3,NULL,\n,None,1\n,?,1\n", [3, 3, 2]),
    ("a;b\n0,5;\n1,5;2\n", [0, 1]), ("1,2\n3,x\n", [0, 0]), ("1,2,N.D.\n4,5,6\n", [0, 0, 0]), ("a,b\n1,True\n2,\n", [0, 1]),
])
def test_other_tables_stay_frames_with_their_missing_cells(text, missing, tmp_path):
    assert read(csv(tmp_path, text)).samples.isna().sum().tolist() == missing


def test_missing_columns_and_labels_are_explained(tmp_path):
    with pytest.raises(DataError, match="no column 'kind'; it has 'a', 'b'"):
        read(csv(tmp_path, "a,b\n1,2\n"), labels="kind")
    with pytest.raises(DataError, match=r"x\.csv: .*2 of 3 labels are missing, the first in row 2"):
        read(csv(tmp_path, "a,kind\n1,x\n2,\n3, \n"), labels="kind")


@pytest.mark.parametrize("ending", [".csv", ".txt", ".CSV.gz", ".tsv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_gzipped_text_and_encodings(ending, encoding, tmp_path):
    lines = ["größe\tb\tc\tkind", *("\t".join([*map(repr, row), kind]) for row, kind in zip(VALUES.tolist(), LABELS, strict=True))]
    text = "\n".join(lines).encode(encoding)
    path = tmp_path / f"x.y{ending}"
    path.write_bytes(gzip.compress(text) if "gz" in ending else text)
    found = read(path, labels="kind")
    np.testing.assert_array_equal(found.samples, VALUES)
    assert (found.name, found.feature_names, found.labels.tolist()) == ("x.y", ("größe", "b", "c"), [0, 1, 0, 0, 2, 1])
    if "gz" in ending:
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(DataError, match=r"gz is damaged"):
            read(path)


def test_names_that_look_like_missing_numbers_are_kept(tmp_path):
    names = ["NA", "None", "null", "nan", "?", "", " DE ", "=1+1"]
    found = read(csv(tmp_path, "country,a,b\n" + "".join(f"{name},{i},NA\n" for i, name in enumerate(names))), ids="country", drop=["b"])
    assert found.ids.tolist() == [name.strip() for name in names]
    with pytest.raises(DataError, match="4 of 8 labels are missing"):
        read(csv(tmp_path, "kind,a\n" + "".join(f"{name or 'x'},{i}\n" for i, name in enumerate(["NA", "null", "", "nan", "?", "y", "z", ""]))), labels="kind")


@pytest.mark.parametrize("far", [0, 20_000], ids=["in the first row", "far below"])
def test_excel_on_windows(far, tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(("a;b;ort\n" + "0,5;1;Graz\n" * far + "0,5;1;Köln\n1,5;2;Genève\n").encode("cp1252"))
    with pytest.warns(ReclustWarning, match=r"x\.csv is not UTF-8 and is read as Windows-1252.*'CSV UTF-8'") as caught:
        found = read(path, ids="ort")
    assert len(caught) == 1 and found.ids[-2:].tolist() == ["Köln", "Genève"] and found.samples[-1].tolist() == [1.5, 2]


COUNTED_ROWS = {"fractions": "5.1,3.5,1.4\n4.9,3.0,2.0\n", "integers": "7,5,3\n0,0,5\n"}


@pytest.mark.parametrize("rows", COUNTED_ROWS.values(), ids=COUNTED_ROWS.keys())
@pytest.mark.parametrize("header", ["0,1,2", "1,2,3"])
def test_a_first_line_that_counts_the_columns_is_a_header(header, rows, tmp_path):
    found = read(csv(tmp_path, f"{header}\n{rows}"))
    np.testing.assert_array_equal(found.samples, np.loadtxt(rows.splitlines(), delimiter=","))
    assert found.feature_names == tuple(header.split(",")) and found.ids is None


@pytest.mark.parametrize("text", ["1,2,3\n3,1,2\n", "0,1,2\n3,4,5\n", "2019,2020\n1.5,2.5\n", "0\n1.5\n", "1,3,2\n1.5,2,2\n", "True,False\nFalse,True\n"])
def test_a_first_line_of_numbers_that_may_be_data_is_data(text, tmp_path):
    found = read(csv(tmp_path, text))
    assert len(found) == 2 and found.feature_names is None


@pytest.mark.parametrize(("text", "names", "shape"), [
    ("Xist,2610005E09,Rik3,Tsix\n1,2,3,4\n5,6,7,8\n", ("Xist", "2610005E09", "Rik3", "Tsix"), (2, 4)),
    ("height, cm\tweight, kg, net\tage, years\n1\t2\t3\n4\t5\t6\n", ("height, cm", "weight, kg, net", "age, years"), (2, 3)),
    ("a;b, in cm, perhaps\n1,5;2,5\n", ("a", "b, in cm, perhaps"), (1, 2)),
    ('"a;b;c",d\n1,2\n', ("a;b;c", "d"), (1, 2)),
    ("a,b\n1,2", ("a", "b"), (1, 2)),
    ("\n\na,b\n1,2\n", ("a", "b"), (1, 2)),
])
def test_headers_that_look_like_something_else(text, names, shape, tmp_path):
    found = read(csv(tmp_path, text))
    assert found.feature_names == names and found.samples.shape == shape


@pytest.mark.parametrize("text", ["a;b\n0,329;1,5\n2;-,5e1\n", "0,329;1,5\n2;-,5e1\n", "0,329\t1,5\n2\t-,5e1\n", "a;b\n0,329;1,5\n\n2;-,5e1\n"])
def test_decimal_commas(text, tmp_path):
    np.testing.assert_array_equal(read(csv(tmp_path, text)).samples, [[0.329, 1.5], [2, -5]])


@pytest.mark.parametrize("text", ["a,b,c\n0.5,True,FALSE\n1.5,False,TRUE\n", "a;b;c\n0,5;TRUE;FALSE\n1,5;FALSE;TRUE\n"])
def test_columns_of_true_and_false_are_one_and_zero(text, tmp_path):
    assert read(csv(tmp_path, text)).samples.tolist() == [[0.5, 1, 0], [1.5, 0, 1]]


def test_pandas_is_needed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"Reading CSV files needs pandas: pip install 'reclust\[data\]'"):
        read(csv(tmp_path, "1,2\n"))


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_a_small_file_does_not_become_a_large_table(name, tmp_path):
    text = ("1," * 9_999 + "1\n" + "1\n" * 9_999 if name == "x.csv" else "1,2,3,4\n" * 1_000_000).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name == "x.csv.gz" else text)
    with pytest.raises(DataError, match=rf"{name} has \d+ bytes but claims to hold"):
        read(tmp_path / name)


@pytest.mark.parametrize("format", ["%.18e", "%9.3f", "%.2g"])
def test_numbers_between_blanks_as_numpy_writes_them(format, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3)) * [1, 10, 100]
    np.savetxt(tmp_path / "x.txt", X, fmt=format)
    np.testing.assert_array_equal(read(tmp_path / "x.txt").samples, np.loadtxt(tmp_path / "x.txt"))


def test_rows_may_end_with_a_comma_where_the_header_does_not(tmp_path):
    found = read(csv(tmp_path, "size,price,age\n1.5,2,3,\n4.5,5,6,\n"))
    assert found.feature_names == ("size", "price", "age") and found.samples.tolist() == [[1.5, 2, 3], [4.5, 5, 6]]
