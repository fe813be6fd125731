"""Tables as values, before they become text of any kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

MINUS = "−"  # as wide as a plus sign: columns line up


@dataclass(frozen=True)
class Cell:
    """What one cell shows. aside: stands behind it in parentheses. numbers: what a CSV file gets, by the name that its
    column has behind the table's own, "" for the cell's main number."""

    text: str = ""
    aside: str = ""
    numbers: Mapping[str, float | str] = field(default_factory=dict)
    best: bool = False


@dataclass(frozen=True)
class Row:
    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """columns: headings, the first one that of the labels. blocks: rows that belong together. note: how to read it."""

    title: str
    columns: tuple[str, ...]
    blocks: tuple[tuple[Row, ...], ...]
    note: str = ""


def score(mean: float, spread: float | None, published: float | None, *, extra: Mapping[str, float | str],
          best: bool = False) -> Cell:
    """A mean ± its spread, with the paper's number and the difference beside it."""
    if math.isnan(mean):
        return Cell(numbers=extra)
    text = f"{mean:.2f}" + (f" ± {spread:.2f}" if spread is not None and not math.isnan(spread) else "")
    numbers = {"": mean, **extra}
    if published is None:
        return Cell(text, numbers=numbers, best=best)
    numbers |= {"paper": published, "difference": mean - published}
    return Cell(text, f"{published:.2f}, {signed(mean - published)}", numbers, best)


def signed(number: float, digits: int = 2) -> str:
    text = f"{abs(number):.{digits}f}"
    zero = float(text) == 0
    return f"{'' if zero else '+' if number > 0 else MINUS}{text}"


def number(given: float, digits: int = 2, *, best: bool = False) -> Cell:
    """A plain number; nothing where it is not one."""
    if math.isnan(given):
        return Cell(numbers={"": given})
    return Cell(f"{given:.{digits}f}" if given >= 0 else signed(given, digits), numbers={"": given}, best=best)
