"""Separated text (`.csv`, `.tsv`, `.txt`): which line holds names, which marks are decimal, which cells are empty."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from ...utils.exceptions import warn
from ..errors import DataError, reading
from .archives import allowance
from .tables import Table, check_finite, check_names, missing_values, not_numeric

MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?"})
"""What programs write, in capitals or not, where there is no value."""
TRUTH = {"true": "1", "false": "0"}
"""What programs write, in capitals or not, for 1 and 0."""
_COMMAS = re.compile(r"[+-]?[\d.]*(,\d+)+(e[+-]?\d+)?", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_GROUPED = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_STATED_DELIMITER = re.compile(r'"?sep=([^"\r\n])"?\s*', re.IGNORECASE)
_MARKS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


class _Layout(NamedTuple):
    """What cuts the rows from `start` on into cells; `names` of all columns, out of the file where `named`. Where `indexed`,
    the first column names the rows."""

    path: Path
    start: int
    delimiter: str
    names: list[str]
    named: bool
    indexed: bool

    def rows(self, stream: TextIO) -> Iterator[list[str]]:
        stream.seek(self.start)
        return csv.reader(stream, delimiter=self.delimiter)

    def misfit(self, what: str) -> DataError:
        return DataError(
            f"{self.path}: {what}. Cells are cut at {_MARKS.get(self.delimiter, repr(self.delimiter))}. Where that is wrong, a "
            "title or comments come first or names have line breaks, read it with pandas.read_csv(…, sep=, comment=, "
            "skiprows=, index_col=) and give the DataFrame."
        )

    def check_length(self, row: Sequence[str], number: int) -> None:
        if len(row) != len(self.names):
            raise self.misfit(f"row {number} has {len(row)} cells, needed: {len(self.names)}")


def read_csv(path: Path, *, labels: str | None = None, ids: str | None = None, drop: Sequence[str] = ()) -> Table:
    """Comma, semicolon, tab or bar separated numbers, with or without a line of names.

    Whether the first line holds names `_holds_names` says. `labels` and `ids`, and those in `drop`, which are left out, are
    names of columns (without names: "0", "1", …). A first column without a name, as pandas writes an index and R names of rows,
    holds ids unless another one does. A first line `sep=;`, Excel's, says the delimiter. Commas may be decimal marks where they
    separate no cells. Columns of True and False are 1 and 0. Text is UTF-8, or UTF-16 where it says so, else what Excel writes
    on Windows, with a warning.
    """
    with reading(path):
        if _is_packed(path):
            _refuse_bombs(path)
        encoding, *others = _encodings(path)
        try:
            return _read(path, encoding, labels, ids, drop)
        except UnicodeDecodeError:
            if not others:
                raise
            table = _read(path, others[0], labels, ids, drop)
    warn(f"{path} is not UTF-8 and is read as Windows-1252, which Excel writes: see whether names, labels and ids are right, "
         "and if they are not save the file as 'CSV UTF-8'.")
    return table


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if _is_packed(path) else open(path, "rb")


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _refuse_bombs(path: Path) -> None:
    """Packed files are unpacked while they are read, which must come to an end."""
    size, limit = 0, allowance(path)
    with _open(path) as stream:
        while block := stream.read(2**20):
            size += len(block)
            if size > limit:
                raise DataError(f"{path} is refused: more than {limit} bytes unpacked, far more than its own size allows.")


def _encodings(path: Path) -> tuple[str, ...]:
    """By the mark that the file starts with; the second is for where the first does not fit."""
    with _open(path) as stream:
        start = stream.read(3)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return ("utf-16",)
    return ("utf-8-sig",) if start == codecs.BOM_UTF8 else ("utf-8", "cp1252")


def _read(path: Path, encoding: str, labels: str | None, ids: str | None, drop: Sequence[str]) -> Table:
    with io.TextIOWrapper(_open(path), encoding=encoding, newline="") as stream:
        layout = _layout(stream, path, (labels, ids, *drop))
        ids = "" if layout.indexed and ids is None else ids
        check_names(layout.names, (labels, ids, *drop), path)
        stream.seek(layout.start)
        if not any(line.strip() for line in stream):
            raise DataError(f"{path} has names of columns and no rows.")
        columns = [i for i, name in enumerate(layout.names) if name not in (labels, ids, *drop) and (i or not layout.indexed)]
        if not columns:
            raise DataError(f"{path}: all columns are labels, ids or left out, and none is there to cluster.")
        values = _numbers(stream, layout, columns)
        texts = _texts(stream, layout, (labels, ids))
    features = tuple(layout.names[i] for i in columns)
    check_finite(values, features, path)
    return Table(values, _numbers_if_possible(texts[0]), texts[1], features if layout.named else None)


def _layout(stream: TextIO, path: Path, wanted: Sequence[str | None]) -> _Layout:
    """wanted: names of columns, of which one in the first line settles what that is; numbers may be those of columns."""
    top, first = 0, stream.readline()
    stated = _STATED_DELIMITER.fullmatch(first)
    if stated:
        top, first = stream.tell(), stream.readline()
    if not first.strip():
        raise DataError(f"{path} is empty, or starts with an empty line; needed: numbers, or the names of the columns.")
    start, second = stream.tell(), stream.readline()
    delimiter = stated[1] if stated else _delimiter(first, second)
    cells = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter))]
    below = _Layout(path, start, delimiter, cells, named=True, indexed=cells[0] == "" and len(cells) > 1)
    # A title and a column of decimal commas look like one name and two cells; R has quotes around names of columns and rows.
    if (len(cells) > 1 or first[0] == second[:1] == '"') and first[0] != "#" and _rows_have_names(cells, below.rows(stream)):
        below = below._replace(names=["", *cells], indexed=True)
    named = any(name in wanted for name in below.names if name and not _is_value(name))
    if named or _holds_names(below.names, below.rows(stream)):
        return below
    return _Layout(path, top, delimiter, [str(i) for i in range(len(cells))], named=False, indexed=False)


def _rows_have_names(first: Sequence[str], rows: Iterator[Sequence[str]]) -> bool:
    """Whether all rows have a cell more than the first line, as R writes them: names of their own before the values."""
    second = next(rows, [])
    if len(second) != len(first) + 1 or not second[-1].strip() or not any(map(_is_value, second[1:])):
        return False
    names = {second[0]}
    for n, row in enumerate(filter(None, rows), 2):
        names.add(row[0])
        if len(row) != len(second) or len(names) < n:
            return False
    return True


def _delimiter(first: str, second: str) -> str:
    """The mark that cuts the first two lines into as many cells, or the second into one more, into numbers rather than text,
    else the most frequent one of the first, where its commas are not decimal marks."""
    for mark in ";\t|":
        if mark in first and any(_DECIMAL_COMMA.fullmatch(cell.strip()) for cell in first.split(mark)):
            return mark
    cut = {mark: list(csv.reader([first, second], delimiter=mark)) for mark in _MARKS}
    alike, longer = ([mark for mark, (names, *row) in cut.items() if row and 1 < len(row[0]) == len(names) + more]
                     for more in (0, 1))
    numbers = {mark: sum(_is_number(cell) or _COMMAS.fullmatch(cell) is not None for cell in cut[mark][1]) / len(cut[mark][1])
               for mark in alike or longer}
    return max(alike or longer or cut, key=lambda mark: (
        numbers.get(mark, 0), len(cut[mark][0]), first.count(mark), mark in second and mark != ","
    ))


def _holds_names(first: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
    """Whether the first line holds names: none of its cells is a number, or True or False; or most cells are text with a number
    below, since names of genes such as 2610005E09 are numbers; or they count 0, 1, 2, … or 1, 2, 3, …, as pandas names columns,
    and the first cell is empty or a row below has a decimal mark or the same number twice in those columns.
    """
    numbers = [i for i, cell in enumerate(first) if _is_value(cell)]
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


def _numbers(stream: TextIO, layout: _Layout, columns: Sequence[int]) -> NDArray[Any]:
    """The columns (n, d) of the rows."""
    path, start, delimiter, names = layout[:4]
    kept = None if len(columns) == len(names) else columns
    stream.seek(start)
    try:
        values = np.loadtxt(stream, delimiter=delimiter, usecols=kept, ndmin=2, comments=None, quotechar='"')
        n_columns = values.shape[1] if kept is None else len(names)
    except ValueError as error:
        if not _can_be_translated(layout.rows(stream), layout, columns):
            raise DataError(f"{path} cannot be read: {str(error).rstrip('.')}.") from error
        lines = _translated(layout.rows(stream), columns)
        values, n_columns = np.loadtxt(lines, delimiter="\t", ndmin=2, comments=None), len(names)
    if not values.size or n_columns != len(names):
        raise layout.misfit(f"{len(values)} rows of {n_columns} columns under {len(names)} names")
    if delimiter == ";":
        _refuse_grouped(values, stream, layout, columns)
    return values


def _refuse_grouped(values: NDArray[Any], stream: TextIO, layout: _Layout, columns: Sequence[int]) -> None:
    """Points that group thousands, as where commas are decimal marks, are read as decimal ones: 7.700 beside 656."""
    whole, small = values == np.floor(values), (values >= 1) & (values < 1000)
    pointed = ~whole & small & np.isclose(np.round(1000 * values), 1000 * values, rtol=0, atol=1e-6)
    suspicious = (pointed | whole).all(0) & pointed.any(0) & (whole & small).any(0)
    suspects = {columns[i] for i in np.flatnonzero(suspicious).tolist()}
    telling: dict[int, str] = {}  # 7.700, which nobody writes who means 7.7
    plain = set()
    for row in filter(None, layout.rows(stream) if suspects else ()):
        for i in list(suspects):
            cell = row[i].strip()
            if "." not in cell:
                plain.add(i)
            elif _GROUPED.fullmatch(cell) is None:
                suspects.remove(i)
            elif cell.endswith("0"):
                telling.setdefault(i, cell)
        if not suspects:
            return
    for i in sorted(suspects & plain & telling.keys()):
        raise DataError(
            f"{layout.path}: points such as in {telling[i]!r} of {layout.names[i]!r}, with whole numbers "
            "beside them, seem to group thousands. Save the numbers ungrouped, or read the file by pandas.read_csv, which "
            "takes decimal= and thousands=.")


def _can_be_translated(rows: Iterable[Sequence[str]], layout: _Layout, columns: Sequence[int]) -> bool:
    """Whether decimal commas and columns of True and False are all that keeps the cells from being numbers; other reasons are
    raised, with what to do."""
    path, names = layout.path, layout.names
    wrong: dict[str, str] = {}
    missing: Counter[str] = Counter()
    truths: Counter[str] = Counter()
    n_rows, commas, certain, doubtful = 0, "", False, False
    for number, row in enumerate(rows, 1):
        if not row:
            continue
        layout.check_length(row, number)
        n_rows += 1
        for i in columns:
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
                if len(names) == 1 and _is_cut_by_blanks(cell):
                    raise layout.misfit(f"blanks seem to separate the cells, as in row {number}, {cell[:40]!r}")
                wrong.setdefault(names[i], f"row {number} has {cell[:40]!r}")
            doubtful |= "." in cell
    for name, count in truths.items():
        if count + missing[name] < n_rows:
            wrong.setdefault(name, "True or False in some rows, numbers in others")
    if wrong and names[0].startswith("#"):
        raise layout.misfit(f"{names[0][:40]!r} seems to be a comment and not the name of a column")
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


def _texts(stream: TextIO, layout: _Layout, wanted: Sequence[str | None]) -> list[NDArray[Any] | None]:
    if all(name is None for name in wanted):
        return [None] * len(wanted)
    found: dict[str, list[str]] = {name: [] for name in wanted if name is not None}
    for number, row in enumerate(filter(None, layout.rows(stream)), 1):
        layout.check_length(row, number)
        for name, cells in found.items():
            cells.append(row[layout.names.index(name)])
    return [None if name is None else np.array(found[name]) for name in wanted]


def _numbers_if_possible(texts: NDArray[Any] | None) -> NDArray[Any] | None:
    try:
        return None if texts is None else texts.astype(np.int64)
    except (ValueError, OverflowError):
        return texts


def _is_value(cell: str) -> bool:
    return _is_number(cell) or _COMMAS.fullmatch(cell) is not None or cell.lower() in TRUTH


def _is_cut_by_blanks(cell: str) -> bool:
    parts = cell.split()
    return len(parts) > 1 and any(map(_is_number, parts))


def _is_number(cell: str) -> bool:
    """As NumPy reads files; Python also takes 1_000 and digits of other scripts."""
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell
