"""Figures of curves over training: accuracy, label change, distances, reconstruction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .panels import add_legend, curve_panels
from .runs import CURVES, Choice, FigureSpec, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISTANCES = ("accuracy", "label_change", "intra_class_distance", "inter_class_distance")
WITHOUT_RESETS = ("none", "recluster")
DCN = {"algorithms": ("dcn",), "pretrained": True}
ANALYSED = {**DCN, "variants": ("none", "recluster", "brb")}


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


LEARNING_CURVES = FigureSpec(
    "learning-curves", ("training-curves", "from-scratch", "acc-table"), draw_learning_curves,
    "Accuracy by epoch, mean and standard error; dotted lines are resets. The dashed line, the "
    "barrier, is the highest mean reached without resets.",
    defaults={"datasets": ("usps",), "algorithms": ("idec",), "variants": ANALYSED["variants"],
              "pretrained": False})
ANALYSIS = FigureSpec(
    "analysis", CURVES, partial(draw_curves, DISTANCES),
    "Accuracy, label change over one epoch, and distances within and between classes. Where labels "
    "were not compared in every epoch, points show the change at resets.",
    ("distances",), {**ANALYSED, "datasets": ("gtsrb", "optdigits", "mnist")}, by_dataset=True)
ANALYSIS_SILHOUETTE = FigureSpec(
    "analysis-silhouette", CURVES, partial(draw_curves, (*DISTANCES, "silhouette")),
    "The same with the silhouette of the true labels.", ("distances",),
    {**ANALYSED, "datasets": ("mnist",)}, by_dataset=True)
SILHOUETTE = FigureSpec(
    "silhouette", CURVES, draw_silhouette,
    "Accuracy, and the silhouette of the true and of the predicted labels.", ("distances",),
    {**DCN, "datasets": ("usps", "gtsrb"), "variants": ("none", "brb")}, by_dataset=True)
RECONSTRUCTION = FigureSpec(
    "reconstruction", CURVES, draw_reconstruction,
    "Reconstruction loss by epoch, and right after each reset.", ("reconstruction",),
    {**DCN, "datasets": ("optdigits",), "variants": ("none", "brb")})
CONTROLS = FigureSpec(
    "controls", ("noise-and-disentangled",), partial(draw_curves, DISTANCES),
    "Controls of BRB: noise on embeddings, labels of a reset copy (disentangled), and a reset "
    "without new targets (recomputed centers). Mean and standard error; distances are cosine "
    "distances.", ("distances",), {**DCN, "datasets": ("optdigits",)})
SOFT_RESET_COMPONENTS = FigureSpec(
    "soft-reset-components", ("soft-reset-components",), partial(draw_curves, ("accuracy",)),
    "Accuracy with perturbation only, with contraction only, and with Gaussian noise instead.",
    defaults={**DCN, "datasets": ("usps", "optdigits")})
