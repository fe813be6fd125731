"""BRB with and without a reset of the embedding layer, by data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tables import labels
from .bars import bars, from_near_the_lowest, means
from .base import Choice, Recipe, Runs, legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(runs: Runs, choice: Choice) -> Figure:
    """One panel for each algorithm."""
    runs = runs.chosen(choice)
    algorithms, datasets = runs.values("algorithm"), runs.values("dataset")
    figure, grid = panels(1, len(algorithms), width=max(1.7, 0.62 * len(datasets) + 0.3), sharey=True)
    numbers = [means(runs.only(algorithms=[algorithm]), "acc") for algorithm in algorithms]
    for axes, algorithm, own in zip(grid[0], algorithms, numbers, strict=True):
        bars(axes, own, datasets, sorted(runs.values("variant"), key=lambda variant: variant != "brb"))
        axes.tick_params(axis="x", labelsize=6.5)
        axes.set_title(", ".join(dict.fromkeys(labels.method(algorithm, "none", pretrained=start)
                                               for start in runs.values("pretrained"))))
    from_near_the_lowest(grid[0, 0], numbers)
    grid[0, 0].set_ylabel("accuracy (%)")
    legend(figure, grid[0, 0])
    return figure


RECIPE = Recipe("embedding-reset", ("embedding-reset",), draw,
                "Accuracy with and without a reset of the embedding layer. Mean and standard error; the axis does not "
                "begin at 0.")
