"""Ratio of the distances to the two nearest centres, around a reset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...training.history import around_resets
from ..tables import labels
from .panels import legend, panels
from .runs import Choice, FigureSpec, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOMENTS = (("before the reset", "#0072B2", "-"), ("right after it", "#D55E00", "--"),
           ("an epoch later", "#000000", ":"))


def draw(runs: Runs, choice: Choice) -> Figure:
    runs = runs.chosen(choice)
    figure, grid = panels(1, len(runs.values("dataset")), width=2.6, sharey=True)
    for axes, dataset in zip(grid[0], runs.values("dataset"), strict=True):
        own = runs.only(datasets=[dataset])
        epoch, shares = ratio_shares(own, choice.epoch)
        edges = np.linspace(0, 1, shares.shape[1] + 1)
        for values, (name, color, style) in zip(shares, MOMENTS, strict=True):
            axes.stairs(100 * values, edges, color=color, linestyle=style, linewidth=1.2,
                        label=name)
        method = labels.method(own.values("algorithm")[0], "brb",
                               pretrained=own.values("pretrained")[0])
        axes.set_title(f"{method}, {labels.dataset(dataset)}, epoch {epoch}")
        axes.set_xlabel(r"distance ratio $\rho = d_1 / d_2$")
        axes.set_xlim(0, 1)
    grid[0, 0].set_ylabel("samples (%)")
    legend(figure, grid[0, 0])
    return figure


def ratio_shares(runs: Runs, epoch: int | None) -> tuple[int, np.ndarray]:
    """Return the epoch of a reset, by default the first, and mean shares (3, bins) over runs."""
    name, found = "distance_ratio_histogram", []
    for run in runs.frame["run"]:
        runs.columns(run, name, f"{name}_after_reset", "fired")
        around = around_resets(runs.reader.history(run)["clustering"], name)
        known = [at for at in around.epochs.tolist() if at in runs.resets_of(run, epoch)]
        epoch = known[0] if epoch is None and known else epoch
        runs.require(epoch in known, f"no distance ratios around the reset at epoch {epoch}")
        counts = around.values[around.epochs.tolist().index(epoch)]
        found.append(counts / counts.sum(-1, keepdims=True))
    assert epoch is not None
    return epoch, np.mean(found, axis=0)


DISTANCE_RATIOS = FigureSpec(
    "distance-ratios", ("training-curves",), draw,
    "Histogram of the ratio of the distances to the two nearest centres, before and after a reset; "
    "mean over runs.", ("ratios",),
    {"datasets": ("gtsrb", "optdigits", "mnist"), "algorithms": ("dcn",), "variants": ("brb",),
     "pretrained": True})
