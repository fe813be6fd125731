"""Where the time of a run goes, and what interventions add to it."""

from __future__ import annotations

from dataclasses import dataclass

from ...settings import Settings
from .. import labels, published
from ..reading import CELL, StoreReader
from .table import Cell, Row, Table, number, score

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
    first = frame.drop_duplicates(list(CELL))
    schedules = {cell: _epochs_and_firings(reader.settings(run)) for *cell, run in
                 first[[*CELL, "run"]].itertuples(index=False, name=None) for cell in [tuple(cell)]}
    frame["firings"] = [schedules[cell][1] for cell in frame[list(CELL)].itertuples(index=False, name=None)]
    # A run's time is its share of its group's, whether or not all of them fire.
    firings = frame.groupby("group")["firings"].transform("mean")
    frame = frame.reindex(columns=[*CELL, *(f"clustering.{part}" for part in (*PARTS, "training", "centers"))]).fillna(0.0)
    parts = [f"clustering.{part}" for part in PARTS]
    frame[parts] = frame[parts].div(firings.where(firings > 0), axis=0)
    made = []
    for cell, *seconds in frame.groupby(list(CELL), sort=False).mean().itertuples(name=None):
        epochs, fired = schedules[cell]
        if fired:
            dataset, algorithm, pretrained, variant = cell
            own = dict(zip(PARTS, seconds[: len(PARTS)], strict=True))
            made.append(Spent(dataset, algorithm, bool(pretrained), variant, own, sum(seconds[len(PARTS) :]) / epochs))
    return made


def _epochs_and_firings(settings: Settings) -> tuple[int, int]:
    epochs = 0 if settings.clustering is None else settings.clustering.epochs
    intervention = settings.intervention
    return epochs, sum(intervention.fires(epoch) for epoch in range(epochs)) if intervention is not None else 0


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
        rows.append(Row(labels.dataset(entry["dataset"]), (
            score(entry["seconds_mean"], entry["seconds_stderr"], None if paper is None else paper.mean,
                  extra={"runs": float(entry["runs"]), "stderr": entry["seconds_stderr"]}),)))
    return Table(f"{study}: time of a run", ("", "seconds"), (tuple(rows),),
                 "A run's share of what its stack of runs took, pretraining included; in parentheses the paper's number and "
                 "the difference.")
