"""Tables of numbers: DataFrames and `.parquet`. What is not a number is named, with what to do about it."""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...utils.exceptions import warn
from ...utils.values import is_missing
from ..errors import DataError, reading, require
from .archives import allowance

IN_MEMORY = 2**30
"""Bytes of a Parquet file's content that are read into memory; more than that are unpacked to disk and mapped."""
FEW = 10
"""In fewer rows numbers may count by chance."""
MANY = 20
"""In fewer rows numbers that count from another one than 0 or 1 may be years or the like."""
_NAMES_OF_ROWS = re.compile(r"(?i:id|index|row|.*[_ ]id)|.*[a-z]I[dD]|Unnamed: 0")

_DATES = ("datetime64", "timedelta64", "timestamp", "date32", "date64", "duration", "period")
"""How pandas and Arrow name the types of columns of dates and times."""


class Table(NamedTuple):
    """Numbers (n, d), where they were asked for or came along, labels (n,) and ids (n,), and the names of the d columns."""

    values: NDArray[Any]
    labels: NDArray[Any] | None
    ids: NDArray[Any] | None
    names: tuple[str, ...] | None = None


def from_frame(frame: Any, *, labels: str | None = None, ids: str | None = None, drop: Sequence[str] = (),
               where: str = "The DataFrame") -> Table:
    """The numeric columns of a pandas DataFrame; its index gives the ids unless `ids` names a column."""
    if ids is not None and ids == frame.index.name and ids not in frame.columns:
        ids = None
    check_names(list(frame.columns), (labels, ids, *drop), where)
    features = frame.drop(columns=list({name for name in (labels, ids, *drop) if name is not None}))
    _refuse_other_than_numbers(features, where)
    if not features.size:
        raise DataError(f"{where} is empty: {features.shape[0]} rows of {features.shape[1]} numeric columns.")
    values = _values(features)
    check_finite(values, [str(name) for name in features.columns], where)
    return Table(
        values.astype(np.uint8) if values.dtype.kind == "b" else values,
        None if labels is None else frame[labels].to_numpy(),
        (frame.index if ids is None else frame[ids]).to_numpy(),
        tuple(map(str, features.columns)),
    )


def _values(frame: Any) -> NDArray[Any]:
    """The numbers (n, d) of numeric columns: of their type where all have the same, else as float64, NaN for missing ones."""
    plain = _without_objects(frame)
    kinds = set(plain.dtypes)
    kind = kinds.pop() if len(kinds) == 1 else None
    dtype = kind if isinstance(kind, np.dtype) else np.dtype(np.float64)
    return plain.to_numpy(dtype=dtype, na_value=np.nan) if dtype.kind == "f" else plain.to_numpy(dtype=dtype)


def _without_objects(frame: Any) -> Any:
    """The frame with floats in place of such numbers as Decimal, and of None."""
    loose = [name for name, kind in frame.dtypes.items() if kind.kind == "O"]
    plain = frame.copy(deep=False) if loose else frame
    for name in loose:
        plain[name] = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
    return plain


def check_numeric(frame: Any, where: str = "The DataFrame") -> None:
    """Refuse a DataFrame with columns that are not numbers, by their names, and warn of those that count its rows."""
    check_names(list(frame.columns), (), where)
    _refuse_other_than_numbers(frame, where)
    names, plain = [str(name) for name in frame.columns], _without_objects(frame)
    warn_of_row_numbers(names, lambda rows, columns: plain.iloc[rows, columns].to_numpy(dtype=np.float64, na_value=np.nan))


def warn_of_row_numbers(names: Sequence[str], part: Callable[[slice, int | slice], NDArray[np.float64]]) -> None:
    """Of columns that count 0, 1, 2, … or 1, 2, 3, …, in many rows from any whole number on, or are called as ids are and hold
    a whole number of its own for each row.

    part: the numbers in some rows and columns; whole columns are asked for only where there is a suspicion.
    """
    if len(names) < 2:
        return
    top = part(slice(MANY), slice(None))
    if len(top) < FEW:
        return
    started = top[0] == np.round(top[0]) if len(top) == MANY else np.isin(top[0], (0, 1))
    counting = started & (np.diff(top, axis=0) == 1).all(axis=0)
    found = [name for i, name in enumerate(names)
             if (counting[i] and (np.diff(part(slice(None), i)) == 1).all())
             or (_NAMES_OF_ROWS.fullmatch(name.strip()) and _one_each(part(slice(None), i)))]
    if found:
        shown = ", ".join(map(repr, found[:10])) + " …" * (len(found) > 10)
        what, remedy = (("looks like a row number and is", "leave it out, or make it") if len(found) == 1 else
                        ("look like row numbers and are", "leave them out, or make one of them"))
        warn(f"{shown} {what} clustered with the other columns: {remedy} the ids by frame.set_index({found[0]!r}), "
             f"reclust.data.read(…, ids={found[0]!r}) or --ids.")


def _one_each(column: NDArray[np.float64]) -> bool:
    """Whether (n,) numbers are whole and all different."""
    return bool((column == np.round(column)).all()) and len(np.unique(column)) == len(column)


def _refuse_other_than_numbers(frame: Any, where: str) -> None:
    wrong = {}
    for i, (name, kind) in enumerate(frame.dtypes.items()):
        if not _is_numeric(kind) and not _holds_numbers(frame.iloc[:, i], kind):
            _refuse_arrays(frame.iloc[:, i], where)
            wrong[str(name)] = str(kind)
    if wrong:
        raise DataError(not_numeric(where, wrong))


def _is_numeric(kind: Any) -> bool:
    kinds = require("pandas", purpose="Reading DataFrames").api.types
    return kind.kind == "b" or (kinds.is_numeric_dtype(kind) and kind.kind != "c")


def _holds_numbers(column: Any, kind: Any) -> bool:
    """Whether a column of objects holds numbers or nothing in each row, as databases give them; categories are none."""
    return kind.kind == "O" and kind.name != "category" and all(
        isinstance(cell, (Real, Decimal, np.bool_)) or is_missing(cell) for cell in column
    )


def _refuse_arrays(column: Any, where: str) -> None:
    if isinstance(next((cell for cell in column if not is_missing(cell)), None), (list, tuple, np.ndarray)):
        raise DataError(
            f"{where}: {column.name!r} holds an array in each row; needed: a number. Give the arrays themselves: "
            f"numpy.stack(frame[{column.name!r}].to_list())."
        )


def refuse_masked(values: Any) -> None:
    """Of an array, or of a list of such."""
    some = values if isinstance(values, (list, tuple)) else [values]
    count = sum(int(np.ma.count_masked(one)) for one in some if isinstance(one, np.ma.MaskedArray))
    if count:
        raise DataError(f"X has {count} masked values, which are missing ones: fill them in, or leave out the rows that have "
                        "some.")


def check_complete(frame: Any, where: str = "The DataFrame") -> None:
    """Refuse a DataFrame of numbers with missing or infinite values, by the names of their columns."""
    check_finite(_values(frame), [str(name) for name in frame.columns], where)


def read_parquet(path: Path, *, labels: str | None = None, ids: str | None = None, drop: Sequence[str] = ()) -> Table:
    """The columns of a Parquet file, as `from_frame` takes them."""
    parquet = require("pyarrow.parquet", purpose="Reading Parquet files")
    require("pandas", purpose="Reading Parquet files")
    with reading(path), parquet.ParquetFile(path) as file:
        size = 8 * file.metadata.num_rows * file.metadata.num_columns
        if size > allowance(path):
            raise DataError(f"{path} is refused: {size} bytes unpacked, far more than its own size allows.")
        if size > IN_MEMORY:
            return _map_parquet(file, path, labels, ids, drop)
        frame = file.read().to_pandas()
    return from_frame(frame, labels=labels, ids=ids, drop=drop, where=str(path))


def _map_parquet(file: Any, path: Path, labels: str | None, ids: str | None, drop: Sequence[str]) -> Table:
    """A large file, unpacked batch by batch into a temporary one on disk that is mapped and goes with the array.

    Parquet's columns are packed together: only unpacked rows can be read in random order.
    """
    handle, temporary = tempfile.mkstemp(suffix=".reclust")
    os.close(handle)
    mapped, parts, done, named = None, [], 0, ids is not None
    for batch in file.iter_batches(batch_size=65_536):
        frame = batch.to_pandas()
        named |= type(frame.index).__name__ != "RangeIndex"  # which would begin anew in each batch
        part = from_frame(frame, labels=labels, ids=ids, drop=drop, where=str(path))
        if mapped is None:
            shape = (file.metadata.num_rows, part.values.shape[1])
            mapped = np.memmap(temporary, dtype=np.result_type(part.values, np.float32), mode="w+", shape=shape)
            weakref.finalize(mapped, Path(temporary).unlink, missing_ok=True)
        mapped[done : done + len(part.values)] = part.values
        done += len(part.values)
        parts.append(part._replace(values=part.values[:0]))
    if mapped is None or done != len(mapped):
        raise DataError(f"{path} has {done} rows where it says {file.metadata.num_rows}.")
    own_labels, own_ids = (np.concatenate([getattr(part, kind) for part in parts]) if wanted else None
                           for kind, wanted in (("labels", labels is not None), ("ids", named)))
    return Table(mapped, own_labels, own_ids, parts[0].names)


def check_names(names: Sequence[Any], wanted: Sequence[str | None], where: Path | str) -> None:
    """Refuse columns of the same name, and names that no column has."""
    twice = [repr(name) for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"{where}: several columns have the same name, {', '.join(twice[:10])}{' …' * (len(twice) > 10)}; "
                        "rename them.")
    for name in wanted:
        if name is not None and name not in names:
            raise DataError(
                f"{where} has no column {name!r}; it has {', '.join(map(repr, names[:10]))}{' …' * (len(names) > 10)}."
            )


def check_finite(values: NDArray[Any], names: Sequence[str], where: Path | str) -> None:
    """Refuse columns (n, d) with missing or infinite values, by their names."""
    counts = (~np.isfinite(values)).sum(axis=0)
    if counts.any():
        raise DataError(missing_values(where, zip(names, counts.tolist(), strict=True), len(values)))


def missing_values(where: Path | str, counts: Iterable[tuple[str, int]], n: int) -> str:
    """What to say of columns of which so many of n rows are missing or infinite."""
    found = [f"{name!r} ({count} of {n} rows)" for name, count in counts if count]
    return (
        f"{where}: missing or infinite values in {', '.join(found[:10])}{' …' * (len(found) > 10)}; "
        "fill them in (SimpleImputer), or drop those rows or columns (--drop)."
    )


def not_numeric(where: Path | str, wrong: Mapping[str, str]) -> str:
    """What to say of columns that are not numbers."""
    shown = ", ".join(f"{name!r} ({what})" for name, what in list(wrong.items())[:10])
    dates = {name for name, what in wrong.items() if what.startswith(_DATES)}
    remedies = ["encode such columns (pandas.get_dummies, OneHotEncoder)"] * (len(dates) < len(wrong))
    remedies += ["give dates and times as numbers, such as days since the first one"] * bool(dates)
    said = ", ".join(remedies)
    return (
        f"{where}: not numeric: {shown}. {said[0].upper()}{said[1:]}, leave them out, "
        "or say which one holds labels or ids: reclust.data.read(…, drop=[…], labels=…, ids=…), --drop, --labels and --ids."
    )


def as_found(table: Table) -> dict[str, Any]:
    """As `assemble` takes it, with a word about columns that only count the rows."""
    names = table.names or [str(i) for i in range(table.values.shape[1])]
    warn_of_row_numbers(names, lambda rows, columns: table.values[rows, columns].astype(np.float64))
    return {"samples": table.values, "labels": table.labels, "ids": table.ids, "feature_names": table.names}
