"""Tables: DataFrames and `.parquet` files."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...utils.exceptions import require
from ...utils.values import is_missing
from ..errors import DataError, check_size, explain_read_errors, listed

# Fewer rows may count up by chance. Counting from other numbers than 0 or 1 (years) takes more.
FEW_ROWS, MANY_ROWS = 10, 20
_OBJECT = 128  # bytes that a cell takes in pandas if it is no number
_ID_NAMES = re.compile(r"(?i:id|index|row|.*[_ ]id)|.*[a-z]I[dD]|Unnamed: 0")


class ReadTable(NamedTuple):
    """Arguments for `assemble`; samples are a DataFrame if columns must be encoded or left out."""

    samples: Any
    labels: NDArray[Any] | None
    ids: NDArray[Any] | None
    feature_names: tuple[str, ...] | None = None


def from_frame(frame: Any, *, labels: str | None = None, ids: str | None = None,
               drop: Sequence[str] = (), where: str = "The DataFrame") -> ReadTable:
    """Take columns of a DataFrame; the ids are `ids`, or an index that does not count the rows."""
    if ids is not None and ids == frame.index.name and ids not in frame.columns:
        ids = None
    check_names(list(frame.columns), (labels, ids, *drop), where)
    features = frame.drop(columns=[name for name in {labels, ids, *drop} if name is not None])
    if not features.size:
        raise DataError(f"{where} is empty: its shape is {features.shape}.")
    plain = not _not_numeric(features, where) and not features.isna().any(axis=None)
    values = (numbers_of(features, where) if plain and not row_numbers(features)
              else features.reset_index(drop=True))
    numbered = ids is None and type(frame.index).__name__ == "RangeIndex"
    return ReadTable(values, None if labels is None else frame[labels].to_numpy(),
                     None if numbered else (frame.index if ids is None else frame[ids]).to_numpy(),
                     tuple(map(str, features.columns)))


def numbers_of(frame: Any, where: str) -> NDArray[Any]:
    """Return the numbers (n, d) of a DataFrame, or raise if it holds anything else."""
    _refuse(_not_numeric(frame, where), where)
    values = _values(frame)
    check_finite(values, [str(name) for name in frame.columns], where)
    return values.astype(np.uint8) if values.dtype.kind == "b" else values


def _refuse(wrong: Mapping[str, str], where: Path | str) -> None:
    """Raise if columns are not numeric, given what they hold instead."""
    if wrong:
        shown = listed(f"{name!r} ({what})" for name, what in wrong.items())
        raise DataError(f"{where}: not numeric: {shown}. Encode such columns or leave them out.")


def _values(frame: Any) -> NDArray[Any]:
    """Return numbers (n, d), of the columns' common type or float64, with NaN if missing."""
    loose = [name for name, kind in frame.dtypes.items() if kind.kind == "O"]
    plain = frame.copy(deep=False) if loose else frame
    for name in loose:  # Decimal, None and the like
        plain[name] = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
    kinds = set(plain.dtypes)
    kind = kinds.pop() if len(kinds) == 1 else None
    dtype = kind if isinstance(kind, np.dtype) else np.dtype(np.float64)
    missing = {"na_value": np.nan} if dtype.kind == "f" else {}
    return plain.to_numpy(dtype=dtype, **missing)  # type: ignore[no-any-return]


def row_numbers(frame: Any) -> list[str]:
    """Return columns that count the rows, or are named like ids and differ in every row."""
    if len(frame.columns) < 2 or len(frame) < FEW_ROWS:
        return []
    numbers = frame.loc[:, _are_numeric(frame)]
    named = np.array([bool(_ID_NAMES.fullmatch(str(name).strip())) for name in numbers], bool)
    some = (np.diff(_values(numbers[:FEW_ROWS]), axis=0) == 1).all(axis=0) | named
    x = _values(numbers.loc[:, some]).astype(np.float64)
    counted = (np.diff(x, axis=0) == 1).all(0) & (len(x) >= MANY_ROWS or np.isin(x[0], (0, 1)))
    unique = np.array([len(np.unique(column)) == len(column) for column in x.T], bool)
    whole = (x == np.round(x)).all(axis=0)
    return list(numbers.columns[some][whole & (counted | (named[some] & unique))])


def _are_numeric(frame: Any) -> NDArray[np.bool_]:
    """Tell which columns have a type of numbers or truths."""
    types = require("pandas", purpose="Reading DataFrames").api.types
    known = {kind: types.is_numeric_dtype(kind) or types.is_bool_dtype(kind)
             for kind in {*frame.dtypes}}
    return np.array([known[kind] for kind in frame.dtypes], dtype=bool)


def _not_numeric(frame: Any, where: str) -> dict[str, str]:
    """Return the columns that do not hold numbers, with a cell or the type of each."""
    wrong = {}
    for (name, kind), numeric in zip(frame.dtypes.items(), _are_numeric(frame), strict=True):
        if numeric:
            continue
        cells = [cell for cell in frame[name] if not is_missing(cell)]
        if kind.kind == "O" and kind.name != "category" and all(
                isinstance(cell, (Real, Decimal, np.bool_)) for cell in cells):
            continue
        odd = next((cell for cell in cells if not isinstance(cell, Real)), None)
        if isinstance(odd, (list, tuple, dict, set, np.ndarray)):
            raise DataError(f"{where}: {name!r} holds a {type(odd).__name__} in each row, not a "
                            f"number. Give arrays alone: numpy.stack(frame[{name!r}].to_list()).")
        wrong[str(name)] = f"such as {odd[:40]!r}" if isinstance(odd, str) else str(kind)
    return wrong


def check_names(names: Sequence[Any], wanted: Sequence[str | None], where: Path | str) -> None:
    """Raise if columns share a name, or if a wanted column does not exist."""
    twice = [repr(name) for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"{where}: several columns are named {listed(twice)}; rename them.")
    for name in wanted:
        if name is not None and name not in names:
            raise DataError(f"{where} has no column {name!r}; it has {listed(map(repr, names))}.")


def check_finite(values: NDArray[Any], names: Sequence[str], where: Path | str) -> None:
    """Raise if columns (n, d) have missing or infinite values."""
    counts = (~np.isfinite(values)).sum(axis=0)
    if counts.any():
        columns = listed(f"{name!r} ({count} of {len(values)} rows)"
                         for name, count in zip(names, counts.tolist(), strict=True) if count)
        raise DataError(f"{where}: missing or infinite values in {columns}; fill them in "
                        "(SimpleImputer), or give a DataFrame, whose missing values are filled in.")


def read_parquet(path: Path, *, labels: str | None = None, ids: str | None = None,
                 drop: Sequence[str] = ()) -> ReadTable:
    """Read the columns of a Parquet file as `from_frame` does, after a look at their types."""
    parquet = require("pyarrow.parquet", purpose="Reading Parquet files")
    types = require("pyarrow.types", purpose="Reading Parquet files")
    require("pandas", purpose="Reading Parquet files")
    with explain_read_errors(path):
        schema = parquet.read_schema(path)
    check_names(schema.names, (labels, ids, *drop), path)
    columns = {field.name: field.type for field in schema if field.name not in drop}
    sizes = {name: _cell_bytes(types, kind) for name, kind in columns.items()}
    _refuse({name: f"{columns[name]!s:.80}" for name in columns if sizes[name] is None}, path)
    # Equal strings share memory in a dictionary, as they do in the file.
    with explain_read_errors(path), parquet.ParquetFile(
            path, read_dictionary=list(columns)) as file:
        about, size = file.metadata, path.stat().st_size
        pages = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        check_size(path, about.num_rows * sum(filter(None, sizes.values())) + pages, size)
        table = file.read(columns=list(columns))
        check_size(path, sum(map(_text_bytes, table.columns)), size)
        for name in filter(None, (labels, ids)):  # pandas would make floats of them
            if (cells := table[name]).null_count and types.is_integer(cells.type):
                table = table.drop_columns([name]).append_column(name, cells.cast("string"))
        frame = table.to_pandas()
    return from_frame(frame, labels=labels, ids=ids, where=str(path))


def _cell_bytes(types: Any, kind: Any) -> int | None:
    """Return what a cell takes in pandas besides its text, or None if it cannot be read."""
    stored = getattr(kind, "storage_type", kind)
    if types.is_fixed_size_binary(stored):
        return _OBJECT + stored.byte_width  # type: ignore[no-any-return]
    if types.is_primitive(stored):
        return _OBJECT if types.is_temporal(stored) else 8
    return None if types.is_nested(kind) or stored is not kind else _OBJECT


def _text_bytes(column: Any) -> int:
    """Count the bytes of text that a column of dictionaries holds in all rows."""
    compute = require("pyarrow.compute", purpose="Reading Parquet files")
    return sum(compute.sum(compute.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
               for chunk in column.chunks if hasattr(chunk, "dictionary"))
