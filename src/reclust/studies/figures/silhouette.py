"""The silhouette with true and with predicted labels: the second misleads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import CURVES, Choice, Recipe, Runs, curve_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(runs: Runs, choice: Choice) -> Figure:
    figure = curve_panels(runs.by_dataset(choice), ("accuracy", "silhouette", "silhouette_predicted"))
    for axes in figure.axes:
        axes.set_ylabel(axes.get_ylabel().replace(", ", ",\n"))
    return figure


RECIPE = Recipe("silhouette", CURVES, draw, "Accuracy, and the silhouette by true and by predicted labels.",
                ("distances",),
                {"datasets": ("usps", "gtsrb"), "algorithms": ("dcn",), "variants": ("none", "brb"), "pretrained": True},
                by_dataset=True)
