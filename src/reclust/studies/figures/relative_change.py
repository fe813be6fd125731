"""By how much each intervention changes the accuracy of the algorithm that it is added to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tables import labels
from .bars import bars, means
from .base import Choice, Recipe, Runs, legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(runs: Runs, choice: Choice) -> Figure:
    runs = runs.chosen(choice)
    changes = relative_changes(runs)
    variants = [variant for variant in runs.variants if variant != "none"]
    figure, grid = panels(width=max(3.4, 1.0 + 0.75 * len(runs.values("dataset"))))
    axes = grid[0, 0]
    bars(axes, {key: (change, 0.0) for key, change in changes.items()}, runs.values("dataset"), variants)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_ylabel("relative change of accuracy (%)")
    algorithm, pretrained = runs.values("algorithm")[0], runs.values("pretrained")[0]
    axes.set_title(f"{labels.method(algorithm, 'none', pretrained=pretrained)}")
    legend(figure, axes)
    return figure


def relative_changes(runs: Runs, measure: str = "acc") -> dict[tuple[str, str], float]:
    """(data set, variant) -> percent of the mean without an intervention, for all variants that have such a mean."""
    found = means(runs, measure)
    if not any(variant == "none" for _, variant in found):
        raise runs.missing("no run without an intervention")
    return {(dataset, variant): 100 * (mean / found[dataset, "none"][0] - 1) for (dataset, variant), (mean, _) in found.items()
            if variant != "none" and (dataset, "none") in found}


RECIPE = Recipe("relative-change", ("acc-table",), draw, "Relative change of mean accuracy against no intervention.",
                usual={"algorithms": ("dcn",), "pretrained": True})
