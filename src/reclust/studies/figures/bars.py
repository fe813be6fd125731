"""Grouped bars with standard errors, which several figures consist of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tables import labels
from .base import Runs, name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = Mapping[tuple[Any, str], tuple[float, float]]
"""(group, variant) -> mean and standard error."""


def means(runs: Runs, measure: str, by: str = "dataset") -> Numbers:
    """Percent with its standard error, for all runs that agree in a column and the variant: the mean of the algorithms' means,
    so that one with more seeds than others does not count for more."""
    grouped = 100 * runs.frame.groupby([by, "variant", "algorithm"], sort=False)[measure].agg(["mean", "sem"])
    return {key: (own["mean"].mean(), np.sqrt(np.nan_to_num(own["sem"]) @ np.nan_to_num(own["sem"])) / len(own))
            for key, own in grouped.groupby(level=[0, 1], sort=False)}


def bars(axes: Axes, numbers: Numbers, groups: Sequence[Any], variants: Sequence[str], *, by: str = "dataset") -> None:
    """A bar for each variant in each group; variants of the paper keep their colours."""
    colors, width = labels.colors(variants), 0.8 / len(variants)
    for i, variant in enumerate(variants):
        place = np.arange(len(groups)) + (i - (len(variants) - 1) / 2) * width
        mean, spread = (np.array([numbers.get((group, variant), (np.nan, np.nan))[j] for group in groups]) for j in (0, 1))
        axes.bar(place, mean, width, yerr=spread, color=colors[variant], label=name_of(variant), edgecolor="white",
                 linewidth=0.5, error_kw={"linewidth": 0.8, "ecolor": "0.35"})
    axes.set_xticks(range(len(groups)), [labels.value(by, group).replace(" ", "\n", 1) for group in groups])
    axes.tick_params(axis="x", length=0)


def from_near_the_lowest(axes: Axes, numbers: Sequence[Numbers]) -> None:
    """Begin the axis where differences can be seen, which its numbers tell, and not at 0."""
    lowest = min(mean - spread for own in numbers for mean, spread in own.values())
    axes.set_ylim(bottom=max(0.0, 10 * np.floor((lowest - 10) / 10)))
