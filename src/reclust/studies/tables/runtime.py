"""Time of an epoch and of one firing of BRB by part, and of whole runs."""

import json
from dataclasses import dataclass
from statistics import fmean

from .. import published
from ..store.reader import CELL, StoreReader, grouped
from . import labels
from .table import Cell, Row, Table, number

PARTS = ("reset", "embedding", "clustering", "momentum")  # of one firing of BRB
INTERVAL = 20  # epochs over which the paper spreads the time of one firing


@dataclass(frozen=True)
class CellTime:
    """Mean seconds of one firing by part, and of one epoch of training, over runs of a cell."""

    dataset: str
    algorithm: str
    pretrained: bool
    variant: str
    parts: dict[str, float]
    epoch: float

    @property
    def firing(self) -> float:
        return sum(self.parts.values())

    @property
    def overhead(self) -> float:
        """Percent that a firing every 20 epochs adds."""
        return 100 * self.firing / (INTERVAL * self.epoch)


def cell_times(reader: StoreReader, study: str) -> list[CellTime]:
    """Return the times of each cell with interventions, in the order of the plan."""
    rows = reader.finished(study, (*CELL, "group"), ("run",))
    cells = grouped(rows, lambda row: row[:4])
    trained = {cell: _epochs_and_firings(reader, min(run for *_, group, run in members
                                                     if group == members[0][4]))
               for cell, members in cells.items()}
    # All runs of a group share its time equally, including those that never fire.
    fired = {group: fmean(trained[row[:4]][1] for row in members)
             for group, members in grouped(rows, lambda row: row[4]).items()}
    shares, times = reader.shares(), []

    def seconds(group: str, *parts: str) -> float:
        return sum(shares[group].get(f"clustering.{part}", 0.0) for part in parts)

    for cell, members in cells.items():
        epochs, firings = trained[cell]
        if firings:
            dataset, algorithm, pretrained, variant = cell
            groups = [group for *_, group, _ in members]  # one for each run
            parts = {part: fmean(seconds(group, part) / fired[group] for group in groups)
                     for part in PARTS}
            whole = fmean(seconds(group, "training", "centers") for group in groups)
            times.append(
                CellTime(dataset, algorithm, bool(pretrained), variant, parts, whole / epochs))
    return times


def _epochs_and_firings(reader: StoreReader, run: str) -> tuple[int, int]:
    clustering = json.loads(reader.plain_settings(run))["fields"].get("clustering")
    fired = reader.history(run, ["fired"]).get("clustering", {}).get("fired")
    return (clustering["fields"]["epochs"] if clustering else 0,
            0 if fired is None else fired.values.tolist().count(1))


def runtime_tables(reader: StoreReader, study: str) -> list[Table]:
    """Tabulate seconds by part, one table for each data set and algorithm."""
    tables: dict[str, list[Row]] = {}
    for times in cell_times(reader, study):
        method = labels.method(times.algorithm, "none", pretrained=times.pretrained)
        total = times.epoch + times.firing
        numbers = {**times.parts, "brb": times.firing, "epoch": times.epoch, "total": total,
                   "share": 100 * times.firing / total, "overhead": times.overhead}
        tables.setdefault(f"{study}: {method} on {labels.dataset(times.dataset)}", []).append(
            Row(labels.variant(times.variant), tuple(
                _cell(study, times, name, seconds) for name, seconds in numbers.items())))
    headings = ("", *PARTS, "BRB", "epoch", "both", "BRB, % of both", "overhead %")
    note = ("Mean seconds of one firing of BRB by part and of one epoch of training. Overhead: "
            "what one firing adds to 20 epochs. In parentheses the paper's number.")
    return [Table(title, headings, (tuple(rows),), note) for title, rows in tables.items()]


def _cell(study: str, times: CellTime, name: str, seconds: float) -> Cell:
    paper = published.find(study, vars(times), name)
    digits = 2 if name in ("share", "overhead") else 4
    if paper is None:
        return number(seconds, digits)
    return Cell(f"{seconds:.{digits}f}", f"{paper.mean:g}",
                {"": seconds, "paper": paper.mean, "difference": seconds - paper.mean})


def run_times(reader: StoreReader, study: str) -> list[Table]:
    """Tabulate mean seconds of a whole run by data set, beside the paper's."""
    rows = []
    for entry in reader.means(study, by=("dataset",), measures=("seconds",)):
        mean, dataset = entry["seconds_mean"], entry["dataset"]
        paper = published.paper().get(("run-time", dataset, "", "", "", "seconds"))
        numbers = {"": mean, "runs": float(entry["runs"])}
        numbers |= {} if paper is None else {"paper": paper.mean}
        aside = "" if paper is None else f"{paper.mean:g}"
        rows.append(Row(labels.dataset(dataset), (Cell(f"{mean:.1f}", aside, numbers),)))
    return [Table(f"{study}: time of a run", ("", "seconds"), (tuple(rows),),
                  "Mean time of a run with pretraining: its share of the time of the runs trained "
                  "together. In parentheses the paper's number.")]
