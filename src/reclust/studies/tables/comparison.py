"""One variant against another, paired by seed: wins, mean difference, confidence interval, tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ..store.reader import StoreReader
from . import labels
from .paired import mean_interval, signed_rank_test, t_test
from .table import Cell, Row, Table, number, signed


@dataclass(frozen=True)
class Comparison:
    """Of one data set, algorithm and way to start: differences are variant minus baseline, in percent.

    low, high: of the mean difference, by Student's t. p_wilcoxon, p_t: two-sided, of the signed-rank test (exact up to
    50 pairs) and the paired t-test; not numbers where there are too few pairs.
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


def compare(reader: StoreReader, study: str, *, variant: str = "brb", baseline: str = "none", measure: str = "acc",
            confidence: float = 0.95) -> list[Comparison]:
    """All cells of a study in which both have finished runs of the same seeds, in the order of the plan."""
    absent = [name for name in (variant, baseline) if not reader.has(study, name)]
    if absent:
        known = dict.fromkeys(name for (name,) in reader.finished(study, ("variant",), ()))
        raise ValueError(f"{study} has no finished runs of {absent[0]!r}; it has {', '.join(known) or 'none at all'}.")
    rows = reader.finished(study, ("dataset", "algorithm", "pretrained", "variant", "seed"), (measure,), (variant, baseline))
    found: dict[tuple, dict[str, dict[int, float]]] = {}
    for cell, members in groupby(rows, key=lambda row: row[:4]):
        found.setdefault(cell[:3], {variant: {}, baseline: {}})[cell[3]].update(row[4:] for row in members)
    pairs = {}
    for cell, own in found.items():
        seeds = [seed for seed in own[baseline] if seed in own[variant]]
        if seeds:
            pairs[cell] = 100 * np.array([[own[baseline][seed], own[variant][seed]] for seed in seeds])
    keys = list(pairs)
    made: dict[tuple, Comparison] = {}
    for count in {len(own) for own in pairs.values()}:  # cells with as many pairs are tested at once
        same = [key for key in keys if len(pairs[key]) == count]
        made |= zip(same, _compared(same, np.stack([pairs[key] for key in same]), confidence), strict=True)
    return [made[key] for key in keys]


def _compared(keys: Sequence[tuple], scores: np.ndarray, confidence: float) -> list[Comparison]:
    """scores: (cells, pairs, baseline and variant)."""
    pairs, differences = scores.shape[1], scores[..., 1] - scores[..., 0]
    mean = differences.mean(1)
    low = high = p_t = p_wilcoxon = np.full(len(keys), np.nan)
    if pairs > 1:
        low, high = mean_interval(differences, confidence)
        p_t, p_wilcoxon = t_test(differences), signed_rank_test(differences)
    wins, losses = (differences > 0).sum(1), (differences < 0).sum(1)
    means = scores.mean(1)
    return [Comparison(
        dataset, algorithm, bool(pretrained), pairs, int(wins[i]), int(losses[i]), baseline=float(means[i, 0]),
        variant=float(means[i, 1]), difference=float(mean[i]), low=float(low[i]), high=float(high[i]),
        p_wilcoxon=float(p_wilcoxon[i]), p_t=float(p_t[i])) for i, (dataset, algorithm, pretrained) in enumerate(keys)]


def comparison(reader: StoreReader, study: str, *, variant: str = "brb", baseline: str = "none", measure: str = "acc") -> Table:
    """The comparison as a table, one row for each cell, blocks by algorithm and way to start."""
    found = compare(reader, study, variant=variant, baseline=baseline, measure=measure)
    blocks: dict[tuple[bool, str], list[Row]] = {}
    for one in sorted(found, key=lambda one: one.pretrained):
        blocks.setdefault((one.pretrained, one.algorithm), []).append(_row(one))
    better = sum(one.difference > 0 for one in found)
    name = labels.measure(measure)
    return Table(
        f"{study}: {labels.variant(variant)} against {'the baseline' if baseline == 'none' else labels.variant(baseline)}",
        ("", "pairs", "wins", f"baseline {name}", f"{labels.variant(variant)} {name}", "difference", "95 % interval",
         "p (Wilcoxon)", "p (paired t)"),
        tuple(map(tuple, blocks.values())),
        f"Paired by seed, in percent. {labels.variant(variant)} has the higher mean in {better} of {len(found)} rows; bold "
        "where the interval of the difference leaves out 0.")


def _row(one: Comparison) -> Row:
    certain = one.low > 0 or one.high < 0
    interval = Cell("" if np.isnan(one.low) else f"{signed(one.low)} to {signed(one.high)}",
                    numbers={"low": one.low, "high": one.high})
    label = f"{labels.method(one.algorithm, 'none', pretrained=one.pretrained)}, {labels.dataset(one.dataset)}"
    return Row(label, (
        Cell(str(one.pairs), numbers={"": float(one.pairs)}), Cell(str(one.wins), numbers={"": float(one.wins)}),
        number(one.baseline), number(one.variant),
        Cell(signed(one.difference), numbers={"": one.difference}, best=certain), interval,
        _probability(one.p_wilcoxon), _probability(one.p_t)))


def _probability(p: float) -> Cell:
    return Cell("<0.0001", numbers={"": p}) if p < 5e-5 else number(p, 4)
