"""Accuracy over training with and without BRB, resets marked: the barrier and how it is broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Choice, Recipe, Runs, curve_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WITHOUT_RESETS = ("none", "recluster")


def draw(runs: Runs, choice: Choice) -> Figure:
    chosen = runs.chosen(choice)
    figure = curve_panels([chosen], ["accuracy"])
    curves = chosen.curves("accuracy")
    base = curves[curves["variant"].isin(WITHOUT_RESETS)].groupby(["variant", "epoch"])["accuracy"].mean()
    if len(base) and len(figure.axes) == 1:
        (axes,), height = figure.axes, 100 * base.max()
        axes.axhline(height, color="0.4", linewidth=0.8, linestyle="--", zorder=1)
        axes.annotate("barrier", (1, height), (-2, 2), xycoords=axes.get_yaxis_transform(), textcoords="offset points",
                      ha="right", color="0.4", fontsize=7)
    return figure


RECIPE = Recipe("learning-curves", ("training-curves", "from-scratch", "acc-table"), draw,
                "Accuracy by epoch, mean and standard error; resets are dotted. The dashed line, the barrier, is the highest "
                "mean without resets.",
                usual={"datasets": ("usps",), "algorithms": ("idec",), "variants": ("none", "recluster", "brb"),
                       "pretrained": False})
