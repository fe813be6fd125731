"""Tables as values, before they are rendered."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

MINUS = "−"  # as wide as a plus sign, so that columns line up


@dataclass(frozen=True)
class Cell:
    """Text, with `aside` in parentheses; `numbers` by column suffix go to CSV files."""

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
    """Blocks of rows under column headings; the first column has the row labels."""

    title: str
    columns: tuple[str, ...]
    blocks: tuple[tuple[Row, ...], ...]
    note: str = ""

    @property
    def rows(self) -> list[Row]:
        return [row for block in self.blocks for row in block]


def grouped(members: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for member in members:
        found.setdefault(key(member), []).append(member)
    return found


def plus_minus(mean: float, spread: float, digits: int = 2) -> str:
    return f"{mean:.{digits}f}" + ("" if math.isnan(spread) else f" ± {spread:.{digits}f}")


def signed(number: float, digits: int = 2) -> str:
    text = f"{abs(number):.{digits}f}"
    return ("" if float(text) == 0 else "+" if number > 0 else MINUS) + text


def number(given: float, digits: int = 2) -> Cell:
    """Format a number; NaN gives an empty cell."""
    if math.isnan(given):
        return Cell(numbers={"": given})
    text = f"{given:.{digits}f}" if given >= 0 else signed(given, digits)
    return Cell(text, numbers={"": given})
