"""Figures of curves over training: accuracy, label change, distances, reconstruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .panels import add_legend, curve_panels
from .runs import Choice, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISTANCES = ("accuracy", "label_change", "intra_class_distance", "inter_class_distance")
WITHOUT_RESETS = ("none", "recluster")


def draw_curves(columns: tuple[str, ...], runs: Runs, choice: Choice) -> Figure:
    return curve_panels(runs.by_dataset(choice), columns)


def draw_learning_curves(runs: Runs, choice: Choice) -> Figure:
    """Draw accuracy, and in a single panel the highest mean reached without resets."""
    figure = curve_panels([runs], ["accuracy"])
    curves = runs.curves("accuracy")
    base = curves[curves["variant"].isin(WITHOUT_RESETS)]
    means = base.groupby(["variant", "epoch"])["accuracy"].mean()
    if len(means) and len(figure.axes) == 1:
        (axes,), height = figure.axes, 100 * means.max()
        axes.axhline(height, color="0.4", linewidth=0.8, linestyle="--", zorder=1)
        axes.annotate("barrier", (1, height), (-2, 2), xycoords=axes.get_yaxis_transform(),
                      textcoords="offset points", ha="right", color="0.4", fontsize=7)
    return figure


def draw_silhouette(runs: Runs, choice: Choice) -> Figure:
    figure = draw_curves(("accuracy", "silhouette", "silhouette_predicted"), runs, choice)
    for axes in figure.axes:
        axes.set_ylabel(axes.get_ylabel().replace(", ", ",\n"))
    return figure


def draw_reconstruction(runs: Runs, choice: Choice) -> Figure:
    """Draw the loss by epoch, and where it jumps right after each reset."""
    figure, name = curve_panels([runs], ["reconstruction_loss"]), "reconstruction_loss_after_reset"
    after = runs.curves(name).dropna(subset=[name])
    for axes, (_, curves) in zip(figure.axes, after.groupby("dataset", sort=False), strict=True):
        mean = curves[curves["variant"] == "brb"].groupby("epoch")[name].mean()
        axes.plot(mean.index, mean, linestyle="none", marker="^", markersize=4, color="#D55E00",
                  label="right after a reset", zorder=5)
    figure.legends.clear()
    return add_legend(figure, figure.axes[0])
