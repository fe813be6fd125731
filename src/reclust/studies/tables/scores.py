"""Tables of scores: which runs make a row, a column and a block is a value, so every table of the paper is one."""

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
"""The study whose runs stand above those of others."""
OF_COLOURS = f"{BASELINES}-of-colours"
"""For `best-of-colours`, which sees samples otherwise than the studies that share the baselines."""
AVERAGE = "average"
Entry = Mapping[str, Any]


@value
class Layout:
    """How the runs of a study become tables. All but `measures` name columns of a study: dataset, algorithm, variant,
    pretrained, or one of its factors; runs that agree in all of those named are averaged.

    rows: what tells one row from another. blocks: what the rows of a block have in common; the best one is bold.
    tables: one table for each combination. measures: acc, nmi, ari or another; several stand beside each other.
    show: the mean with standard error, the mean with standard deviation, or the best run alone.
    average: over the columns, in a last one; "" for none. also: what else runs of one cell agree in, where the paper's
    number is found by it.
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
        return tuple(dict.fromkeys((*self.tables, *self.blocks, *self.rows, self.columns, *self.also)))


def scores(reader: StoreReader, study: str, *layouts: Layout) -> list[Table]:
    """The finished runs of a study, with the paper's numbers beside them and the store's baselines above them, in each of these
    layouts (`Layout()` where none is given)."""
    layouts = layouts or (Layout(),)
    wanted: dict[tuple[str, ...], dict[str, None]] = {}
    for layout in layouts:  # those of the same cells are read at once
        wanted.setdefault(layout.by, {}).update(dict.fromkeys(layout.measures))
    entries = {by: reader.means(study, by=by, measures=list(measures)) for by, measures in wanted.items()}
    count = sum(entry["runs"] for entry in entries[layouts[0].by])
    if not count:
        raise ValueError(f"No run of {study} has finished yet in {reader.path}: `reclust study run {study}` goes on.")
    planned = reader.planned(study)
    finished = f"{count} runs." if count == planned else f"{count} of {planned} planned runs of the study finished."
    return [table for layout in layouts for table in _laid_out(reader, study, layout, entries[layout.by], finished)]


def _laid_out(reader: StoreReader, study: str, layout: Layout, entries: Sequence[Entry], finished: str) -> list[Table]:
    above = _baselines(reader, study, layout)
    made = []
    for which, members in _grouped(entries, layout.tables):
        columns = list(dict.fromkeys(entry[layout.columns] for entry in members))
        source = _Source(study.removesuffix("-mini"), layout, columns, compared=as_published(study, reader.protocol(study)))
        blocks = [source.block(own) for _, own in _grouped(members, layout.blocks)]
        rows = source.block([one for one in above if one["dataset"] in source.columns]) if above else ()
        title = ", ".join([study, *(labels.value(name, given) for name, given in zip(layout.tables, which, strict=True)),
                           "/".join(map(labels.measure, layout.measures))])
        shown = tuple(block for block in (rows, *blocks, source.others()) if block)
        withheld = "Its protocol is not the paper's, whose numbers are left out." if source.withholds(members) else ""
        made.append(Table(title, source.headings, shown, " ".join(filter(None, [_note(layout, shown), withheld, finished]))))
    return made


class _Source:
    """Makes the rows of one table. compared: with the paper's numbers."""

    def __init__(self, study: str, layout: Layout, columns: list[Any], *, compared: bool) -> None:
        self.study, self.layout, self.columns, self.compared = study, layout, columns, compared
        self.paper = study + published.BEST if layout.show == "best" else study
        self.averaged = bool(layout.average) and len(columns) > 1

    @property
    def headings(self) -> tuple[str, ...]:
        names = [labels.value(self.layout.columns, column) for column in self.columns]
        names += [self.layout.average] if self.averaged else []
        several = len(self.layout.measures) > 1
        return ("", *(f"{name} {labels.measure(measure)}" if several else name
                      for name in names for measure in self.layout.measures))

    def block(self, entries: Sequence[Entry]) -> tuple[Row, ...]:
        rows = [(_label(dict(zip(self.layout.rows, which, strict=True))), {entry[self.layout.columns]: entry for entry in own})
                for which, own in _grouped(entries, self.layout.rows)]
        cells = [[self._number(own, column, measure) for column in [*self.columns, *[AVERAGE] * self.averaged]
                  for measure in self.layout.measures] for _, own in rows]
        best = [max((number for number in column if not math.isnan(number)), default=None) if len(rows) > 1 else None
                for column in zip(*([mean for mean, *_ in row] for row in cells), strict=True)]
        return tuple(
            Row(label, tuple(score(mean, spread, paper, extra=extra, best=mean == top)
                             for (mean, spread, paper, extra), top in zip(row, best, strict=True)))
            for (label, _), row in zip(rows, cells, strict=True))

    def _number(self, own: Mapping[Any, Entry], column: Any, measure: str) -> tuple[float, float | None, float | None, dict]:
        """Mean, spread, the paper's mean, and what else a CSV file gets."""
        if column == AVERAGE:
            parts = [self._number(own, each, measure) for each in self.columns]
            papers = [paper for _, _, paper, _ in parts]
            known = None if None in papers else sum(paper for paper in papers if paper is not None) / len(papers)
            return sum(mean for mean, *_ in parts) / len(parts), None, known, {}
        entry, show = own.get(column), self.layout.show
        if entry is None:
            return math.nan, None, None, {}
        factor = 100 if measure in labels.PERCENT else 1
        mean = factor * entry[f"{measure}_{'best' if show == 'best' else 'mean'}"]
        spread = None if show == "best" else factor * entry[f"{measure}_{show}"]
        found = self._published(entry, measure) if self.compared else None
        extra = {"runs": float(entry["runs"])} | ({} if spread is None else {show: spread})
        return mean, spread, None if found is None else found.mean, extra

    def _published(self, entry: Entry, measure: str) -> published.Published | None:
        return published.find(self.paper, entry, measure) if set(CELL) <= set(entry) else None

    def withholds(self, entries: Sequence[Entry]) -> bool:
        """Numbers that the paper has, but not of what was trained here."""
        return not self.compared and any(self._published(entry, name) for entry in entries for name in self.layout.measures)

    def others(self) -> tuple[Row, ...]:
        """What the paper's table has from others."""
        if self.layout.columns != "dataset" or not self.compared:
            return ()
        found = {measure: published.others(self.paper, labels.DEEP, measure) for measure in self.layout.measures}
        names = dict.fromkeys(name for own in found.values() for name, dataset in own if dataset in self.columns)
        return tuple(Row(f"{name} (paper)", tuple(
            Cell(f"{own[name, column].mean:.2f}", numbers={"": own[name, column].mean}) if (name, column) in own else Cell()
            for column in [*self.columns, *[AVERAGE] * self.averaged] for own in found.values())) for name in names)


def _baselines(reader: StoreReader, study: str, layout: Layout) -> list[dict[str, Any]]:
    """Of the same form, small or not, as the study."""
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
        named = [labels.method(parts.pop("algorithm"), parts.pop("variant"), pretrained=bool(parts.pop("pretrained", False)))]
    return ", ".join([*named, *(labels.value(name, given) for name, given in parts.items() if given is not None)])


def _note(layout: Layout, blocks: Sequence[Sequence[Row]]) -> str:
    spread = {"stderr": "Mean ± standard error of the runs", "std": "Mean ± standard deviation of the runs", "best": "Best run"}
    unit = " in percent" if set(layout.measures) <= labels.PERCENT else ""
    beside = any(cell.aside for block in blocks for row in block for cell in row.cells)
    paper = "; in parentheses the paper's number and the difference" if beside else ""
    return f"{spread[layout.show]}{unit}{paper}; in each column the best of a block is bold."


def _grouped(entries: Sequence[Entry], by: Sequence[str]) -> list[tuple[tuple[Any, ...], list[Any]]]:
    """Entries that agree, together; sorted by the first name, then the second, …, each in the order of its appearance."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for entry in entries:
        found.setdefault(tuple(entry[name] for name in by), []).append(entry)
    order = [{given: i for i, given in reversed(list(enumerate(column)))} for column in zip(*found, strict=True)]
    return sorted(found.items(), key=lambda item: [known[given] for known, given in zip(order, item[0], strict=True)])
