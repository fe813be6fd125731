"""Tables as Markdown, LaTeX, CSV and text for a terminal: the same table gives the same bytes."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from ...utils.files import write_text
from .table import Cell, Row, Table

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"
_LATEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
          "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
          "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "α": r"$\alpha$", "|": r"\textbar{}", "–": "--", "…": r"\ldots{}"}


def markdown(table: Table) -> str:
    """A GitHub table: the first row is the heading, best cells are bold, columns of numbers line up on the right."""

    def shown(cell: Cell) -> str:
        text = _markdown(cell.text)
        return (f"**{text}**" if cell.best else text) + (f" ({_markdown(cell.aside)})" if cell.aside else "")

    lines = [f"**{_markdown(table.title)}**", "", _piped(map(_markdown, table.columns)),
             _piped(["---", *("---:" if _numeric(table, i) else "---" for i in range(len(table.columns) - 1))])]
    lines += [_piped([_markdown(row.label), *map(shown, row.cells)]) for block in table.blocks for row in block]
    return "\n".join([*lines, *(["", _markdown(table.note)] if table.note else []), ""])


def latex(table: Table) -> str:
    """A `table` environment for the booktabs package, blocks between rules."""

    def shown(cell: Cell) -> str:
        text = _latex(cell.text)
        aside = rf" {{\scriptsize ({_latex(cell.aside)})}}" if cell.aside else ""
        return (rf"\textbf{{{text}}}" if cell.best else text) + aside

    blocks = ["\n".join(" & ".join([_latex(row.label), *map(shown, row.cells)]) + r" \\" for row in block)
              for block in table.blocks]
    caption = _latex(f"{table.title}. {table.note}".strip())
    return "\n".join([
        r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
        r"\toprule", " & ".join(map(_latex, table.columns)) + r" \\", r"\midrule", "\n\\midrule\n".join(blocks),
        r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def comma_separated(*tables: Table) -> str:
    """One header for all: the title of the table, the label of the row, and every column's main number with what else is known
    of it; empty where a table has no such column."""
    made, header = [], dict.fromkeys(["table", ""])
    for table in tables:
        columns = list(map(_in_a_line, table.columns[1:]))
        for row in _rows(table):
            numbers = {f"{column} {name}".strip(): _plain(cell.numbers.get(name)) for i, (column, cell) in
                       enumerate(zip(columns, row.cells, strict=True)) for name in _names(table, i)}
            made.append({"table": _in_a_line(table.title), "": _in_a_line(row.label), **numbers})
            header |= dict.fromkeys(numbers)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(header), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(made)
    return out.getvalue()


def terminal(table: Table, *, bold: tuple[str, str] = (BOLD, PLAIN)) -> str:
    """Columns that line up. bold: what to put around the best of a block; ("*", "*") where there is no bold."""

    def shown(cell: Cell) -> str:
        return f"{bold[0]}{_plainly(cell)}{bold[1]}" if cell.best else _plainly(cell)

    columns = [_in_a_line(column) for column in table.columns]
    blocks = [[[_in_a_line(row.label), *map(shown, row.cells)] for row in block] for block in table.blocks]
    rows = [columns, *(row for block in blocks for row in block)]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    rule = "─" * (sum(widths) + 2 * (len(widths) - 1))

    def line(texts: Sequence[str]) -> str:
        spaces = [" " * (width - _width(text)) for text, width in zip(texts, widths, strict=True)]
        parts = [texts[0] + spaces[0], *(space + text for text, space in zip(texts[1:], spaces[1:], strict=True))]
        return "  ".join(parts).rstrip()

    lines = [_in_a_line(table.title), rule, line(columns)]
    for block in blocks:
        lines += [rule, *map(line, block)]
    return "\n".join([*lines, rule, *([table.note] if table.note else []), ""])


FORMATS: dict[str, Callable[[Table], str]] = {"md": markdown, "tex": latex, "csv": comma_separated, "txt": terminal}
"""By the ending of a file's name."""


def together(tables: Sequence[Table], ending: str, *, bold: tuple[str, str] = ("*", "*")) -> str:
    """All tables as one text of this format."""
    if ending == "csv":
        return comma_separated(*tables)
    return "\n".join(map(partial(terminal, bold=bold) if ending == "txt" else FORMATS[ending], tables))


def write(tables: Iterable[Table], path: str | os.PathLike[str]) -> None:
    """All tables into one file, of the format that the ending of its name says."""
    path = Path(path)
    ending = path.suffix.removeprefix(".")
    if ending not in FORMATS:
        raise ValueError(f"{path.name} does not say which format to write: end it with .{', .'.join(FORMATS)}.")
    write_text(path, together(list(tables), ending))


def _numeric(table: Table, column: int) -> bool:
    return any(row.cells[column].numbers for row in _rows(table))


def _rows(table: Table) -> list[Row]:
    return [row for block in table.blocks for row in block]


def _names(table: Table, column: int) -> list[str]:
    """What the cells of a column have numbers for, in the order in which they first appear; the main one is first."""
    found = dict.fromkeys(name for row in _rows(table) for name in row.cells[column].numbers)
    return sorted(found, key=lambda name: name != "") or [""]


def _plain(number: float | str | None) -> str:
    if number is None or isinstance(number, float) and math.isnan(number):
        return ""
    return _in_a_line(number) if isinstance(number, str) else f"{number:.10g}"


def _plainly(cell: Cell) -> str:
    return _in_a_line(f"{cell.text} ({cell.aside})" if cell.aside else cell.text)


def _piped(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    text = re.sub(r"([\\`*_\[\]|#~])", r"\\\1", text)
    return _in_a_line(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def _latex(text: str) -> str:
    return _in_a_line("".join(_LATEX.get(character, character) for character in text))


def _in_a_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _width(text: str) -> int:
    """Columns of a terminal: wide characters take two, combining ones and codes of colour none."""
    text = text.replace(BOLD, "").replace(PLAIN, "")
    return sum(0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)
