"""Tables of scores, laid out by a value that says what makes a row, a column and a block."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ...utils.values import value
from .. import published
from ..listing import as_published
from ..store.reader import CELL, StoreReader
from . import labels
from .table import Cell, Row, Table, score

BASELINES = "baselines"
"""Study whose runs are shown above those of other studies."""
COLOUR_BASELINES = f"{BASELINES}-of-colours"
"""Baselines of `best-of-colours`, which prepares samples differently."""
AVERAGE = "average"
SPREADS = {"stderr": "Mean ± standard error of the runs",
           "std": "Mean ± standard deviation of the runs", "best": "Best run"}
Entry = Mapping[str, Any]


@value
class Layout:
    """Arrangement of the runs of a study in tables, by columns of the study or its factors.

    Runs that agree in all named columns are averaged. The best of each block is bold. `average`
    heads a last column with the mean of the others; `also` helps to find the paper's number.
    """

    rows: tuple[str, ...] = ("pretrained", "algorithm", "variant")
    columns: str = "dataset"
    blocks: tuple[str, ...] = ("pretrained", "algorithm")
    tables: tuple[str, ...] = ()
    measures: tuple[str, ...] = ("acc",)
    show: Literal["stderr", "std", "best"] = "stderr"
    average: str = AVERAGE
    also: tuple[str, ...] = ()

    @property
    def by(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(
            (*self.tables, *self.blocks, *self.rows, self.columns, *self.also)))


def score_tables(reader: StoreReader, study: str, *layouts: Layout) -> list[Table]:
    """Tabulate a study's finished runs, beside the paper's numbers and below the baselines."""
    layouts = layouts or (Layout(),)
    entries = [reader.means(study, by=one.by, measures=one.measures) for one in layouts]
    count, planned = sum(one["runs"] for one in entries[0]), reader.planned(study)
    if not count:
        raise ValueError(f"No run of {study} has finished yet in {reader.path}: "
                         f"`reclust study run {study}` continues it.")
    finished = f"{count} runs." if count == planned else f"{count} of {planned} runs finished."
    return [table for layout, own in zip(layouts, entries, strict=True)
            for table in _laid_out(reader, study, layout, own, finished)]


def _laid_out(reader: StoreReader, study: str, layout: Layout, entries: Sequence[Entry],
              finished: str) -> list[Table]:
    above = _baselines(reader, study, layout)
    made = []
    for which, members in _grouped(entries, layout.tables):
        columns = list(dict.fromkeys(entry[layout.columns] for entry in members))
        builder = _Builder(study.removesuffix("-mini"), layout, columns,
                           compared=as_published(study, reader.protocol(study)))
        blocks = [builder.block(own) for _, own in _grouped(members, layout.blocks)]
        fitting = [one for one in above if one["dataset"] in columns]
        title = ", ".join([study, *map(labels.value, layout.tables, which),
                           "/".join(map(labels.measure, layout.measures))])
        shown = tuple(filter(None, (builder.block(fitting), *blocks, builder.others())))
        made.append(Table(title, builder.headings, shown, f"{_note(layout, shown)} {finished}"))
    return made


class _Builder:
    """Rows of one table, with the paper's numbers beside them if `compared`."""

    def __init__(self, study: str, layout: Layout, columns: list[Any], *, compared: bool) -> None:
        self.study, self.layout, self.compared = study, layout, compared
        self.paper = study + published.BEST if layout.show == "best" else study
        self.named = columns
        self.columns = [*columns, *[AVERAGE] * (bool(layout.average) and len(columns) > 1)]

    @property
    def headings(self) -> tuple[str, ...]:
        names = [labels.value(self.layout.columns, column) for column in self.named]
        names += [self.layout.average] * (len(self.columns) - len(self.named))
        measures = self.layout.measures
        return ("", *(f"{name} {labels.measure(measure)}" if len(measures) > 1 else name
                      for name in names for measure in measures))

    def block(self, entries: Sequence[Entry]) -> tuple[Row, ...]:
        rows = [(_label(dict(zip(self.layout.rows, which, strict=True))),
                 {entry[self.layout.columns]: entry for entry in own})
                for which, own in _grouped(entries, self.layout.rows)]
        cells = [[self._number(own, column, measure) for column in self.columns
                  for measure in self.layout.measures] for _, own in rows]
        means = zip(*([mean for mean, *_ in row] for row in cells), strict=True)
        best = [max((mean for mean in column if not math.isnan(mean)), default=None)
                if len(rows) > 1 else None for column in means]
        return tuple(
            Row(label, tuple(score(mean, spread, paper, extra=extra, best=mean == top)
                             for (mean, spread, paper, extra), top in zip(row, best, strict=True)))
            for (label, _), row in zip(rows, cells, strict=True))

    def _number(self, own: Mapping[Any, Entry], column: Any,
                measure: str) -> tuple[float, float | None, float | None, dict]:
        """Return mean, spread, the paper's mean, and further numbers for CSV files."""
        if column == AVERAGE:
            parts = [self._number(own, each, measure) for each in self.named]
            papers = [paper for _, _, paper, _ in parts if paper is not None]
            known = sum(papers) / len(papers) if len(papers) == len(parts) else None
            return sum(mean for mean, *_ in parts) / len(parts), None, known, {}
        entry, show = own.get(column), self.layout.show
        if entry is None:
            return math.nan, None, None, {}
        factor = 100 if measure in labels.PERCENT else 1
        mean = factor * entry[f"{measure}_{'best' if show == 'best' else 'mean'}"]
        spread = None if show == "best" else factor * entry[f"{measure}_{show}"]
        comparable = self.compared and set(CELL) <= set(entry)
        found = published.find(self.paper, entry, measure) if comparable else None
        extra = {"runs": float(entry["runs"])} | ({} if spread is None else {show: spread})
        return mean, spread, None if found is None else found.mean, extra

    def others(self) -> tuple[Row, ...]:
        """Return the rows of other methods in the paper's table."""
        if self.layout.columns != "dataset" or not self.compared:
            return ()
        found = {measure: published.others(self.paper, labels.DEEP, measure)
                 for measure in self.layout.measures}
        names = dict.fromkeys(name for own in found.values() for name, dataset in own
                              if dataset in self.named)
        return tuple(Row(f"{name} (paper)", tuple(
            Cell(f"{own[name, column].mean:.2f}", numbers={"": own[name, column].mean})
            if (name, column) in own else Cell()
            for column in self.columns for own in found.values())) for name in names)


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


def _grouped(entries: Sequence[Entry], by: Sequence[str]) -> list[tuple[tuple, list[Any]]]:
    """Group entries by these columns, sorted by each in the order of its first appearance."""
    found: dict[tuple, list[Any]] = {}
    for entry in entries:
        found.setdefault(tuple(entry[name] for name in by), []).append(entry)
    order = [list(dict.fromkeys(column)) for column in zip(*found, strict=True)]
    return sorted(found.items(), key=lambda item: [
        known.index(given) for known, given in zip(order, item[0], strict=True)])
