"""Figures of embeddings in two dimensions: at the start and the end, and around one reset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...training.history import AFTER_RESET
from .panels import legend, mark_resets, panels, title, variant_name
from .runs import Choice, FigureSpec, Runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLASSES = ("#332288", "#DDCC77", "#117733", "#CC6677", "#88CCEE", "#882255", "#44AA99", "#999933",
           "#AA4499", "#666666")  # Tol's muted palette, safe for colour-blind readers
MARKERS = "os^Dv<>pdh"


@dataclass(frozen=True)
class Moment:
    """Embeddings (rows, d) and centres (k, d) at one moment of a run."""

    name: str
    z: np.ndarray
    centers: np.ndarray


def moment(runs: Runs, run: str, epoch: int, *, name: str, after_reset: bool = False) -> Moment:
    """Load the end of an epoch (-1: the start), or the moment after the reset at its start."""
    ending, made = AFTER_RESET if after_reset else "", []
    for curve in runs.columns(run, "embedding" + ending, "centers" + ending):
        known = ", ".join(map(str, curve.epochs))
        runs.require(epoch in curve.epochs, f"no embeddings at epoch {epoch}, only at {known},")
        made.append(curve.values[curve.epochs == epoch][0])
    return Moment(name, *made)


def project(moments: list[Moment]) -> list[Moment]:
    """Project all moments on the two principal axes of all of them together."""
    if moments[0].z.shape[-1] == 2:
        return moments
    together = np.concatenate([one.z for one in moments]).astype(np.float64)
    mean = together.mean(0)
    axes = np.linalg.svd(together - mean, full_matrices=False)[2][:2]
    axes = axes * np.sign(axes[np.arange(2), np.abs(axes).argmax(1)])[:, None]  # fix the sign
    return [Moment(one.name, (one.z - mean) @ axes.T, (one.centers - mean) @ axes.T)
            for one in moments]


def scatter(axes: Axes, shown: Moment, classes: np.ndarray) -> None:
    """Draw samples by class, and centres as rings, which do not hide tight clusters."""
    for i, label in enumerate(np.unique(classes)):
        own = shown.z[classes == label]
        axes.scatter(own[:, 0], own[:, 1], s=4.0, color=CLASSES[i % 10], marker=MARKERS[i % 10],
                     alpha=0.6, linewidths=0, label=f"class {label}", rasterized=True)
    axes.scatter(shown.centers[:, 0], shown.centers[:, 1], s=70, facecolors="none",
                 edgecolors="black", marker="o", linewidths=0.9, zorder=4, label="centres")
    frame(axes)
    axes.set_title(shown.name)


def frame(axes: Axes) -> None:
    """Draw a box without ticks, since the axes have no unit."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(visible=True, color="0.6")


def same_limits(several: list[Axes], moments: list[Moment], margin: float = 0.05) -> None:
    everything = np.concatenate([part for one in moments for part in (one.z, one.centers)])
    low, high = everything.min(0), everything.max(0)
    space = margin * (high - low)
    for axes in several:
        axes.set_xlim(low[0] - space[0], high[0] + space[0])
        axes.set_ylim(low[1] - space[1], high[1] + space[1])


def draw_embedding(runs: Runs, choice: Choice) -> Figure:
    figure, grid = panels(len(runs.variants), 2, width=2.6, height=2.3)
    for row, variant in zip(grid, runs.variants, strict=True):
        run = runs.only(variant=[variant]).frame["run"].iloc[0]
        (curve,) = runs.columns(run, "embedding")
        classes = runs.reader.array(run, "shown_classes")
        for axes, epoch in zip(row, (-1, int(curve.epochs.max())), strict=True):
            when = "start" if epoch < 0 else f"{epoch + 1} epochs"
            shown = moment(runs, run, epoch, name=f"{variant_name(variant)}, {when}")
            scatter(axes, project([shown])[0], classes)
    legend(figure, grid[0, 0])
    figure.suptitle(title(runs), fontsize=9)
    return figure


def draw_closeup(runs: Runs, choice: Choice) -> Figure:
    from matplotlib.figure import Figure

    run = runs.frame["run"].iloc[0]
    before, after = runs.columns(run, "embedding", "embedding_after_reset")
    resets = [epoch for epoch in runs.resets_of(run, choice.epoch) if epoch in after.epochs]
    runs.require(resets, "no embeddings right after a reset")
    epoch = choice.epoch if choice.epoch is not None else resets[len(resets) // 2]
    later = int(before.epochs[before.epochs > epoch].min(initial=before.epochs.max()))
    moments = project([
        moment(runs, run, epoch - 1, name=f"(1) before, {epoch} epochs"),
        moment(runs, run, epoch, name="(2) right after the reset", after_reset=True),
        moment(runs, run, later, name=f"(3) later, {later + 1} epochs")])
    figure = Figure(figsize=(7.0, 3.9), layout="constrained")
    grid = figure.add_gridspec(2, 3, height_ratios=(2.0, 1.0))
    places = [figure.add_subplot(grid[0, i]) for i in range(3)]
    classes = runs.reader.array(run, "shown_classes")
    for axes, shown in zip(places, moments, strict=True):
        scatter(axes, shown, classes)
    same_limits(places, moments)
    _draw_nmi(figure.add_subplot(grid[1, :]), runs, run, epoch, later)
    legend(figure, places[0])
    figure.suptitle(title(runs, "brb"), fontsize=9)
    return figure


def _draw_nmi(axes: Axes, runs: Runs, run: str, epoch: int, later: int) -> None:
    """Draw NMI by epochs trained, with the drop right after each reset."""
    measured, after = runs.columns(run, "nmi", "nmi_after_reset")
    epochs = np.concatenate([measured.epochs + 1.0, after.epochs + 1e-6])  # after sorts behind
    order = epochs.argsort(kind="stable")
    epochs = epochs[order].round(3)
    values = 100 * np.concatenate([measured.values, after.values])[order]
    axes.plot(epochs, values, color="black", linewidth=1.2, marker=".", markersize=4)
    mark_resets(axes, runs.resets_of(run))
    span = max(later + 1 - epoch, 5)
    left, right = max(0, epoch - span), min(measured.epochs.max() + 1, later + 1 + span)
    seen = values[(epochs >= left) & (epochs <= right)]
    low, high, height = seen.min(), seen.max(), np.ptp(seen)
    for number, place, shift in (("(1)", epoch, -2), ("(2)", epoch, 2), ("(3)", later + 1, 2)):
        axes.annotate(number, (place, 1), (shift, -2), xycoords=("data", "axes fraction"),
                      textcoords="offset points", ha="right" if shift < 0 else "left", va="top",
                      fontsize=7)
    axes.set(xlabel="epochs", ylabel="NMI (%)", xlim=(left, right),
             ylim=(low - 0.1 * height - 0.1, high + 0.25 * height + 0.1))


EMBEDDING = FigureSpec(
    "embedding", ("embeddings",), draw_embedding,
    "Embeddings of one seed by true class at the start and at the end, each on its own principal "
    "axes.", ("embeddings",), {"datasets": ("usps",), "algorithms": ("idec",), "pretrained": True})
RESET_CLOSEUP = FigureSpec(
    "reset-closeup", ("embeddings",), draw_closeup,
    "Embeddings of one seed before, right after and some epochs after a reset, and its NMI.",
    ("embeddings",), {"datasets": ("usps",), "algorithms": ("dec",), "variants": ("brb",),
                      "pretrained": True})
