"""Tables of numbers: DataFrames, `.csv` and `.parquet`. What is not a number is named, with what to do about it."""

from __future__ import annotations

import csv
import os
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .archives import allowance
from .errors import DataError, reading, require

IN_MEMORY = 2**30
"""Bytes of a Parquet file's content that are read into memory; more than that are unpacked to disk and mapped."""


class Table(NamedTuple):
    """Numbers (n, d), where they were asked for or came along, labels (n,) and ids (n,), and the names of the d columns."""

    values: NDArray[Any]
    labels: NDArray[Any] | None
    ids: NDArray[Any] | None
    names: tuple[str, ...] | None = None


def read_csv(path: Path, *, labels: str | None = None, ids: str | None = None) -> Table:
    """Comma, semicolon, tab or bar separated numbers, with or without a line of names.

    The first line holds names if none of its cells is a number. `labels` and `ids` are names of columns (without names:
    "0", "1", …). A first column without a name, which is how pandas writes an index, holds ids.
    """
    with reading(path), open(path, encoding="utf-8-sig", newline="") as stream:
        first = stream.readline()
        if not first.strip():
            raise DataError(
                f"{path} is empty, or starts with an empty line; needed: numbers, or the names of the columns."
            )
        delimiter = max(",;\t|", key=first.count)
        cells = next(csv.reader([first], delimiter=delimiter))
        named = not any(_is_number(cell) for cell in cells)
        names = [cell.strip() for cell in cells] if named else [str(i) for i in range(len(cells))]
        if ids is None and named and names[0] == "" and len(names) > 1:
            ids = ""
        if not named:
            stream.seek(0)
        features = [name for name in names if name not in (labels, ids)]
        _check_names(names, (labels, ids), path)
        start = stream.tell()
        if not any(line.strip() for line in stream):
            raise DataError(f"{path} has names of columns and no rows.")
        stream.seek(start)
        try:
            columns = [names.index(name) for name in features]
            kept = None if len(columns) == len(names) else columns
            values = np.loadtxt(stream, delimiter=delimiter, usecols=kept, ndmin=2, comments=None, quotechar='"')
            n_columns = values.shape[1] if kept is None else len(names)
        except ValueError as error:
            stream.seek(start)
            _explain(csv.reader(stream, delimiter=delimiter), names, features, path)
            raise DataError(f"{path} cannot be read: {error}.") from error
        if not values.size or n_columns != len(names):
            raise DataError(f"{path}: {len(values)} rows of {n_columns} columns under {len(names)} names.")
        stream.seek(start)
        texts = _texts(csv.reader(stream, delimiter=delimiter), names, (labels, ids), path)
    _check_finite(values, features, str(path))
    return Table(values, _numbers_if_possible(texts[0]), texts[1], tuple(features) if named else None)


def from_frame(frame: Any, *, labels: str | None = None, ids: str | None = None, where: str = "The DataFrame") -> Table:
    """The numeric columns of a pandas DataFrame; its index gives the ids unless `ids` names a column."""
    _check_names(list(frame.columns), (labels, ids), where)
    features = frame.drop(columns=[name for name in (labels, ids) if name is not None])
    check_numeric(features, where)
    if not features.size:
        raise DataError(f"{where} is empty: {features.shape[0]} rows of {features.shape[1]} numeric columns.")
    kept = {kind for kind in features.dtypes if isinstance(kind, np.dtype)}
    dtype = kept.pop() if len(kept) == 1 and len(set(features.dtypes)) == 1 else np.dtype(np.float64)
    nullable = dtype.kind == "f"
    values = features.to_numpy(dtype=dtype, na_value=np.nan) if nullable else features.to_numpy(dtype=dtype)
    _check_finite(values, [str(name) for name in features.columns], where)
    return Table(
        values.astype(np.uint8) if dtype.kind == "b" else values,
        None if labels is None else frame[labels].to_numpy(),
        (frame.index if ids is None else frame[ids]).to_numpy(),
        tuple(map(str, features.columns)),
    )


def check_numeric(frame: Any, where: str = "The DataFrame") -> None:
    """Refuse a DataFrame with columns that are not numbers, by their names."""
    kinds = require("pandas", purpose="Reading DataFrames").api.types
    wrong = {
        str(name): str(kind)
        for name, kind in frame.dtypes.items()
        if not kinds.is_numeric_dtype(kind) or kind.kind == "c"
    }
    if wrong:
        raise DataError(_not_numeric(where, wrong))


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
    mapped, parts, done = None, [], 0
    for batch in file.iter_batches(batch_size=65_536):
        part = from_frame(batch.to_pandas(), labels=labels, ids=ids, where=str(path))
        if mapped is None:
            shape = (file.metadata.num_rows, part.values.shape[1])
            mapped = np.memmap(temporary, dtype=np.result_type(part.values, np.float32), mode="w+", shape=shape)
            weakref.finalize(mapped, Path(temporary).unlink, missing_ok=True)
        mapped[done : done + len(part.values)] = part.values
        done += len(part.values)
        parts.append(part._replace(values=part.values[:0]))
    if mapped is None or done != len(mapped):
        raise DataError(f"{path} has {done} rows where it says {file.metadata.num_rows}.")
    own_labels, own_ids = (None if name is None else np.concatenate([getattr(part, kind) for part in parts])
                           for kind, name in (("labels", labels), ("ids", ids)))
    return Table(mapped, own_labels, own_ids, parts[0].names)


def _check_names(names: Sequence[Any], wanted: Sequence[str | None], where: Path | str) -> None:
    if len(set(names)) != len(names):
        raise DataError(f"{where}: two columns have the same name; rename them.")
    for name in wanted:
        if name is not None and name not in names:
            raise DataError(
                f"{where} has no column {name!r}; it has {', '.join(map(repr, names[:10]))}{' …' * (len(names) > 10)}."
            )


def _check_finite(values: NDArray[Any], names: Sequence[str], where: str) -> None:
    missing = np.flatnonzero(~np.isfinite(values).all(axis=0))
    if len(missing):
        shown = ", ".join(repr(names[i]) for i in missing[:10])
        raise DataError(
            f"{where}: missing or infinite values in {shown}; fill them in (SimpleImputer) or drop those rows."
        )


def _not_numeric(where: Path | str, wrong: dict[str, str]) -> str:
    shown = ", ".join(f"{name!r} ({what})" for name, what in list(wrong.items())[:10])
    return (
        f"{where}: not numeric: {shown}. Encode such columns (pandas.get_dummies, OneHotEncoder), leave them out, "
        "or name the one that holds labels= or ids=."
    )


def _explain(rows: Any, names: list[str], features: list[str], path: Path) -> None:
    """Raises the error that says which cells are not numbers, where that is why a file cannot be read."""
    wrong: dict[str, str] = {}
    for number, row in enumerate(rows):
        if row and len(row) != len(names):
            raise DataError(f"{path}: row {number + 1} has {len(row)} cells, needed: {len(names)}.")
        for name, cell in zip(names, row, strict=False):
            if name in features and name not in wrong and not _is_number(cell):
                wrong[name] = f"row {number + 1} has {cell[:40]!r}" if cell.strip() else f"row {number + 1} is empty"
    if wrong:
        raise DataError(_not_numeric(path, wrong))


def _texts(rows: Any, names: list[str], wanted: Sequence[str | None], path: Path) -> list[NDArray[Any] | None]:
    if all(name is None for name in wanted):
        return [None] * len(wanted)
    found: dict[str, list[str]] = {name: [] for name in wanted if name is not None}
    for number, row in enumerate(filter(None, rows)):
        if len(row) != len(names):
            raise DataError(f"{path}: row {number + 1} has {len(row)} cells, needed: {len(names)}.")
        for name, cells in found.items():
            cells.append(row[names.index(name)])
    return [None if name is None else np.array(found[name]) for name in wanted]


def _numbers_if_possible(texts: NDArray[Any] | None) -> NDArray[Any] | None:
    try:
        return None if texts is None else texts.astype(np.int64)
    except ValueError:
        return texts


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
