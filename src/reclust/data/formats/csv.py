"""Delimited text (`.csv`, `.tsv`, `.txt`, also gzipped), parsed by pandas."""

import csv
import gzip
import re
from collections.abc import Sequence
from contextlib import suppress
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from ...utils.exceptions import require, warn
from ..errors import DataError, check_size, explain_read_errors
from .tables import ReadTable, check_names, from_frame

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
# Lines from which delimiter, header and decimal mark are guessed, if they are not too long.
_HEAD, _HEAD_CHARACTERS = 50, 2**21


class _Dialect(NamedTuple):
    """How a file is written; `names` are those of all columns, "" for a column of row names."""

    delimiter: str
    decimal: str
    names: list[str]
    header_lines: int


def read_csv(path: Path, *, labels: str | None = None, ids: str | None = None,
             drop: Sequence[str] = ()) -> ReadTable:
    """Read columns, named "0", "1", … without a header; a first one without a name holds ids."""
    with explain_read_errors(path):
        with _open(path, "rb") as stream:
            wide = stream.read(2) in (b"\xff\xfe", b"\xfe\xff")
        try:
            return _read(path, "utf-16" if wide else "utf-8-sig", labels, ids, drop)
        except UnicodeDecodeError:
            table = _read(path, "cp1252", labels, ids, drop)
    warn(f"{path} is not UTF-8 and is read as Windows-1252, which Excel writes: check its names, "
         "labels and ids, and if they are wrong save the file as 'CSV UTF-8'.")
    return table


def _open(path: Path, mode: str, encoding: str | None = None) -> IO[Any]:
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, mode, encoding=encoding)  # type: ignore[no-any-return]


def _read(path: Path, encoding: str, labels: str | None, ids: str | None,
          drop: Sequence[str]) -> ReadTable:
    with _open(path, "rt", encoding) as stream:
        head = list(islice(StringIO(stream.read(_HEAD_CHARACTERS)), _HEAD))
    if len(head) > 1 and not head[-1].endswith("\n"):
        head.pop()  # cut off, or the last line of a short file
    dialect = _sniff(head, path, (labels, ids, *drop))
    if dialect.names[0] == "" and ids is None:
        ids = ""
    check_names(dialect.names, (labels, ids, *drop), path)
    _check_cells(path, len(dialect.names))
    pandas = require("pandas", purpose="Reading CSV files")
    is_new = tuple(map(int, pandas.__version__.split(".")[:2])) >= (3, 1)  # and always exact
    frame = pandas.read_csv(
        path, encoding=encoding, sep=dialect.delimiter, decimal=dialect.decimal, header=None,
        names=dialect.names, skiprows=dialect.header_lines, index_col=False, skipinitialspace=True,
        na_values=["?"], low_memory=False, **{} if is_new else {"float_precision": "round_trip"},
        converters={labels: str.strip, ids: str.encode}).copy()  # b"NA" stays; joins the columns
    if ids is not None:
        frame[ids] = frame[ids].str.decode("utf-8").str.strip()
    unnamed = [""] if "" in dialect.names and ids != "" else []
    table = from_frame(frame, labels=labels, ids=ids, drop=[*drop, *unnamed], where=str(path))
    plain, samples, classes = isinstance(table.samples, np.ndarray), table.samples, table.labels
    with suppress(ValueError, OverflowError):
        classes = None if classes is None else classes.astype(np.int64)
    return ReadTable(samples.astype(np.float64, copy=False) if plain else samples,
                     classes, None if ids is None else table.ids,
                     table.feature_names if dialect.header_lines else None)


def _check_cells(path: Path, columns: int) -> None:
    """Raise if the table would take much more memory than its text."""
    rows, size, times = 0, path.stat().st_size, 1100 if path.suffix.lower() == ".gz" else 20
    with _open(path, "rb") as stream:
        while block := stream.read(2**20):
            rows += max(block.count(b"\n"), block.count(b"\r"))
            check_size(path, 8 * rows * columns, size, times)


def _sniff(head: Sequence[str], path: Path, wanted: Sequence[str | None]) -> _Dialect:
    lines = [line for line in head if line.strip()]
    if not lines:
        raise DataError(f"{path} is empty; needed: rows of numbers, with or without a header.")
    delimiter = _delimiter(lines)
    first, *rows = _rows(lines, delimiter)
    longer = {len(row) - len(first) for row in rows}
    if longer == {1} and not any(row[-1] for row in rows):  # rows end with a delimiter
        first.append("")
    elif len(first) > 1 and longer == {1}:  # R writes no name above the names of the rows
        first.insert(0, "")
    elif longer and max(longer) > 0:
        raise DataError(
            f"{path}: rows have up to {len(first) + max(longer)} cells, the first line has "
            f"{len(first)}. If {delimiter!r} does not separate cells or comments come first, give "
            "the DataFrame of pandas.read_csv(…, sep=, comment=, skiprows=, index_col=).")
    has_header = _is_header(first, rows, wanted)
    names = first if has_header else [str(i) for i in range(len(first))]
    commas = delimiter != "," and any(map(_DECIMAL_COMMA.fullmatch, sum(rows, first)))
    header_lines = head.index(lines[0]) + 1 if has_header else 0
    return _Dialect(delimiter, "," if commas else ".", names, header_lines)


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Cut lines into cells, up to one that is too long for the csv module, not for pandas."""
    rows = []
    with suppress(csv.Error):
        for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True):
            rows.append([cell.strip() for cell in row])
    return rows


def _delimiter(lines: Sequence[str]) -> str:
    """Return the first delimiter that cuts the first two lines into equally many cells."""
    for mark in [mark for mark in "\t;|" if mark in lines[0]]:
        counts = [len(row) for row in _rows(lines[:2], mark)]
        if 1 < counts[0] and counts[-1] - counts[0] in (0, 1):
            return mark
    first, second = lines[0].split(), lines[min(1, len(lines) - 1)].split()
    blanks = len(first) == len(second) > 1 and all(map(_is_number, second))
    return " " if blanks and "," not in lines[0] else ","


def _is_header(first: Sequence[str], rows: Sequence[Sequence[str]],
               wanted: Sequence[str | None]) -> bool:
    """Guess whether the first line holds names, or numbers that count the columns, as in pandas."""
    numbers = [cell for cell in first if _is_number(cell)]
    if not numbers or any(cell in wanted for cell in first if cell and not _is_number(cell)):
        return True
    above = sum(_is_number(below) and not _is_number(cell)
                for cell, below in zip(first, rows[0] if rows else (), strict=False))
    if 2 * above > len(first):
        return True
    counted = [[str(start + i) for i in range(len(numbers))] for start in (0, 1)]
    return len(numbers) > 1 and numbers in counted and (first[0] == "" or any(
        len(set(row)) < len(row) or any({".", ","} & set(cell) for cell in row) for row in rows))


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return cell.lower() in ("true", "false")
    return True
