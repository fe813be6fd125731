"""Tables as values, before they are rendered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

MINUS = "−"  # as wide as a plus sign, so that columns line up


@dataclass(frozen=True)
class Cell:
    """One cell: its text, and in parentheses `aside`.

    `numbers` go to CSV files, by the suffix of their column; "" is the main number of the cell.
    """

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
    """Blocks of rows under column headings, the first of which is that of the row labels."""

    title: str
    columns: tuple[str, ...]
    blocks: tuple[tuple[Row, ...], ...]
    note: str = ""

    @property
    def rows(self) -> list[Row]:
        return [row for block in self.blocks for row in block]


def score(mean: float, spread: float | None, published: float | None, *,
          extra: Mapping[str, float | str], best: bool = False) -> Cell:
    """Format a mean ± its spread, with the paper's number and the difference beside it."""
    if math.isnan(mean):
        return Cell(numbers=extra)
    text = plus_minus(mean, math.nan if spread is None else spread)
    numbers = {"": mean, **extra}
    if published is None:
        return Cell(text, numbers=numbers, best=best)
    numbers |= {"paper": published, "difference": mean - published}
    return Cell(text, f"{published:.2f}, {signed(mean - published)}", numbers, best)


def plus_minus(mean: float, spread: float, digits: int = 2) -> str:
    return f"{mean:.{digits}f}" + ("" if math.isnan(spread) else f" ± {spread:.{digits}f}")


def signed(number: float, digits: int = 2) -> str:
    text = f"{abs(number):.{digits}f}"
    zero = float(text) == 0
    return f"{'' if zero else '+' if number > 0 else MINUS}{text}"


def number(given: float, digits: int = 2, *, best: bool = False) -> Cell:
    """Format a number; NaN gives an empty cell."""
    if math.isnan(given):
        return Cell(numbers={"": given})
    text = f"{given:.{digits}f}" if given >= 0 else signed(given, digits)
    return Cell(text, numbers={"": given}, best=best)
