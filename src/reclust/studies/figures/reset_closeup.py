"""One reset in close-up: the embedding before it, after it and later, and NMI by epoch around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .base import Choice, Recipe, Runs, legend, mark_resets, title
from .scatter import classes, in_the_plane, moment, same_limits, scatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(runs: Runs, choice: Choice) -> Figure:
    from matplotlib.figure import Figure

    runs = runs.chosen(choice)
    run = runs.frame["run"].iloc[0]
    before, after = runs.columns(run, "embedding", "embedding_after_reset")
    resets = [epoch for epoch in runs.resets_of(run, choice.epoch) if epoch in after.epochs]
    if not resets:
        raise runs.missing("no embeddings right after a reset")
    epoch = choice.epoch if choice.epoch is not None else resets[len(resets) // 2]
    later = int(before.epochs[before.epochs > epoch].min(initial=before.epochs.max()))
    moments = in_the_plane([moment(runs, run, epoch - 1, name=f"(1) before, {epoch} epochs"),
                            moment(runs, run, epoch, name="(2) right after the reset", after_reset=True),
                            moment(runs, run, later, name=f"(3) later, {later + 1} epochs")])
    figure = Figure(figsize=(7.0, 3.9), layout="constrained")
    grid = figure.add_gridspec(2, 3, height_ratios=(2.0, 1.0))
    places = [figure.add_subplot(grid[0, i]) for i in range(3)]
    for axes, shown in zip(places, moments, strict=True):
        scatter(axes, shown, classes(runs, run))
    same_limits(places, moments)
    below = figure.add_subplot(grid[1, :])
    _nmi(below, runs, run, (epoch, later))
    legend(figure, places[0])
    figure.suptitle(title(runs, "brb"), fontsize=9)
    return figure


def _nmi(axes: Axes, runs: Runs, run: str, window: tuple[int, int]) -> None:
    """NMI by epochs trained, with the drop right after each reset, from a reset before to a reset later."""
    measured, right_after = runs.columns(run, "nmi", "nmi_after_reset")
    epochs = np.concatenate([measured.epochs + 1.0, right_after.epochs + 1e-6])  # before and after share the number of epochs
    order = epochs.argsort(kind="stable")
    epochs, values = epochs[order].round(3), 100 * np.concatenate([measured.values, right_after.values])[order]
    axes.plot(epochs, values, color="black", linewidth=1.2, marker=".", markersize=4)
    mark_resets(axes, runs.resets_of(run))
    epoch, later = window
    span = max(later + 1 - epoch, 5)
    left, right = max(0, epoch - span), min(measured.epochs.max() + 1, later + 1 + span)
    seen = values[(epochs >= left) & (epochs <= right)]
    axes.set_xlim(left, right)
    axes.set_ylim(seen.min() - 0.1 * np.ptp(seen) - 0.1, seen.max() + 0.25 * np.ptp(seen) + 0.1)
    for number, place in (("1", epoch), ("2", epoch), ("3", later + 1)):
        axes.annotate(f"({number})", (place, 1), xycoords=("data", "axes fraction"), xytext=(-2 if number == "1" else 2, -2),
                      textcoords="offset points", ha="right" if number == "1" else "left", va="top", fontsize=7)
    axes.set_xlabel("epochs")
    axes.set_ylabel("NMI (%)")


RECIPE = Recipe("reset-closeup", ("embeddings",), draw,
                "Embeddings of one seed before, right after and later than one reset, and its NMI at the epochs that are "
                "recorded.", ("embeddings",),
                {"datasets": ("usps",), "algorithms": ("dec",), "variants": ("brb",), "pretrained": True})
