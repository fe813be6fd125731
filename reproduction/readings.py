"""The mean gain of BRB over its baseline, and the text of the paper beside the authors' program."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

from reclust.studies import published
from reclust.studies.store.reader import StoreReader
from reclust.studies.tables import labels
from reclust.studies.tables.table import Cell, Row, Table, signed

from .cells import MAIN, SETS, agreements, count, improvements
from .evidence import RecordedRuns, SeedInterval, Where, averaged, gain

READINGS = {"text": MAIN, "program": f"{MAIN}-program"}
"""Readings of the paper -> the studies that repeat its main table."""
NORMAL = 1.96


class Gains(NamedTuple):
    """Mean gain of BRB over its baseline in points of ACC; the paper's interval is normal."""

    cells: int
    ours: SeedInterval
    paper: SeedInterval

    def __str__(self) -> str:
        ours, paper = (f"{signed(own.mean)} points ({signed(own.low)} to {signed(own.high)})"
                       for own in (self.ours, self.paper))
        return (f"The mean gain of BRB over its baseline in {self.cells} cells, without KMNIST, is "
                f"{ours} here and {paper} in the paper, with 95 % intervals.")


def mean_gains(reader: StoreReader, study: str, only: Collection[str] = SETS) -> Gains | None:
    """Average over the cells of some data sets, by seed; None without records."""
    found = [one for one in improvements(reader, study) if one.ours.dataset in only]
    if not found:
        return None
    wheres = [Where(one.dataset, one.algorithm, one.pretrained) for one, _ in found]
    ours = averaged([gain(study, where, "brb") for where in wheres])(RecordedRuns(reader))
    errors = [published.find(study, {**where._asdict(), "variant": variant}, "acc")
              for where in wheres for variant in ("brb", "none")]
    wide = math.hypot(*(one.stderr or 0.0 for one in errors if one is not None)) / len(found)
    mean = math.fsum(paper for _, paper in found) / len(found)
    paper = SeedInterval(mean, mean - NORMAL * wide, mean + NORMAL * wide, 10)
    return Gains(len(found), SeedInterval.of(list(ours.values())), paper)


def readings_table(reader: StoreReader) -> Table | None:
    """Compare both readings on the cells that both have; None if there is one only."""
    if not set(READINGS.values()) <= set(reader.studies()):
        return None
    names = {study: {cell.name for cell in agreements(reader, studies=(study,))}
             for study in READINGS.values()}
    shared = set.intersection(*names.values())
    sets = {name.split("/")[0] for name in shared} & set(SETS)
    rows = []
    for measure in ("acc", "nmi", "ari"):
        counted = [count(cell for cell in agreements(reader, measure, (study,))
                         if cell.name in shared) for study in READINGS.values()]
        rows.append(Row(f"{labels.measure(measure)}: cells that agree", tuple(
            Cell(f"{own['agree']} of {own['known']}") for own in counted)))
    gains = [mean_gains(reader, study, sets) for study in READINGS.values()]
    rows.append(Row("mean gain of BRB", tuple(
        Cell("–" if own is None else f"{signed(own.ours.mean)}, paper {signed(own.paper.mean)}")
        for own in gains)))
    return Table("Readings", ("", *READINGS), (tuple(rows),))
