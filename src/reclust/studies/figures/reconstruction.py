"""The reconstruction loss: it jumps at each reset, and comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import CURVES, Choice, Recipe, Runs, curve_panels, legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(runs: Runs, choice: Choice) -> Figure:
    chosen = runs.chosen(choice)
    figure = curve_panels([chosen], ["reconstruction_loss"])
    after = chosen.curves("reconstruction_loss_after_reset").dropna(subset=["reconstruction_loss_after_reset"])
    for axes, (_, own) in zip(figure.axes, after.groupby("dataset", sort=False), strict=True):
        right_after = own[own["variant"] == "brb"].groupby("epoch")["reconstruction_loss_after_reset"].mean()
        axes.plot(right_after.index, right_after, linestyle="none", marker="^", markersize=4, color="#D55E00",
                  label="right after a reset", zorder=5)
    figure.legends.clear()
    legend(figure, figure.axes[0])
    return figure


RECIPE = Recipe("reconstruction", CURVES, draw, "Reconstruction loss by epoch, and right after each reset.",
                ("reconstruction",),
                {"datasets": ("optdigits",), "algorithms": ("dcn",), "variants": ("none", "brb"), "pretrained": True})
