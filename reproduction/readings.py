"""The mean gain of BRB over its baseline, and the text of the paper beside the authors' program."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from reclust.studies import published
from reclust.studies.store.reader import StoreReader
from reclust.studies.tables import labels
from reclust.studies.tables.table import Cell, Row, Table, signed

from .cells import MAIN, SETS, agreements, count, improvements
from .evidence import RecordedRuns, SeedInterval, Where, averaged, gain

READINGS = {"text, bfloat16": MAIN, "text, TF32": f"{MAIN}-tf32", "program": f"{MAIN}-program"}
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
    """Compare the recorded readings on the cells that all have; None if there is one only."""
    recorded = {name: study for name, study in READINGS.items() if study in reader.studies()}
    if len(recorded) < 2:
        return None
    names = [{cell.name for cell in agreements(reader, studies=(study,))}
             for study in recorded.values()]
    shared = set.intersection(*names)
    counts = Counter(name.split("/")[0] for name in shared)
    complete = {dataset for dataset in SETS if counts[dataset] == max(counts.values())}
    rows = []
    for measure in ("acc", "nmi", "ari"):
        counted = [count(cell for cell in agreements(reader, measure, (study,))
                         if cell.name in shared) for study in recorded.values()]
        rows.append(Row(f"{labels.measure(measure)}: cells that agree", tuple(
            Cell(f"{found['agree']} of {found['known']}") for found in counted)))
    gains = [mean_gains(reader, study, complete) for study in recorded.values()]
    rows.append(Row(f"mean gain of BRB, {', '.join(map(labels.dataset, sorted(complete)))}", tuple(
        Cell("–" if gain is None else f"{signed(gain.ours.mean)}, paper {signed(gain.paper.mean)}")
        for gain in gains)))
    return Table("Readings", ("", *recorded), (tuple(rows),))
