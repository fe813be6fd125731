"""Separated text (`.csv`, `.tsv`): which line holds names, which marks are decimal, which cells are empty."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from ..exceptions import warn
from .errors import DataError, reading
from .tables import Table, check_finite, check_names, missing_values, not_numeric

MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?"})
"""What programs write, in capitals or not, where there is no value."""
TRUTH = {"true": "1", "false": "0"}
"""What programs write, in capitals or not, for 1 and 0."""
_COMMAS = re.compile(r"[+-]?[\d.]*(,\d+)+(e[+-]?\d+)?", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")


def read_csv(path: Path, *, labels: str | None = None, ids: str | None = None) -> Table:
    """Comma, semicolon, tab or bar separated numbers, with or without a line of names.

    Whether the first line holds names `_holds_names` says. `labels` and `ids` are names of columns (without names: "0", "1",
    …). A first column without a name, which is how pandas writes an index, holds ids unless another one does. Commas may be
    decimal marks where they separate no cells. Columns of True and False are 1 and 0. Text is UTF-8, or UTF-16 where it says
    so, else what Excel writes on Windows, with a warning.
    """
    with reading(path):
        encoding, *others = _encodings(path)
        try:
            return _read(path, encoding, labels, ids)
        except UnicodeDecodeError:
            if not others:
                raise
            table = _read(path, others[0], labels, ids)
    warn(f"{path} is not UTF-8 and is read as Windows-1252, which Excel writes: see whether names, labels and ids are right, "
         "and if they are not save the file as 'CSV UTF-8'.")
    return table


def _encodings(path: Path) -> tuple[str, ...]:
    """By the mark that the file starts with; the second is for where the first does not fit."""
    with open(path, "rb") as stream:
        start = stream.read(3)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return ("utf-16",)
    return ("utf-8-sig",) if start == codecs.BOM_UTF8 else ("utf-8", "cp1252")


def _read(path: Path, encoding: str, labels: str | None, ids: str | None) -> Table:
    with open(path, encoding=encoding, newline="") as stream:
        first = stream.readline()
        if not first.strip():
            raise DataError(
                f"{path} is empty, or starts with an empty line; needed: numbers, or the names of the columns."
            )
        start = stream.tell()
        delimiter = _delimiter(first, stream.readline())
        stream.seek(start)
        cells = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter))]
        named = _holds_names(cells, csv.reader(stream, delimiter=delimiter))
        start = start if named else 0
        names = cells if named else [str(i) for i in range(len(cells))]
        indexed = named and names[0] == "" and len(names) > 1
        ids = "" if indexed and ids is None else ids
        check_names(names, (labels, ids), path)
        stream.seek(start)
        if not any(line.strip() for line in stream):
            raise DataError(f"{path} has names of columns and no rows.")
        columns = [i for i, name in enumerate(names) if name not in (labels, ids) and (i or not indexed)]
        values = _numbers(stream, start, delimiter, names, columns, path)
        stream.seek(start)
        texts = _texts(csv.reader(stream, delimiter=delimiter), names, (labels, ids), path)
    features = tuple(names[i] for i in columns)
    check_finite(values, features, path)
    return Table(values, _numbers_if_possible(texts[0]), texts[1], features if named else None)


def _delimiter(first: str, second: str) -> str:
    """The mark that cuts the first two lines into as many cells, and into numbers rather than text, else the most frequent
    one of the first, where its commas are not decimal marks."""
    for mark in ";\t|":
        if mark in first and any(_DECIMAL_COMMA.fullmatch(cell.strip()) for cell in first.split(mark)):
            return mark
    cut = {mark: list(csv.reader([first, second], delimiter=mark)) for mark in ",;\t|"}
    alike = [mark for mark, (names, *row) in cut.items() if row and 1 < len(names) == len(row[0])]
    numbers = {mark: sum(_is_number(cell) or _COMMAS.fullmatch(cell) is not None for cell in cut[mark][1]) / len(cut[mark][1])
               for mark in alike}
    return max(alike or cut, key=lambda mark: (numbers.get(mark, 0), len(cut[mark][0]), first.count(mark)))


def _holds_names(first: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
    """Whether the first line holds names: none of its cells is a number, or True or False; or most cells are text with a number
    below, since names of genes such as 2610005E09 are numbers; or they count 0, 1, 2, … or 1, 2, 3, …, as pandas names columns,
    and the first cell is empty or a row below has a decimal mark or the same number twice in those columns.
    """
    numbers = [i for i, cell in enumerate(first) if _is_number(cell) or _COMMAS.fullmatch(cell) or cell.lower() in TRUTH]
    counted = [[str(start + i) for i in range(len(numbers))] for start in (0, 1)]
    if not numbers:
        return True
    if len(numbers) < 2 or [first[i] for i in numbers] not in counted:
        second = next(iter(rows), [])
        above = [i for i, cell in enumerate(second[:len(first)]) if _is_number(cell) and i not in numbers
                 and first[i].lower() not in MISSING]
        return 2 * len(above) > len(first)
    # Rankings and the rows of a small example count too: there nothing tells names from data.
    return first[0] == "" or any(
        _is_no_count([row[i] for i in numbers]) for row in rows if len(row) == len(first)
    )


def _is_no_count(cells: Iterable[str]) -> bool:
    numbers = [cell for cell in (cell.strip().replace(",", ".") for cell in cells) if _is_number(cell)]
    return len(set(numbers)) < len(numbers) or not all(cell.lstrip("+-").isdigit() for cell in numbers)


def _numbers(
    stream: TextIO, start: int, delimiter: str, names: Sequence[str], columns: Sequence[int], path: Path
) -> NDArray[Any]:
    """The columns (n, d) of the rows from `start` on."""
    kept = None if len(columns) == len(names) else columns
    stream.seek(start)
    try:
        values = np.loadtxt(stream, delimiter=delimiter, usecols=kept, ndmin=2, comments=None, quotechar='"')
        n_columns = values.shape[1] if kept is None else len(names)
    except ValueError as error:
        stream.seek(start)
        if not _can_be_translated(csv.reader(stream, delimiter=delimiter), names, columns, path):
            raise DataError(f"{path} cannot be read: {error}.") from error
        stream.seek(start)
        lines = _translated(csv.reader(stream, delimiter=delimiter), columns)
        values, n_columns = np.loadtxt(lines, delimiter="\t", ndmin=2, comments=None), len(names)
    if not values.size or n_columns != len(names):
        raise DataError(f"{path}: {len(values)} rows of {n_columns} columns under {len(names)} names.")
    return values


def _can_be_translated(rows: Iterable[Sequence[str]], names: Sequence[str], columns: Sequence[int], path: Path) -> bool:
    """Whether decimal commas and columns of True and False are all that keeps the cells from being numbers; other reasons are
    raised, with what to do."""
    wrong: dict[str, str] = {}
    missing: Counter[str] = Counter()
    truths: Counter[str] = Counter()
    n_rows, commas, certain, doubtful = 0, "", False, False
    for number, row in enumerate(rows, 1):
        if row and len(row) != len(names):
            raise DataError(f"{path}: row {number} has {len(row)} cells, needed: {len(names)}.")
        n_rows += bool(row)
        for i in columns if row else ():
            cell = row[i].strip()
            if cell.lower() in MISSING:
                missing[names[i]] += 1
            elif cell.lower() in TRUTH:
                truths[names[i]] += 1
            elif _COMMAS.fullmatch(cell):
                commas = commas or f"{cell[:40]!r} in row {number} of {names[i]!r}"
                certain |= _THOUSANDS.fullmatch(cell) is None
                doubtful |= _DECIMAL_COMMA.fullmatch(cell) is None
            elif not _is_number(cell):
                wrong.setdefault(names[i], f"row {number} has {cell[:40]!r}")
            doubtful |= "." in cell
    for name, count in truths.items():
        if count + missing[name] < n_rows:
            wrong.setdefault(name, "True or False in some rows, numbers in others")
    if wrong:
        raise DataError(not_numeric(path, wrong))
    if commas and (doubtful or not certain):
        raise DataError(
            f"{path}: commas such as in {commas} may be decimal marks or group thousands. Save the numbers with decimal "
            "points and ungrouped, or read the file with pandas.read_csv, which takes decimal= and thousands=."
        )
    if missing:
        raise DataError(missing_values(path, missing.items(), n_rows))
    return bool(commas or truths)


def _translated(rows: Iterable[Sequence[str]], columns: Sequence[int]) -> Iterator[str]:
    """Lines of numbers separated by tabs."""
    return ("\t".join(TRUTH.get(row[i].strip().lower(), row[i].replace(",", ".")) for i in columns) for row in rows if row)


def _texts(
    rows: Iterable[Sequence[str]], names: list[str], wanted: Sequence[str | None], path: Path
) -> list[NDArray[Any] | None]:
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
