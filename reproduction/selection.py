"""Tables about selecting one of many replicas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reclust.studies.tables import labels
from reclust.studies.tables.selection import (
    DEFAULT_SCORE,
    SIZES,
    Pool,
    Repetition,
    blocks,
    mean,
)
from reclust.studies.tables.table import Cell, Row, Table, number, plus_minus


def variants_table(every: Sequence[Repetition], title: str) -> Table:
    """Tabulate variants side by side: the selected replica and its regret."""
    return Table(
        title, ("", "repetitions", "selected", "mean replica", "best replica", "regret", "seconds"),
        blocks(every, _variant_row),
        "Mean ± standard error over repetitions of twenty replicas, one of which is selected by "
        f"{labels.measure(DEFAULT_SCORE)}. Regret: the best replica minus the selected one. "
        "Seconds: of one repetition.")


def _variant_row(own: list[Repetition]) -> list[Cell]:
    kept, best = [one.kept() for one in own], [one.acc.max() for one in own]
    return [mean(kept), mean([one.acc.mean() for one in own]), mean(best),
            mean(np.subtract(best, kept).tolist())]


def n_init_table(found: Sequence[Pool]) -> Table:
    """Tabulate the accuracy of the selected replica and its regret by the number of replicas."""
    pairs = []
    for pool in found:
        kept = [Cell(plus_minus(*pool.kept(n)), numbers={"": pool.kept(n)[0]})
                if n in pool.sizes else Cell() for n in SIZES]
        regrets = [number(pool.regret(n)) if n in pool.sizes else Cell() for n in SIZES]
        name = labels.dataset(pool.dataset)
        pairs.append((Row(f"{name}, selected of {len(pool.acc)} replicas", tuple(kept)),
                      Row(f"{name}, regret", tuple(regrets))))
    return Table(
        "Accuracy of the selected replica by n_init", ("n_init", *map(str, SIZES)), tuple(pairs),
        "Exact over all subsets of n_init independent replicas, at most half of those recorded: "
        f"mean ± standard deviation of the replica selected by {labels.measure(DEFAULT_SCORE)}, "
        "and its regret, the mean loss to the best replica of the subset.")
