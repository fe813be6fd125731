"""Tables as values, and rendered as Markdown, LaTeX, CSV and text for a terminal."""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...utils import files
from ...utils.exceptions import printable

MINUS = "−"  # as wide as a plus sign, so that columns line up
FORMATS = ("md", "tex", "csv", "txt")  # file extensions
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"
_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$", "−": "$-$", "×": r"$\times$",
    "α": r"$\alpha$", "|": r"\textbar{}", "–": "--", "…": r"\ldots{}"})


@dataclass(frozen=True)
class Cell:
    """Text, with `aside` in parentheses; `numbers` by column suffix go to CSV files."""

    text: str = ""
    aside: str = ""
    numbers: Mapping[str, float | str] = field(default_factory=dict)
    best: bool = False

    def shown(self, escape: Callable[[str], str], bold: str, aside: str) -> str:
        """Put the escaped texts into the forms of bold text and of what stands beside it."""
        text, beside = escape(self.text), aside.format(escape(self.aside)) if self.aside else ""
        return (bold.format(text) if self.best else text) + beside


@dataclass(frozen=True)
class Row:
    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """Blocks of rows under column headings; the first column has the row labels."""

    title: str
    columns: tuple[str, ...]
    blocks: tuple[tuple[Row, ...], ...]
    note: str = ""

    @property
    def rows(self) -> list[Row]:
        return [row for block in self.blocks for row in block]


def plus_minus(mean: float, spread: float, digits: int = 2) -> str:
    return f"{mean:.{digits}f}" + ("" if math.isnan(spread) else f" ± {spread:.{digits}f}")


def signed(number: float, digits: int = 2) -> str:
    text = f"{abs(number):.{digits}f}"
    return ("" if float(text) == 0 else "+" if number > 0 else MINUS) + text


def number(value: float, digits: int = 2) -> Cell:
    """Format a number; NaN gives an empty cell."""
    if math.isnan(value):
        return Cell(numbers={"": value})
    text = f"{value:.{digits}f}" if value >= 0 else signed(value, digits)
    return Cell(text, numbers={"": value})


def markdown(table: Table) -> str:
    """Render as a GitHub table; the best cells are bold, columns of numbers aligned right."""

    def piped(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    numeric = [any(row.cells[i].numbers for row in table.rows)
               for i in range(len(table.columns) - 1)]
    lines = [f"**{_markdown(table.title)}**", "", piped(map(_markdown, table.columns)),
             piped(["---", *("---:" if right else "---" for right in numeric)])]
    lines += [piped([_markdown(row.label), *(
        cell.shown(_markdown, "**{}**", " ({})") for cell in row.cells)]) for row in table.rows]
    return "\n".join([*lines, *(["", _markdown(table.note)] if table.note else []), ""])


def latex(table: Table) -> str:
    """Render as a `table` environment for the booktabs package, with rules between blocks."""
    forms = r"\textbf{{{}}}", r" {{\scriptsize ({})}}"
    blocks = ["\n".join(" & ".join([
        _latex(row.label), *(cell.shown(_latex, *forms) for cell in row.cells)]) + r" \\"
        for row in block) for block in table.blocks]
    caption = _latex(f"{table.title}. {table.note}".strip())
    return "\n".join([
        r"\begin{table}", r"\centering", rf"\caption{{{caption}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}", r"\toprule",
        " & ".join(map(_latex, table.columns)) + r" \\", r"\midrule",
        "\n\\midrule\n".join(blocks), r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def csv_text(*tables: Table) -> str:
    """Render all tables under one header: title, row label, and every number of each column."""
    rows, header = [], dict.fromkeys(["table", ""])
    for table in tables:
        for row in table.rows:
            numbers = {f"{_one_line(column)} {name}".strip(): _plain(row.cells[i].numbers.get(name))
                       for i, column in enumerate(table.columns[1:])
                       for name in _suffixes(table, i)}
            rows.append({"table": _one_line(table.title), "": _one_line(row.label), **numbers})
            header |= dict.fromkeys(numbers)
    return files.csv_text([header, *([row.get(name, "") for name in header] for row in rows)])


def terminal(table: Table, *, bold: tuple[str, str] = (BOLD, PLAIN)) -> str:
    """Render in aligned columns; `bold` goes around the best of a block."""

    def shown(cell: Cell) -> str:
        text = _one_line(f"{cell.text} ({cell.aside})" if cell.aside else cell.text)
        return f"{bold[0]}{text}{bold[1]}" if cell.best else text

    columns = [_one_line(column) for column in table.columns]
    blocks = [[[_one_line(row.label), *map(shown, row.cells)] for row in block]
              for block in table.blocks]
    rows = [columns, *(row for block in blocks for row in block)]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    rule = "─" * (sum(widths) + 2 * (len(widths) - 1))

    def line(texts: Sequence[str]) -> str:
        spaces = [" " * (width - _width(text)) for text, width in zip(texts, widths, strict=True)]
        aligned = [space + text for text, space in zip(texts[1:], spaces[1:], strict=True)]
        return "  ".join([texts[0] + spaces[0], *aligned]).rstrip()

    lines = [_one_line(table.title), rule, line(columns)]
    for block in blocks:
        lines += [rule, *map(line, block)]
    return "\n".join([*lines, rule, *([table.note] if table.note else []), ""])


def render(tables: Sequence[Table], form: str, *, bold: tuple[str, str] = ("*", "*")) -> str:
    if form == "csv":
        return csv_text(*tables)
    if form == "txt":
        return "\n".join(terminal(table, bold=bold) for table in tables)
    return "\n".join(map({"md": markdown, "tex": latex}[form], tables))


def write(tables: Iterable[Table], path: str | os.PathLike[str]) -> None:
    """Write all tables to one file, in the format of its extension."""
    path = Path(path)
    form = path.suffix.removeprefix(".")
    if form not in FORMATS:
        raise ValueError(f"{path.name} has no known format: use one of .{', .'.join(FORMATS)}.")
    files.write_text(path, render(list(tables), form))


def _suffixes(table: Table, column: int) -> list[str]:
    names = dict.fromkeys(name for row in table.rows for name in row.cells[column].numbers)
    return sorted(names, key=lambda name: name != "") or [""]  # the main number first


def _plain(number: float | str | None) -> str:
    if number is None or isinstance(number, float) and math.isnan(number):
        return ""
    return _one_line(number) if isinstance(number, str) else f"{number:.10g}"


def _markdown(text: str) -> str:
    text = re.sub(r"([\\`*_\[\]|#~])", r"\\\1", text)
    return _one_line(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def _latex(text: str) -> str:
    return _one_line(text.translate(_LATEX))


def _one_line(text: str) -> str:
    return printable(re.sub(r"\s+", " ", str(text)))


def _width(text: str) -> int:
    return len(text.replace(BOLD, "").replace(PLAIN, ""))
