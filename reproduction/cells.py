"""Our numbers beside the paper's, cell by cell: agreement in units of the combined standard error, and what BRB gains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reclust.estimators.presets import PAPER_INTERVENTIONS
from reclust.studies import published
from reclust.studies.store.reader import CELL, StoreReader
from reclust.studies.store.summaries import spread
from reclust.studies.tables import labels
from reclust.studies.tables.comparison import Comparison, compare
from reclust.studies.tables.table import Cell, Row, Table, number, signed

MAIN = "acc-table"
OTHER_SEEDS = "other-seeds"
WITH_ERRORS = {"reclustering-methods": "ari", "subsample-size": "ari"}
"""Ablations of which the paper prints standard errors -> of which measure."""
SETS = ("mnist", "usps", "optdigits", "fmnist", "gtsrb")
"""The sets that are the paper's."""
APART = {"kmnist_test": "kmnist"}
"""Parts of the paper's sets, which stand apart from the others -> the whole set."""
POINTS = 2.0
"""Below the paper by no more than so many points, or twice the combined standard error: agrees."""


@dataclass(frozen=True)
class Agreement:
    """One cell in percent. stderr: not a number for a single seed. paper_stderr: where the paper gives none, 0."""

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
        """By which remarks refer to it, behind the study's."""
        return f"{self.dataset}/{self.algorithm}/{self.variant}/{'pretrained' if self.pretrained else 'scratch'}"

    @property
    def difference(self) -> float:
        return self.mean - self.paper

    @property
    def error(self) -> float:
        """The combined standard error."""
        return math.hypot(self.stderr, self.paper_stderr)

    @property
    def units(self) -> float:
        return self.difference / self.error if self.error else math.nan

    @property
    def agrees(self) -> bool:
        """Within the tolerance, or above the paper."""
        return self.difference >= -max(POINTS, 0.0 if math.isnan(self.error) else 2 * self.error)

    @property
    def differs(self) -> bool:
        """By more than two combined standard errors, to either side."""
        return abs(self.units) > 2


def agreements(reader: StoreReader, measure: str = "acc", studies: Sequence[str] = (MAIN,), *,
               table: str = MAIN) -> list[Agreement]:
    """The cells of a table of the paper, the main one unless another is named, that have records and a number there, in the
    order of the plan. studies: those whose runs are put together."""
    scores: dict[tuple, list[float]] = {}
    for study in studies:
        for *key, score in reader.finished(study, CELL, (measure,)) if study in reader.studies() else ():
            scores.setdefault(tuple(key), []).append(score)
    made = []
    for (dataset, algorithm, pretrained, variant), own in scores.items():
        cell = dict(zip(CELL, (APART.get(dataset, dataset), algorithm, bool(pretrained), variant), strict=True))
        paper, ours = published.find(table, cell, measure), spread(own)
        if paper is not None:
            made.append(Agreement(dataset, algorithm, bool(pretrained), variant, len(own), 100 * ours["mean"],
                                  100 * ours["stderr"], paper.mean, paper.stderr or 0.0))
    return made


def agreement_table(cells: Sequence[Agreement], dataset: str, measure: str = "acc") -> Table:
    """All cells of a set that have records, in the paper's order of rows."""
    own = sorted((cell for cell in cells if cell.dataset == dataset),
                 key=lambda cell: (cell.pretrained, labels.DEEP.index(cell.algorithm)))
    blocks: dict[tuple, list[Row]] = {}
    for cell in own:
        blocks.setdefault((cell.pretrained, cell.algorithm), []).append(_agreement_row(cell))
    return Table(
        f"{labels.dataset(dataset)}, {labels.measure(measure)}",
        ("", "seeds", "ours", "paper", "difference", "in standard errors", ""), tuple(map(tuple, blocks.values())))


@dataclass(frozen=True)
class SeenAgain:
    """A cell that lies apart from the paper's: with the seeds of the main table, with others, and with all of them."""

    first: Agreement
    others: Agreement
    both: Agreement

    @property
    def apart(self) -> bool:
        """With the others by themselves, to the same side."""
        return self.others.differs and self.others.difference * self.first.difference > 0


def seen_again(reader: StoreReader) -> list[SeenAgain]:
    """The cells of the paper's own sets that lie apart, as far as there are other seeds of them."""
    others, both = ({cell.name: cell for cell in agreements(reader, studies=studies)}
                    for studies in ((OTHER_SEEDS,), (MAIN, OTHER_SEEDS)))
    return [SeenAgain(cell, others[cell.name], both[cell.name]) for cell in agreements(reader)
            if cell.differs and cell.dataset in SETS and cell.name in others]


def seen_again_table(found: Sequence[SeenAgain]) -> Table:
    blocks: dict[str, list[Row]] = {}
    for one in sorted(found, key=lambda one: SETS.index(one.first.dataset)):
        cell = one.first
        blocks.setdefault(cell.dataset, []).append(Row(
            f"{labels.method(cell.algorithm, cell.variant, pretrained=cell.pretrained)}, {labels.dataset(cell.dataset)}",
            (_spread(cell.paper, cell.paper_stderr), *(part for each in (cell, one.others, one.both) for part in
                                                       (_spread(each.mean, each.stderr), _units(each))),
             Cell("apart" if one.apart else "not apart", best=one.apart))))
    return Table("Other seeds", ("", "paper", "main table", "in standard errors", "other seeds", "in standard errors", "all",
                                 "in standard errors", "with other seeds"), tuple(map(tuple, blocks.values())))


def _units(cell: Agreement) -> Cell:
    return Cell("" if math.isnan(cell.units) else signed(cell.units, 1), numbers={"": cell.units}, best=cell.differs)


def _agreement_row(cell: Agreement) -> Row:
    verdict = ("above" if cell.difference > max(POINTS, 2 * cell.error) else "agrees") if cell.agrees else "below"
    name = (labels.method(cell.algorithm, cell.variant, pretrained=cell.pretrained) if cell.variant in PAPER_INTERVENTIONS
            else f"{labels.method(cell.algorithm, 'none')}, {labels.variant(cell.variant)}")
    return Row(name, (
        Cell(str(cell.runs), numbers={"": float(cell.runs)}), _spread(cell.mean, cell.stderr),
        _spread(cell.paper, cell.paper_stderr), Cell(signed(cell.difference), numbers={"": cell.difference}),
        _units(cell), Cell(verdict, best=verdict == "below")))


def _spread(mean: float, stderr: float) -> Cell:
    text = f"{mean:.2f}" + ("" if math.isnan(stderr) else f" ± {stderr:.2f}")
    return Cell(text, numbers={"": mean, "stderr": stderr})


@dataclass(frozen=True)
class Improvement:
    """By how much BRB's accuracy exceeds its baseline's, in points, paired by seed. paper: the difference of its means."""

    dataset: str
    algorithm: str
    pretrained: bool
    pairs: int
    wins: int
    difference: float
    low: float
    high: float
    paper: float

    @property
    def sign(self) -> str:
        return "better" if self.low > 0 else "worse" if self.high < 0 else "open"


def improvements(reader: StoreReader, study: str = MAIN) -> list[Improvement]:
    """Every cell in which BRB and its baseline have finished runs of the same seeds, in the order of the plan."""
    variants = {variant for (variant,) in reader.finished(study, ("variant",), ())} if study in reader.studies() else set()
    made = []
    for one in compare(reader, study) if {"none", "brb"} <= variants else ():
        cell = {**vars(one), "dataset": APART.get(one.dataset, one.dataset)}
        brb, none = (published.find(study, {**cell, "variant": variant}, "acc") for variant in ("brb", "none"))
        if brb is not None and none is not None:
            made.append(Improvement(one.dataset, one.algorithm, one.pretrained, one.pairs, one.wins, one.difference, one.low,
                                    one.high, brb.mean - none.mean))
    return made


def improvement_table(found: Sequence[Improvement]) -> Table:
    blocks: dict[tuple[bool, str], list[Row]] = {}
    for one in sorted(found, key=lambda one: (one.pretrained, labels.DEEP.index(one.algorithm))):
        label = f"{labels.method(one.algorithm, 'brb', pretrained=one.pretrained)}, {labels.dataset(one.dataset)}"
        *cells, sign = _paired(one)
        paper = Cell(signed(one.paper), numbers={"": one.paper})
        blocks.setdefault((one.pretrained, one.algorithm), []).append(Row(label, (*cells, paper, sign)))
    return Table("BRB less its baseline, points of ACC",
                 ("", "pairs", "wins", "difference", "95 % interval", "the paper's difference", ""),
                 tuple(map(tuple, blocks.values())))


def against_brb_table(reader: StoreReader, study: str) -> Table | None:
    """All other variants of a study less BRB, paired by seed; None where it has no BRB."""
    variants = dict.fromkeys(variant for (variant,) in reader.finished(study, ("variant",), ()))
    others = [variant for variant in variants if variant not in ("none", "brb")]
    if "brb" not in variants or not others:
        return None
    blocks = [tuple(Row(f"{labels.method(one.algorithm, variant, pretrained=one.pretrained)}, {labels.dataset(one.dataset)}",
                        tuple(_paired(one))) for one in compare(reader, study, variant=variant, baseline="brb"))
              for variant in others]
    return Table(f"{study}: less BRB, points of ACC", ("", "pairs", "wins", "difference", "95 % interval", ""), tuple(blocks),
                 "Paired by seed; better or worse than BRB where the interval leaves out 0, else open.")


def _paired(one: Comparison | Improvement) -> list[Cell]:
    interval = "" if math.isnan(one.low) else f"{signed(one.low)} to {signed(one.high)}"
    sign = "better" if one.low > 0 else "worse" if one.high < 0 else "open"
    return [number(one.pairs, 0), number(one.wins, 0), Cell(signed(one.difference), numbers={"": one.difference}),
            Cell(interval, numbers={"low": one.low, "high": one.high}), Cell(sign, best=sign != "open")]


def count(cells: Sequence[Agreement]) -> Mapping[str, int]:
    """Of the cells of the paper's own sets: how many have records, agree, and differ, in which direction, and
    how many lie below and agree all the same, by less than two points."""
    own = [cell for cell in cells if cell.dataset in SETS]
    differ = [cell for cell in own if cell.differs]
    return {"known": len(own), "agree": sum(cell.agrees for cell in own), "differ": len(differ),
            "above": sum(cell.difference > 0 for cell in differ),
            "hardly": sum(cell.difference < 0 and cell.agrees for cell in differ)}
