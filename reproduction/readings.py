"""The mean gain of BRB over its baseline, and the text of the paper beside the authors' program."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from reclust.studies import published
from reclust.studies.store.reader import StoreReader
from reclust.studies.store.schema import marks
from reclust.studies.store.store import Store
from reclust.studies.tables import labels
from reclust.studies.tables.table import Cell, Row, Table, signed

from .cells import MAIN, SETS, agreements, count, improvements
from .evidence import RecordedRuns, SeedInterval, Where, averaged, gain

BF16, TF32 = f"{MAIN}-bf16", f"{MAIN}-tf32"
READINGS = {"text, bfloat16": BF16, "text, TF32": TF32, "program": f"{MAIN}-program"}
"""Readings of the paper -> the studies that repeat its main table."""
CELLS_OF_SET = 24
NORMAL = 1.96


def show_tf32(store: Store) -> None:
    """Let the main table hold the data sets that were run whole in TF32, and `BF16` all others."""
    with store._transaction() as db:
        rest = "run, group_key, dataset, algorithm, variant, pretrained, seed, factors"
        db.execute("INSERT INTO studies SELECT ?, spec FROM studies WHERE name = ?", (BF16, MAIN))
        db.execute(f"INSERT INTO plan SELECT ?, position, {rest} FROM plan WHERE study = ?",
                   (BF16, MAIN))
        shown = [name for (name,) in db.execute(
            "SELECT dataset FROM plan p LEFT JOIN runs r USING (run) WHERE study = ? "
            "GROUP BY dataset HAVING sum(r.state = 'finished') = count(*)", (TF32,))]
        db.execute(
            "UPDATE plan SET run = other.run, group_key = other.group_key FROM plan AS other WHERE "
            "plan.study = ? AND other.study = ? AND plan.dataset = other.dataset AND "
            "plan.algorithm = other.algorithm AND plan.variant = other.variant AND "
            "plan.pretrained = other.pretrained AND plan.seed = other.seed AND "
            f"plan.dataset IN ({marks(shown)})", (MAIN, TF32, *shown))


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
    """Compare the recorded readings on the cells that all have, and on those of the text's two."""
    recorded = {name: study for name, study in READINGS.items() if study in reader.studies()}
    if len(recorded) < 2:
        return None
    cells = {name: [cell for cell in agreements(reader, studies=(study,)) if cell.dataset in SETS]
             for name, study in recorded.items()}
    names = {reading: {cell.name for cell in found} for reading, found in cells.items()}
    groups = [list(recorded), list(recorded)[:2]][:len(recorded) - 1]
    return Table("Readings", ("", *recorded), tuple(
        tuple(_rows(reader, recorded, some, set.intersection(*(names[name] for name in some))))
        for some in groups))


def _rows(reader: StoreReader, studies: Mapping[str, str], readings: Collection[str],
          shared: Collection[str]) -> Iterator[Row]:
    """Count the shared cells that agree, and average the gains of data sets that have all 24."""
    counts = Counter(name.split("/")[0] for name in shared)
    whole = sorted(dataset for dataset in SETS if counts[dataset] == CELLS_OF_SET)
    for measure in ("acc", "nmi", "ari"):
        counted = [count(cell for cell in agreements(reader, measure, (study,))
                         if cell.name in shared and name in readings)
                   for name, study in studies.items()]
        yield Row(f"{labels.measure(measure)}: cells that agree", tuple(
            Cell(f"{found['agree']} of {found['known']}" if found["known"] else "–")
            for found in counted))
    gains = [mean_gains(reader, study, whole) if name in readings else None
             for name, study in studies.items()]
    yield Row(f"mean gain of BRB, {', '.join(map(labels.dataset, whole))}", tuple(
        Cell("–" if gain is None else f"{signed(gain.ours.mean)}, paper {signed(gain.paper.mean)}")
        for gain in gains))
