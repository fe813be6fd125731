"""Where the time of a run goes, and what interventions add to it."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

from .. import published
from ..store.reader import StoreReader
from . import labels
from .table import Cell, Row, Table, number

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
    groups: dict[tuple, list[tuple[str, int]]] = {}
    known: dict[tuple, tuple[int, int]] = {}
    for *named, group, count, epochs, times in reader.trained(study):
        groups.setdefault(tuple(named), []).append((group, count))
        known.setdefault(tuple(named), (epochs, times))
    firings: dict[str, list[tuple[float, int]]] = {}
    for cell, own in groups.items():
        for group, count in own:
            firings.setdefault(group, []).append((known[cell][1], count))
    # A run's time is its share of its group's, whether or not all of them fire.
    fired, shares, made = {group: _mean(own) for group, own in firings.items()}, reader.shares(), []
    for cell, own in groups.items():
        epochs, times = known[cell]
        if times:
            dataset, algorithm, pretrained, variant = cell
            parts = {part: _mean([(_share(shares, group, part) / fired[group], count) for group, count in own])
                     for part in PARTS}
            trained = _mean([(_share(shares, group, "training") + _share(shares, group, "centers"), count)
                             for group, count in own])
            made.append(Spent(dataset, algorithm, bool(pretrained), variant, parts, trained / epochs))
    return made


def _share(shares: dict[str, dict[str, float]], group: str, part: str) -> float:
    return shares[group].get(f"clustering.{part}", 0.0)


def _mean(weighed: list[tuple[float, int]]) -> float:
    return fsum(given * count for given, count in weighed) / sum(count for _, count in weighed)


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
    note = ("Mean seconds of one firing and of one epoch; overhead is (20 × epoch + firing) / (20 × epoch) less one; in "
            "parentheses the paper's number.")
    return [Table(title, headings, (tuple(rows),), note) for title, rows in tables.items()]


def _cell(study: str, one: Spent, name: str, given: float) -> Cell:
    paper = published.find(study.removesuffix("-mini"), vars(one), name)
    digits = 2 if name in ("share", "overhead") else 4
    if paper is None:
        return number(given, digits)
    return Cell(f"{given:.{digits}f}", f"{paper.mean:g}", {"": given, "paper": paper.mean, "difference": given - paper.mean})


def run_times(reader: StoreReader, study: str) -> Table:
    """Mean seconds of a whole run by data set, beside the paper's."""
    rows = []
    for entry in reader.means(study, by=("dataset",), measures=("seconds",)):
        paper = published.paper().get(("run-time", entry["dataset"], "", "", "", "seconds"))
        numbers = {"": entry["seconds_mean"], "runs": float(entry["runs"])} | ({} if paper is None else {"paper": paper.mean})
        rows.append(Row(labels.dataset(entry["dataset"]), (
            Cell(f"{entry['seconds_mean']:.1f}", "" if paper is None else f"{paper.mean:g}", numbers),)))
    return Table(f"{study}: time of a run", ("", "seconds"), (tuple(rows),),
                 "A run's share of what its stack of runs took, pretraining included, as a mean over all runs; in parentheses "
                 "the paper's number.")
