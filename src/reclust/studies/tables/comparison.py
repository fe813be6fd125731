"""One variant against another, paired by seed: wins, mean difference, interval and tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..store.reader import CELL, StoreReader
from . import labels
from .paired import mean_interval, signed_rank_test, t_test
from .table import Cell, Row, Table, number, signed


@dataclass(frozen=True)
class Comparison:
    """Variant minus baseline of one data set, algorithm and start, in percent.

    The interval of the mean difference is Student's, p values are two-sided; NaN for a single pair.
    """

    dataset: str
    algorithm: str
    pretrained: bool
    pairs: int
    wins: int
    losses: int
    baseline: float
    variant: float
    difference: float
    low: float
    high: float
    p_wilcoxon: float
    p_t: float

    @property
    def sign(self) -> str:
        """Return "better" or "worse" if the interval excludes 0, else "open"."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "open"


def compare(reader: StoreReader, study: str, *, variant: str = "brb", baseline: str = "none",
            measure: str = "acc", confidence: float = 0.95) -> list[Comparison]:
    """Compare every cell in which both variants have finished runs of the same seeds."""
    found: dict[tuple, dict[str, dict[int, float]]] = {}
    for *cell, name, seed, score in reader.finished(study, (*CELL, "seed"), (measure,),
                                                    (variant, baseline)):
        found.setdefault(tuple(cell), {variant: {}, baseline: {}})[name][seed] = score
    made = []
    for (dataset, algorithm, pretrained), own in found.items():
        seeds = [seed for seed in own[baseline] if seed in own[variant]]
        if seeds:
            before, after = (100 * np.array([own[name][seed] for seed in seeds])
                             for name in (baseline, variant))
            differences = after - before
            wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
            low, high = mean_interval(differences, confidence)
            made.append(Comparison(
                dataset, algorithm, bool(pretrained), len(seeds), wins, losses,
                float(before.mean()), float(after.mean()), float(differences.mean()), low, high,
                signed_rank_test(differences), t_test(differences)))
    return made


def comparison_table(reader: StoreReader, study: str, *, variant: str = "brb",
                     baseline: str = "none", measure: str = "acc") -> Table:
    """Tabulate a comparison, with a block for each algorithm and start."""
    found = compare(reader, study, variant=variant, baseline=baseline, measure=measure)
    blocks: dict[tuple[bool, str], list[Row]] = {}
    for one in sorted(found, key=lambda one: one.pretrained):
        blocks.setdefault((one.pretrained, one.algorithm), []).append(_row(one))
    better = sum(one.difference > 0 for one in found)
    name, measured = labels.variant(variant), labels.measure(measure)
    other = "the baseline" if baseline == "none" else labels.variant(baseline)
    return Table(
        f"{study}: {name} against {other}",
        ("", "pairs", "wins", f"baseline {measured}", f"{name} {measured}", "difference",
         "95 % interval", "p (Wilcoxon)", "p (paired t)"),
        tuple(map(tuple, blocks.values())),
        f"Paired by seed, in percent. {name} has the higher mean in {better} of {len(found)} rows; "
        "differences whose interval excludes 0 are bold.")


def _row(one: Comparison) -> Row:
    method = labels.method(one.algorithm, "none", pretrained=one.pretrained)
    return Row(f"{method}, {labels.dataset(one.dataset)}", (
        number(one.pairs, 0), number(one.wins, 0), number(one.baseline), number(one.variant),
        Cell(signed(one.difference), numbers={"": one.difference}, best=one.sign != "open"),
        interval_cell(one.low, one.high), _probability(one.p_wilcoxon), _probability(one.p_t)))


def interval_cell(low: float, high: float) -> Cell:
    return Cell("" if np.isnan(low) else f"{signed(low)} to {signed(high)}",
                numbers={"low": low, "high": high})


def _probability(p: float) -> Cell:
    return Cell("<0.0001", numbers={"": p}) if p < 5e-5 else number(p, 4)
