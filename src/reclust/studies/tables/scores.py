"""Tables of scores, laid out by a value that says what makes a row, a column and a block."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from ...utils.values import value
from .. import published
from ..store.reader import CELL, StoreReader, grouped
from . import labels
from .table import Cell, Row, Table, plus_minus, signed

BASELINES = "baselines"  # study whose runs are shown above those of other studies
AVERAGE = "average"
SPREADS = {"stderr": "Mean ± standard error of the runs",
           "std": "Mean ± standard deviation of the runs", "best": "Best run"}
Entry = Mapping[str, Any]


@value
class Layout:
    """Arrangement of runs in tables; those that agree in all named columns are averaged."""

    rows: tuple[str, ...] = ("pretrained", "algorithm", "variant")
    columns: str = "dataset"
    blocks: tuple[str, ...] = ("pretrained", "algorithm")
    tables: tuple[str, ...] = ()
    measures: tuple[str, ...] = ("acc",)
    show: Literal["stderr", "std", "best"] = "stderr"
    average: str = AVERAGE  # heading of a last column with the mean of the others
    also: tuple[str, ...] = ()  # columns that help to find the paper's number

    @property
    def by(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(
            (*self.tables, *self.blocks, *self.rows, self.columns, *self.also)))


def score_tables(reader: StoreReader, study: str, *layouts: Layout) -> list[Table]:
    """Tabulate a study's finished runs, beside the paper's numbers and below the baselines."""
    layouts = layouts or (Layout(),)
    entries = [reader.means(study, by=layout.by, measures=layout.measures) for layout in layouts]
    count, planned = sum(entry["runs"] for entry in entries[0]), reader.planned(study)
    if not count:
        raise ValueError(f"No run of {study} has finished yet in {reader.path}.")
    finished = f"{count} runs." if count == planned else f"{count} of {planned} runs finished."
    compared = published.as_published(study, reader.protocol(study))
    tables = []
    for layout, rows in zip(layouts, entries, strict=True):
        above = _baselines(reader, study, layout)
        for which, members in _sorted_groups(rows, layout.tables):
            columns = list(dict.fromkeys(entry[layout.columns] for entry in members))
            builder = _Builder(published.base_name(study), layout, columns, compared=compared)
            blocks = [builder.block(block) for _, block in _sorted_groups(members, layout.blocks)]
            fitting = [entry for entry in above if entry["dataset"] in columns]
            title = ", ".join([study, *map(labels.value, layout.tables, which),
                               "/".join(map(labels.measure, layout.measures))])
            shown = tuple(filter(None, (builder.block(fitting), *blocks, builder.others())))
            note = f"{_note(layout, shown)} {finished}"
            tables.append(Table(title, builder.headings, shown, note))
    return tables


class _Builder:
    """Rows of one table, with the paper's numbers beside them if `compared`."""

    def __init__(self, study: str, layout: Layout, columns: list[Any], *, compared: bool) -> None:
        self.layout, self.compared, self.named = layout, compared, columns
        self.paper = study + published.BEST if layout.show == "best" else study
        self.columns = [*columns, *[AVERAGE] * (bool(layout.average) and len(columns) > 1)]

    @property
    def headings(self) -> tuple[str, ...]:
        names = [labels.value(self.layout.columns, column) for column in self.named]
        names += [self.layout.average] * (len(self.columns) - len(self.named))
        measures = self.layout.measures
        return ("", *(f"{name} {labels.measure(measure)}" if len(measures) > 1 else name
                      for name in names for measure in measures))

    def block(self, entries: Sequence[Entry]) -> tuple[Row, ...]:
        rows = []
        for which, members in _sorted_groups(entries, self.layout.rows):
            by_column = {entry[self.layout.columns]: entry for entry in members}
            rows.append(Row(_label(dict(zip(self.layout.rows, which, strict=True))), tuple(
                self._cell(by_column, column, measure) for column in self.columns
                for measure in self.layout.measures)))
        if len(rows) < 2:
            return tuple(rows)
        best = [max((cell.numbers[""] for cell in column if "" in cell.numbers), default=None)
                for column in zip(*(row.cells for row in rows), strict=True)]
        return tuple(Row(row.label, tuple(
            replace(cell, best=cell.numbers.get("", math.nan) == top)
            for cell, top in zip(row.cells, best, strict=True))) for row in rows)

    def _cell(self, entries: Mapping[Any, Entry], column: Any, measure: str) -> Cell:
        if column == AVERAGE:
            parts = [self._cell(entries, name, measure).numbers for name in self.named]
            mean, paper = (sum(float(part.get(name, math.nan)) for part in parts) / len(parts)
                           for name in ("", "paper"))
            return _score(mean, math.nan, paper, {})
        entry, show = entries.get(column), self.layout.show
        if entry is None:
            return Cell()
        factor = 100 if measure in labels.PERCENT else 1
        mean = factor * entry[f"{measure}_{'best' if show == 'best' else 'mean'}"]
        spread = math.nan if show == "best" else factor * entry[f"{measure}_{show}"]
        comparable = self.compared and set(CELL) <= set(entry)
        number = published.find(self.paper, entry, measure) if comparable else None
        extra = {"runs": float(entry["runs"])} | ({} if show == "best" else {show: spread})
        return _score(mean, spread, math.nan if number is None else number.mean, extra)

    def others(self) -> tuple[Row, ...]:
        if self.layout.columns != "dataset" or not self.compared:
            return ()
        numbers = {measure: published.others(self.paper, labels.DEEP, measure)
                   for measure in self.layout.measures}
        names = dict.fromkeys(name for by_cell in numbers.values() for name, dataset in by_cell
                              if dataset in self.named)
        return tuple(Row(f"{name} (paper)", tuple(
            Cell(f"{by_cell[name, column].mean:.2f}", numbers={"": by_cell[name, column].mean})
            if (name, column) in by_cell else Cell()
            for column in self.columns for by_cell in numbers.values())) for name in names)


def _score(mean: float, spread: float, paper: float, extra: Mapping[str, float]) -> Cell:
    if math.isnan(mean):
        return Cell(numbers=extra)
    text, numbers = plus_minus(mean, spread), {"": mean, **extra}
    if math.isnan(paper):
        return Cell(text, numbers=numbers)
    numbers |= {"paper": paper, "difference": mean - paper}
    return Cell(text, f"{paper:.2f}, {signed(mean - paper)}", numbers)


def _baselines(reader: StoreReader, study: str, layout: Layout) -> list[dict[str, Any]]:
    name = BASELINES + ("-mini" if study.endswith("-mini") else "")
    fitting = layout.columns == "dataset" and {"algorithm", "variant"} <= set(layout.rows)
    if not fitting or name == study or name not in reader.studies():
        return []
    empty: dict[str, Any] = dict.fromkeys(layout.by)
    return [empty | entry for entry in reader.means(name, measures=layout.measures)]


def _label(row: Mapping[str, Any]) -> str:
    parts = dict(row)
    named = []
    if {"algorithm", "variant"} <= parts.keys():
        named = [labels.method(parts.pop("algorithm"), parts.pop("variant"),
                               pretrained=bool(parts.pop("pretrained", False)))]
    return ", ".join(named + [labels.value(*item) for item in parts.items() if item[1] is not None])


def _note(layout: Layout, blocks: Sequence[Sequence[Row]]) -> str:
    unit = " in percent" if set(layout.measures) <= labels.PERCENT else ""
    beside = any(cell.aside for block in blocks for row in block for cell in row.cells)
    paper = "; in parentheses the paper's number and the difference" if beside else ""
    return f"{SPREADS[layout.show]}{unit}{paper}; the best of each block and column is bold."


def _sorted_groups(entries: Sequence[Entry], by: Sequence[str]) -> list[tuple[tuple, list[Any]]]:
    """Group entries by these columns, sorted by each in the order of its first appearance."""
    groups = grouped(entries, lambda entry: tuple(entry[name] for name in by))
    order = [list(dict.fromkeys(column)) for column in zip(*groups, strict=True)]
    return sorted(groups.items(), key=lambda item: [
        known.index(key) for known, key in zip(order, item[0], strict=True)])
