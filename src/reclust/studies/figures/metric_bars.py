"""NMI and ARI of each intervention by data set, averaged over algorithms."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..tables import labels
from .bars import bars, means
from .base import Choice, Recipe, Runs, legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(measure: str, runs: Runs, choice: Choice) -> Figure:
    """One panel with and one without pretraining, as far as there are runs."""
    runs = runs.chosen(choice)
    starts, datasets = sorted(runs.values("pretrained"), reverse=True), runs.values("dataset")
    figure, grid = panels(1, len(starts), width=max(3.0, 1.0 + 0.6 * len(datasets)), sharey=True)
    for axes, start in zip(grid[0], starts, strict=True):
        own = runs.only(pretrained=start)
        every = own.frame.groupby("dataset")["algorithm"].nunique() == runs.frame["algorithm"].nunique()
        whole = own.only(datasets=[name for name in own.values("dataset") if every[name]])  # a mean of some would mislead
        bars(axes, means(whole, measure), datasets, runs.variants)
        axes.tick_params(axis="x", labelsize=7)
        axes.set_title(labels.value("pretrained", start))
    algorithms = "/".join(map(labels.algorithm, runs.values("algorithm")))
    grid[0, 0].set_ylabel(f"{labels.measure(measure)} (%), {algorithms}")
    legend(figure, grid[0, 0])
    return figure


ABOUT = "{} by data set, averaged over algorithms and seeds; without sets that lack an algorithm."
NMI = Recipe("nmi-bars", ("acc-table",), partial(draw, "nmi"), ABOUT.format("NMI"))
ARI = Recipe("ari-bars", ("acc-table",), partial(draw, "ari"), ABOUT.format("ARI"))
