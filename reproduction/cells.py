"""Our scores beside the paper's, cell by cell, and the gain of BRB over its baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reclust.estimators.presets import PAPER_INTERVENTIONS
from reclust.studies import published
from reclust.studies.store.reader import CELL, StoreReader, spread
from reclust.studies.tables import labels
from reclust.studies.tables.comparison import Comparison, compare, interval_cell
from reclust.studies.tables.table import Cell, Row, Table, number, plus_minus, signed

MAIN = "acc-table"
OTHER_SEEDS = "other-seeds"
WITH_ERRORS = {"reclustering-methods": "ari", "subsample-size": "ari"}
"""Ablations for which the paper prints standard errors -> the measure."""
SETS = ("mnist", "usps", "optdigits", "fmnist", "gtsrb")
"""Data sets that are the same as the paper's."""
PARTIAL = {"kmnist_test": "kmnist"}
"""Parts of the paper's data sets, which are not counted -> the whole."""
TOLERANCE = 2.0
"""Points, or combined standard errors, within which a cell agrees with the paper."""


@dataclass(frozen=True)
class CellAgreement:
    """One cell in percent; `stderr` is NaN for one seed, `paper_stderr` 0 if the paper has none."""

    dataset: str
    algorithm: str
    pretrained: bool
    variant: str
    runs: int
    mean: float
    stderr: float
    paper: float
    paper_stderr: float

    @property
    def name(self) -> str:
        """The key of its remark, after the study."""
        start = "pretrained" if self.pretrained else "scratch"
        return f"{self.dataset}/{self.algorithm}/{self.variant}/{start}"

    @property
    def label(self) -> str:
        return labels.method(self.algorithm, self.variant, pretrained=self.pretrained)

    @property
    def difference(self) -> float:
        return self.mean - self.paper

    @property
    def error(self) -> float:
        """Combined standard error of both means."""
        return math.hypot(self.stderr, self.paper_stderr)

    @property
    def units(self) -> float:
        """The difference in combined standard errors."""
        return self.difference / self.error if self.error else math.nan

    @property
    def verdict(self) -> str:
        bound = max(TOLERANCE, 0.0 if math.isnan(self.error) else TOLERANCE * self.error)
        return ("lower" if self.difference < -bound else "higher" if self.difference > bound
                else "agrees")

    @property
    def agrees(self) -> bool:
        return self.verdict == "agrees"

    @property
    def differs(self) -> bool:
        """Return whether the difference is more than two combined standard errors."""
        return abs(self.units) > 2


def agreements(reader: StoreReader, measure: str = "acc", studies: Sequence[str] = (MAIN,), *,
               table: str = MAIN) -> list[CellAgreement]:
    """Compare the runs of these studies together with a table of the paper, in plan order."""
    scores: dict[tuple, list[float]] = {}
    for study in (name for name in studies if name in reader.studies()):
        for *key, score in reader.finished(study, CELL, (measure,)):
            scores.setdefault(tuple(key), []).append(score)
    made = []
    for (dataset, algorithm, pretrained, variant), own in scores.items():
        cell = {"dataset": PARTIAL.get(dataset, dataset), "algorithm": algorithm,
                "pretrained": bool(pretrained), "variant": variant}
        paper, ours = published.find(table, cell, measure), spread(own)
        if paper is not None:
            made.append(CellAgreement(
                dataset, algorithm, bool(pretrained), variant, len(own), 100 * ours["mean"],
                100 * ours["stderr"], paper.mean, paper.stderr or 0.0))
    return made


def count(cells: Iterable[CellAgreement]) -> Mapping[str, int]:
    """Count the cells of the paper's own data sets: known, agreeing, differing, and how."""
    own = [cell for cell in cells if cell.dataset in SETS]
    differ = [cell for cell in own if cell.differs]
    return {"known": len(own), "agree": sum(cell.agrees for cell in own), "differ": len(differ),
            "above": sum(cell.difference > 0 for cell in differ),
            **{verdict: sum(cell.verdict == verdict for cell in own)
               for verdict in ("higher", "lower")}}


def agreement_table(cells: Iterable[CellAgreement], dataset: str, measure: str = "acc") -> Table:
    """Tabulate all cells of a data set in the order of the paper's rows."""
    blocks: dict[tuple, list[Row]] = {}
    for cell in sorted((cell for cell in cells if cell.dataset == dataset),
                       key=lambda cell: (cell.pretrained, labels.DEEP.index(cell.algorithm))):
        named = cell.label if cell.variant in PAPER_INTERVENTIONS else (
            f"{labels.algorithm(cell.algorithm)}, {labels.variant(cell.variant)}")
        blocks.setdefault((cell.pretrained, cell.algorithm), []).append(Row(named, (
            number(cell.runs, 0), _mean(cell.mean, cell.stderr),
            _mean(cell.paper, cell.paper_stderr), _signed(cell.difference), _units(cell),
            Cell(cell.verdict, best=not cell.agrees))))
    return Table(f"{labels.dataset(dataset)}, {labels.measure(measure)}",
                 ("", "seeds", "ours", "paper", "difference", "in standard errors", ""),
                 tuple(map(tuple, blocks.values())))


class Repeated(NamedTuple):
    """A cell that differs from the paper: with its own seeds, with others, and with both."""

    first: CellAgreement
    others: CellAgreement
    both: CellAgreement

    @property
    def differs_again(self) -> bool:
        return self.others.differs and self.others.difference * self.first.difference > 0


def repeated(reader: StoreReader) -> list[Repeated]:
    """Return the differing cells that were run with other seeds."""
    others, both = ({cell.name: cell for cell in agreements(reader, studies=studies)}
                    for studies in ((OTHER_SEEDS,), (MAIN, OTHER_SEEDS)))
    return [Repeated(cell, others[cell.name], both[cell.name]) for cell in agreements(reader)
            if cell.differs and cell.dataset in SETS and cell.name in others]


def repeated_table(found: Sequence[Repeated]) -> Table:
    blocks: dict[str, list[Row]] = {}
    for one in sorted(found, key=lambda one: SETS.index(one.first.dataset)):
        cell, again = one.first, one.differs_again
        ours = [part for each in one for part in (_mean(each.mean, each.stderr), _units(each))]
        blocks.setdefault(cell.dataset, []).append(Row(
            f"{cell.label}, {labels.dataset(cell.dataset)}",
            (_mean(cell.paper, cell.paper_stderr), *ours,
             Cell("differs" if again else "agrees", best=again))))
    return Table("Other seeds", (
        "", "paper", "main table", "in standard errors", "other seeds", "in standard errors", "all",
        "in standard errors", "with other seeds"), tuple(map(tuple, blocks.values())))


class Improvement(NamedTuple):
    """BRB against its baseline in one cell, paired by seed, and the paper's difference of means."""

    ours: Comparison
    paper: float


def improvements(reader: StoreReader, study: str = MAIN) -> list[Improvement]:
    """Compare every cell in which BRB and its baseline have finished runs of the same seeds."""
    made = []
    for one in compare(reader, study) if study in reader.studies() else ():
        cell = {**vars(one), "dataset": PARTIAL.get(one.dataset, one.dataset)}
        brb, none = (published.find(study, {**cell, "variant": variant}, "acc")
                     for variant in ("brb", "none"))
        if brb is not None and none is not None:
            made.append(Improvement(one, brb.mean - none.mean))
    return made


def improvement_table(found: Sequence[Improvement]) -> Table:
    blocks: dict[tuple[bool, str], list[Row]] = {}
    for one, paper in sorted(found, key=lambda found: (
            found.ours.pretrained, labels.DEEP.index(found.ours.algorithm))):
        *cells, sign = _paired(one)
        blocks.setdefault((one.pretrained, one.algorithm), []).append(
            Row(_label(one, "brb"), (*cells, _signed(paper), sign)))
    return Table("BRB minus its baseline, points of ACC", (
        "", "pairs", "wins", "difference", "95 % interval", "the paper's difference", ""),
        tuple(map(tuple, blocks.values())))


def against_brb_table(reader: StoreReader, study: str) -> Table | None:
    """Tabulate all other variants of a study minus BRB; None if it has no BRB."""
    variants = dict.fromkeys(name for (name,) in reader.finished(study, ("variant",), ()))
    others = [variant for variant in variants if variant not in ("none", "brb")]
    if "brb" not in variants or not others:
        return None
    blocks = [tuple(Row(_label(one, variant), tuple(_paired(one)))
                    for one in compare(reader, study, variant=variant, baseline="brb"))
              for variant in others]
    return Table(f"{study}: difference from BRB, points of ACC",
                 ("", "pairs", "wins", "difference", "95 % interval", ""), tuple(blocks),
                 "Paired by seed; better or worse than BRB if the interval excludes 0, else open.")


def _label(one: Comparison, variant: str) -> str:
    method = labels.method(one.algorithm, variant, pretrained=one.pretrained)
    return f"{method}, {labels.dataset(one.dataset)}"


def _paired(one: Comparison) -> list[Cell]:
    return [number(one.pairs, 0), number(one.wins, 0), _signed(one.difference),
            interval_cell(one.low, one.high), Cell(one.sign, best=one.sign != "open")]


def _mean(mean: float, stderr: float) -> Cell:
    return Cell(plus_minus(mean, stderr), numbers={"": mean, "stderr": stderr})


def _signed(given: float) -> Cell:
    return Cell(signed(given), numbers={"": given})


def _units(cell: CellAgreement) -> Cell:
    text = "" if math.isnan(cell.units) else signed(cell.units, 1)
    return Cell(text, numbers={"": cell.units}, best=cell.differs)
