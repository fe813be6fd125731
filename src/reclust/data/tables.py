"""Tables of numbers: DataFrames and `.parquet`. What is not a number is named, with what to do about it."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..exceptions import warn
from .archives import allowance
from .errors import DataError, reading, require

IN_MEMORY = 2**30
"""Bytes of a Parquet file's content that are read into memory; more than that are unpacked to disk and mapped."""
FEW = 10
"""In fewer rows numbers may count by chance."""
_NAMES_OF_ROWS = frozenset({"id", "index", "row", "sample_id"})


class Table(NamedTuple):
    """Numbers (n, d), where they were asked for or came along, labels (n,) and ids (n,), and the names of the d columns."""

    values: NDArray[Any]
    labels: NDArray[Any] | None
    ids: NDArray[Any] | None
    names: tuple[str, ...] | None = None


def from_frame(frame: Any, *, labels: str | None = None, ids: str | None = None, where: str = "The DataFrame") -> Table:
    """The numeric columns of a pandas DataFrame; its index gives the ids unless `ids` names a column."""
    if ids is not None and ids == frame.index.name and ids not in frame.columns:
        ids = None
    check_names(list(frame.columns), (labels, ids), where)
    features = frame.drop(columns=[name for name in (labels, ids) if name is not None])
    _refuse_other_than_numbers(features, where)
    if not features.size:
        raise DataError(f"{where} is empty: {features.shape[0]} rows of {features.shape[1]} numeric columns.")
    kept = {kind for kind in features.dtypes if isinstance(kind, np.dtype)}
    dtype = kept.pop() if len(kept) == 1 and len(set(features.dtypes)) == 1 else np.dtype(np.float64)
    nullable = dtype.kind == "f"
    values = features.to_numpy(dtype=dtype, na_value=np.nan) if nullable else features.to_numpy(dtype=dtype)
    check_finite(values, [str(name) for name in features.columns], where)
    return Table(
        values.astype(np.uint8) if dtype.kind == "b" else values,
        None if labels is None else frame[labels].to_numpy(),
        (frame.index if ids is None else frame[ids]).to_numpy(),
        tuple(map(str, features.columns)),
    )


def check_numeric(frame: Any, where: str = "The DataFrame") -> None:
    """Refuse a DataFrame with columns that are not numbers, by their names, and warn of those that count its rows."""
    _refuse_other_than_numbers(frame, where)
    names = [str(name) for name in frame.columns]
    warn_of_row_numbers(names, lambda rows, columns: frame.iloc[rows, columns].to_numpy(dtype=np.float64, na_value=np.nan))


def warn_of_row_numbers(names: Sequence[str], part: Callable[[slice, int | slice], NDArray[np.float64]]) -> None:
    """Of columns that count 0, 1, 2, … or 1, 2, 3, …, or are called as ids are and hold a whole number of its own for each row.

    part: the numbers in some rows and columns; whole columns are asked for only where there is a suspicion.
    """
    if len(names) < 2:
        return
    top = part(slice(FEW), slice(None))
    if len(top) < FEW:
        return
    counting = (top == top[0] + np.arange(FEW)[:, None]).all(axis=0) & np.isin(top[0], (0, 1))
    found = [name for i, name in enumerate(names)
             if (counting[i] and (np.diff(part(slice(None), i)) == 1).all())
             or (name.strip().lower() in _NAMES_OF_ROWS and _one_each(part(slice(None), i)))]
    if found:
        shown = ", ".join(map(repr, found[:10])) + " …" * (len(found) > 10)
        what, remedy = (("looks like a row number and is", "name it with ids=…/--ids, or leave it out") if len(found) == 1 else
                        ("look like row numbers and are", "leave them out; ids=…/--ids can name one of them"))
        warn(f"{shown} {what} clustered with the other columns: {remedy}.")


def _one_each(column: NDArray[np.float64]) -> bool:
    """Whether (n,) numbers are whole and all different."""
    return bool((column == np.round(column)).all()) and len(np.unique(column)) == len(column)


def _refuse_other_than_numbers(frame: Any, where: str) -> None:
    kinds = require("pandas", purpose="Reading DataFrames").api.types
    wrong = {
        str(name): str(kind)
        for name, kind in frame.dtypes.items()
        if not kinds.is_numeric_dtype(kind) or kind.kind == "c"
    }
    if wrong:
        raise DataError(not_numeric(where, wrong))


def check_complete(frame: Any, where: str = "The DataFrame") -> None:
    """Refuse a DataFrame with missing values, by the names of their columns."""
    counts = frame.isna().sum()
    if counts.any():
        raise DataError(missing_values(where, [(str(name), int(count)) for name, count in counts.items()], len(frame)))


def read_parquet(path: Path, *, labels: str | None = None, ids: str | None = None) -> Table:
    """The columns of a Parquet file, as `from_frame` takes them."""
    parquet = require("pyarrow.parquet", purpose="Reading Parquet files")
    require("pandas", purpose="Reading Parquet files")
    with reading(path), parquet.ParquetFile(path) as file:
        size = 8 * file.metadata.num_rows * file.metadata.num_columns
        if size > allowance(path):
            raise DataError(f"{path} is refused: {size} bytes unpacked, far more than its own size allows.")
        if size > IN_MEMORY:
            return _map_parquet(file, path, labels, ids)
        frame = file.read().to_pandas()
    return from_frame(frame, labels=labels, ids=ids, where=str(path))


def _map_parquet(file: Any, path: Path, labels: str | None, ids: str | None) -> Table:
    """A large file, unpacked batch by batch into a temporary one on disk that is mapped and goes with the array.

    Parquet's columns are packed together: only unpacked rows can be read in random order.
    """
    handle, temporary = tempfile.mkstemp(suffix=".reclust")
    os.close(handle)
    mapped, parts, done, named = None, [], 0, ids is not None
    for batch in file.iter_batches(batch_size=65_536):
        frame = batch.to_pandas()
        named |= type(frame.index).__name__ != "RangeIndex"  # which would begin anew in each batch
        part = from_frame(frame, labels=labels, ids=ids, where=str(path))
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
    if len(set(names)) != len(names):
        raise DataError(f"{where}: two columns have the same name; rename them.")
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
        "fill them in (SimpleImputer), or drop those rows or columns."
    )


def not_numeric(where: Path | str, wrong: Mapping[str, str]) -> str:
    """What to say of columns that are not numbers."""
    shown = ", ".join(f"{name!r} ({what})" for name, what in list(wrong.items())[:10])
    return (
        f"{where}: not numeric: {shown}. Encode such columns (pandas.get_dummies, OneHotEncoder), leave them out, "
        "or name the one that holds labels= or ids=."
    )
