"""One variant against another, paired by seed: wins, mean difference, interval and tests."""

import math
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

import numpy as np
from scipy.special import stdtr, stdtrit

from ..store.reader import CELL, StoreReader, grouped, spread
from . import labels
from .table import Cell, Row, Table, number, signed


@dataclass(frozen=True)
class Comparison:
    """Variant minus baseline of one cell, in percent; interval and p are NaN for a single pair."""

    dataset: str
    algorithm: str
    pretrained: bool
    pairs: int
    wins: int
    baseline: float
    variant: float
    difference: float
    low: float
    high: float
    p_wilcoxon: float
    p_t: float

    @property
    def sign(self) -> str:
        return "better" if self.low > 0 else "worse" if self.high < 0 else "open"


def compare(reader: StoreReader, study: str, *, variant: str = "brb", baseline: str = "none",
            measure: str = "acc") -> list[Comparison]:
    """Compare every cell in which both variants have finished runs of the same seeds."""
    scores: dict[tuple, dict[str, dict[int, float]]] = {}
    for *cell, name, seed, score in reader.finished(study, (*CELL, "seed"), (measure,),
                                                    (variant, baseline)):
        scores.setdefault(tuple(cell), {variant: {}, baseline: {}})[name][seed] = score
    comparisons = []
    for (dataset, algorithm, pretrained), cell_scores in scores.items():
        seeds = [seed for seed in cell_scores[baseline] if seed in cell_scores[variant]]
        if seeds:
            before, after = (100 * np.array([cell_scores[name][seed] for seed in seeds])
                             for name in (baseline, variant))
            change = after - before
            comparisons.append(Comparison(
                dataset, algorithm, bool(pretrained), len(seeds), int((change > 0).sum()),
                float(before.mean()), float(after.mean()), float(change.mean()),
                *mean_interval(change, 0.95), signed_rank_test(change), t_test(change)))
    return comparisons


def comparison_table(reader: StoreReader, study: str) -> Table:
    """Tabulate BRB against its baseline, with a block for each algorithm and start."""
    comparisons = sorted(compare(reader, study), key=attrgetter("pretrained"))
    blocks = grouped(comparisons, attrgetter("pretrained", "algorithm")).values()
    better = sum(comparison.difference > 0 for comparison in comparisons)
    return Table(
        f"{study}: BRB against the baseline",
        ("", "pairs", "wins", "baseline ACC", "BRB ACC", "difference", "95 % interval",
         "p (Wilcoxon)", "p (paired t)"), tuple(tuple(map(_row, block)) for block in blocks),
        f"Paired by seed, in percent. BRB has the higher mean in {better} of {len(comparisons)} "
        "rows; differences whose interval excludes 0 are bold.")


def _row(cell: Comparison) -> Row:
    method = labels.method(cell.algorithm, "none", pretrained=cell.pretrained)
    return Row(f"{method}, {labels.dataset(cell.dataset)}", (
        number(cell.pairs, 0), number(cell.wins, 0), number(cell.baseline), number(cell.variant),
        Cell(signed(cell.difference), numbers={"": cell.difference}, best=cell.sign != "open"),
        interval_cell(cell.low, cell.high), _probability(cell.p_wilcoxon), _probability(cell.p_t)))


def interval_cell(low: float, high: float) -> Cell:
    return Cell("" if np.isnan(low) else f"{signed(low)} to {signed(high)}",
                numbers={"low": low, "high": high})


def _probability(p: float) -> Cell:
    return Cell("<0.0001", numbers={"": p}) if p < 5e-5 else number(p, 4)


def mean_interval(differences: np.ndarray, confidence: float) -> tuple[float, float]:
    found = spread(differences.tolist())
    half = float(stdtrit(len(differences) - 1, (1 + confidence) / 2)) * found["stderr"]
    return found["mean"] - half, found["mean"] + half


def t_test(differences: np.ndarray) -> float:
    """Two-sided p of a mean of 0; NaN if all differences are 0."""
    found = spread(differences.tolist())
    t = abs(found["mean"]) / found["stderr"] if found["stderr"] else math.nan
    return 2 * float(stdtr(len(differences) - 1, -t))


def signed_rank_test(differences: np.ndarray) -> float:
    """Two-sided exact p of Wilcoxon's test; importing scipy.stats takes longer than a table."""
    nonzero = differences[differences != 0]
    if not len(nonzero) or len(differences) < 2:
        return math.nan
    _, which, counts = np.unique(np.abs(nonzero), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(counts) - counts + 1)[which]  # twice the mean rank: an integer
    positive = int(doubled[nonzero > 0].sum())
    p = _rank_sum_distribution(tuple(sorted(doubled.tolist())))
    return min(1.0, 2 * float(min(p[: positive + 1].sum(), p[positive:].sum())))


@lru_cache(maxsize=64)  # cells without equal differences have the same ranks
def _rank_sum_distribution(ranks: tuple[int, ...]) -> np.ndarray:
    """Probability of each sum of positive ranks if every sign is a coin flip."""
    p = np.zeros(sum(ranks) + 1)
    p[0] = 1.0
    for rank in ranks:
        p = (p + np.concatenate([np.zeros(rank), p[:-rank]])) / 2
    return p
