"""Where the time of a run goes, and what interventions add to it."""

from __future__ import annotations

from dataclasses import dataclass

from .. import labels, published
from ..reading import CELL, StoreReader
from .table import Cell, Row, Table, score

PARTS = ("reset", "embedding", "clustering", "momentum")
"""What one firing of BRB consists of."""
INTERVAL = 20
"""Epochs over which the paper spreads the time of one firing."""


@dataclass(frozen=True)
class Spent:
    """Mean seconds of one cell's runs. parts: of one firing, by name. epoch: of training alone."""

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
    def total(self) -> float:
        """An epoch with a firing."""
        return self.epoch + self.firing

    @property
    def share(self) -> float:
        """Percent of such an epoch."""
        return 100 * self.firing / self.total

    @property
    def overhead(self) -> float:
        """By how many percent (20 × epoch + firing) / (20 × epoch) exceeds one."""
        return 100 * self.firing / (INTERVAL * self.epoch)


def spent(reader: StoreReader, study: str) -> list[Spent]:
    """One entry for each cell with interventions, in the order of the plan."""
    frame = reader.seconds(study)
    made = []
    for cell, own in frame.groupby(list(CELL), sort=False):
        settings = reader.settings(own["run"].iloc[0])
        epochs = 0 if settings.clustering is None else settings.clustering.epochs
        firings = sum(settings.intervention.fires(epoch) for epoch in range(epochs)) if settings.intervention else 0
        if firings:
            means = own.filter(like="clustering.").mean()
            dataset, algorithm, pretrained, variant = cell
            made.append(Spent(dataset, algorithm, bool(pretrained), variant,
                              {part: float(means.get(f"clustering.{part}", 0.0)) / firings for part in PARTS},
                              float(means.get("clustering.training", 0.0) + means.get("clustering.centers", 0.0)) / epochs))
    return made


def runtime(reader: StoreReader, study: str) -> list[Table]:
    """Seconds by part, one table for each data set and algorithm."""
    tables: dict[str, list[Row]] = {}
    for one in spent(reader, study):
        title = f"{study}: {labels.method(one.algorithm, 'none', pretrained=one.pretrained)} on {labels.dataset(one.dataset)}"
        numbers = {**one.parts, "brb": one.firing, "epoch": one.epoch, "total": one.total, "share": one.share,
                   "overhead": one.overhead}
        cells = tuple(_cell(study, one, name, given) for name, given in numbers.items())
        tables.setdefault(title, []).append(Row(labels.variant(one.variant), cells))
    headings = ("", "reset", "embedding", "clustering", "momentum", "one firing", "epoch", "both", "firing %", "overhead %")
    note = (f"Mean seconds of one firing and of one epoch; overhead is (20 × epoch + firing) / (20 × epoch) less one. "
            "In parentheses the paper's number and the difference.")
    return [Table(title, headings, (tuple(rows),), note) for title, rows in tables.items()]


def _cell(study: str, one: Spent, name: str, given: float) -> Cell:
    paper = published.find(study.removesuffix("-mini"), vars(one), name)
    if name in ("share", "overhead"):
        return score(given, None, None if paper is None else paper.mean, extra={})
    cell = score(given, None, None if paper is None else paper.mean, extra={})
    aside = "" if paper is None else f"{paper.mean:.3f}"
    return Cell(f"{given:.4f}", aside, cell.numbers)


def run_times(reader: StoreReader, study: str) -> Table:
    """Mean seconds of a whole run by data set, beside the paper's."""
    rows = []
    for entry in reader.means(study, by=("dataset",), measures=("seconds",)):
        paper = published.paper().get(("run-time", entry["dataset"], "", "", "", "seconds"))
        rows.append(Row(labels.dataset(entry["dataset"]), (
            score(entry["seconds_mean"], entry["seconds_stderr"], None if paper is None else paper.mean,
                  extra={"runs": float(entry["runs"])}),)))
    return Table(f"{study}: time of a run", ("", "seconds"), (tuple(rows),),
                 "A run's share of what its stack of runs took, pretraining included; in parentheses the paper's and the difference.")
