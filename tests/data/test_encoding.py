"""Mixed columns become numbers: each kind as a plain transcription says, and the same from a file."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from reclust.data.encoding import TableEncoder
from reclust.data.errors import DataError
from reclust.utils.values import from_json, to_json

pd = pytest.importorskip("pandas")
N = 60
rng = np.random.default_rng(0)
COLORS = rng.choice(["red", "green", "blue"], N)
STAMPS = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D")
COMMENTS = [f"the {rng.choice(['parcel', 'letter'])} came {rng.choice(['late', 'early'])} on day {i}" for i in range(N)]


def only(cells):
    encoder = TableEncoder.fit(pd.DataFrame({"a": cells, "b": rng.normal(size=len(cells))}))
    return encoder.columns[0]


@pytest.mark.parametrize(("cells", "kind"), [
    (rng.normal(size=N), "number"), (pd.array([None, *range(N - 1)], dtype="Int64"), "number"),
    (pd.Series([*map(str, rng.normal(size=N - 2)), "unknown", "-"]), "number"), (pd.to_timedelta(np.arange(N) % 7, "D"), "number"),
    (rng.random(N) < 0.3, "flag"), (pd.Series([True, None, False] * 20, dtype=object), "flag"), (np.arange(N) % 2.0, "flag"),
    (STAMPS, "date"), (STAMPS.strftime("%d.%m.%Y"), "date"), ([datetime.date(2020, 1, 1 + i % 9) for i in range(N)], "date"),
    (COLORS, "level"), (pd.Categorical(rng.integers(0, 4, N)), "level"), (COMMENTS, "topic"),
])
def test_the_kind_of_a_column_is_found(cells, kind):
    assert {feature.kind for feature in only(cells).features} == {kind}


@pytest.mark.parametrize("cells", [[f"C{i:03}" for i in range(N)], [None] * N, ["same"] * N, rng.permutation(N) + 1000,
                                   [np.inf, -np.inf] * (N // 2), [f"2020-13-{40 + i}" for i in range(N)]])
def test_columns_that_name_the_rows_or_say_nothing_are_left_out(cells):
    encoder = TableEncoder.fit(pd.DataFrame({"user id": cells, "b": rng.normal(size=N)}))
    assert encoder.left_out == ("user id",) and encoder.names == ("b",)
    with pytest.raises(DataError, match="No column to cluster: 'user id' name the rows"):
        TableEncoder.fit(pd.DataFrame({"user id": [f"C{i}" for i in range(N)]}))


def test_dates_are_years():
    years = only(STAMPS).encode(pd.Series(["2020-01-01", "2021-07-02 12:00", None]))[:, 0]
    np.testing.assert_allclose(years[:2], [2020.0, 2021.5], atol=0.003)
    day_first = only(STAMPS.strftime("%d/%m/%Y"))
    np.testing.assert_allclose(day_first.encode(pd.Series(["02/07/2021"])), 2021.5, atol=0.003)
    assert np.isfinite(only(STAMPS).encode(pd.Series(["9999-12-31"]))).all()  # as some tables write "never"


def test_a_category_has_the_variance_of_one_standardised_column():
    column = only(np.repeat(["a", "b", "c"], 20))
    encoded = column.encode(pd.Series(np.repeat(["a", "b", "c"], 20)))
    scales = [feature.scale for feature in column.features]
    np.testing.assert_allclose((encoded / scales).var(0).sum(), 1)
    np.testing.assert_allclose(column.encode(pd.Series([None, "unheard of"])), 1 / 3)


def test_rare_levels_become_one():
    column = only(["a"] * 30 + ["b"] * 28 + ["c", "d"])
    assert [feature.name for feature in column.features] == ["a=a", "a=b", "a=other"]
    np.testing.assert_array_equal(column.encode(pd.Series(["d", "new", "a"])), [[0, 0, 1], [0, 0, 1], [1, 0, 0]])


def test_missing_cells_are_marked_only_if_they_tell_something():
    n = 400
    x = rng.normal(size=n)
    frame = pd.DataFrame({"x": x, "related": np.where(x > 1, np.nan, rng.normal(size=n)),
                          "by chance": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))})
    encoder = TableEncoder.fit(frame)
    assert [feature.name for feature in encoder.features] == ["x", "related", "related missing", "by chance"]
    encoded = encoder.encode(frame)
    np.testing.assert_array_equal(encoded[:, 2], x > 1)
    np.testing.assert_array_equal(np.unique(encoded[x > 1, 1]), frame["related"].median())


def test_an_encoder_is_stored_as_plain_data():
    frame = pd.DataFrame({"n": rng.normal(size=N), "c": COLORS, "t": STAMPS, "s": COMMENTS, "f": rng.random(N) < 0.5})
    encoder = TableEncoder.fit(frame)
    stored = from_json(to_json(encoder))
    np.testing.assert_array_equal(stored.encode(frame.iloc[::-1]), encoder.encode(frame)[::-1])
    assert stored == encoder and np.isfinite(encoder.encode(frame)).all()
    topics = [feature.name for feature in encoder.features if feature.kind == "topic"]
    assert topics and "late" in " ".join(topics)


@pytest.mark.parametrize("library", [pytest.param("polars", marks=pytest.mark.extras), "pyarrow"])
def test_tables_of_other_libraries_are_read_alike(library):
    from reclust.data.accept import accept

    frame = pd.DataFrame({"n": rng.normal(size=N), "c": COLORS, "t": STAMPS, "f": pd.array([True, None, False] * 20, dtype="boolean")})
    module = pytest.importorskip(library)
    pytest.importorskip("pyarrow")
    table = module.from_pandas(frame) if library == "polars" else module.Table.from_pandas(frame)
    np.testing.assert_allclose(accept(table).array, accept(frame).array)


@pytest.mark.parametrize("common", ["Mrs", "Mrs of", ""])
@pytest.mark.filterwarnings("error")
def test_text_whose_common_words_are_in_every_row_is_left_out(common):
    encoder = TableEncoder.fit(pd.DataFrame({"name": [f"{common} A{i} B{i} C{i}x" for i in range(N)], "x": rng.normal(size=N)}))
    assert encoder.left_out == ("name",)
