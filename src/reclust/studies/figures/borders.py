"""Figures of the borders between clusters around a reset: distance ratios and Voronoi cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...training.history import around_resets
from ..tables import labels
from .embeddings import CLASSES, MARKERS, Moment, frame, moment, same_limits
from .panels import legend, panels, title
from .runs import Choice, FigureSpec, Runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLOSE = 0.9  # ratio of the distances to the two nearest centres from which a sample is marked
MOMENTS = (("before the reset", "#0072B2", "-"), ("right after it", "#D55E00", "--"),
           ("an epoch later", "#000000", ":"))


def draw_ratios(runs: Runs, choice: Choice) -> Figure:
    figure, grid = panels(1, len(runs.values("dataset")), width=2.6, sharey=True)
    for axes, dataset in zip(grid[0], runs.values("dataset"), strict=True):
        own = runs.only(dataset=[dataset])
        epoch, shares = ratio_shares(own, choice.epoch)
        edges = np.linspace(0, 1, shares.shape[1] + 1)
        for values, (name, color, style) in zip(shares, MOMENTS, strict=True):
            axes.stairs(100 * values, edges, color=color, ls=style, linewidth=1.2, label=name)
        first = own.frame.iloc[0]
        method = labels.method(first.algorithm, "brb", pretrained=first.pretrained)
        axes.set(title=f"{method}, {labels.dataset(dataset)}, epoch {epoch}", xlim=(0, 1),
                 xlabel=r"distance ratio $\rho = d_1 / d_2$")
    grid[0, 0].set_ylabel("samples (%)")
    legend(figure, grid[0, 0])
    return figure


def ratio_shares(runs: Runs, epoch: int | None) -> tuple[int, np.ndarray]:
    """Return the epoch of a reset, by default the first, and mean shares (3, bins) over runs."""
    name, found = "distance_ratio_histogram", []
    for run in runs.frame["run"]:
        runs.columns(run, name, f"{name}_after_reset")
        around = around_resets(runs.reader.history(run)["clustering"], name)
        resets = runs.resets_of(run, epoch)
        known = [at for at in around.epochs.tolist() if at in resets]
        epoch = known[0] if epoch is None and known else epoch
        runs.require(epoch in known, f"no distance ratios around the reset at epoch {epoch}")
        counts = around.values[around.epochs.tolist().index(epoch)]
        found.append(counts / counts.sum(-1, keepdims=True))
    assert epoch is not None
    return epoch, np.mean(found, axis=0)


def draw_voronoi(runs: Runs, choice: Choice) -> Figure:
    run = runs.frame["run"].iloc[0]
    (after,) = runs.columns(run, "embedding_after_reset")
    epoch = int(after.epochs[0]) if choice.epoch is None else choice.epoch
    runs.resets_of(run, epoch)
    moments = [moment(runs, run, epoch - 1, name="before BRB"),
               moment(runs, run, epoch, name="after BRB", after_reset=True)]
    runs.require(moments[0].z.shape[-1] == 2, "no embeddings of two dimensions")
    figure, grid = panels(1, 2, width=2.9, height=2.6)
    for axes, shown in zip(grid[0], moments, strict=True):
        same_limits([axes], [shown], margin=0.1)
        _draw_cells(axes, shown.centers)
        _draw_samples(axes, shown, runs.reader.array(run, "shown_classes"))
        axes.set_title(f"{shown.name} ({epoch} epochs)")
        frame(axes)
    legend(figure, grid[0, 0])
    figure.suptitle(title(runs, "brb"), fontsize=9)
    return figure


def _draw_cells(axes: Axes, centers: np.ndarray) -> None:
    """Shade the part of the plane nearest to each centre and draw the borders."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    x, y = np.meshgrid(np.linspace(left, right, 400), np.linspace(bottom, top, 400))
    nearest = ((np.stack([x, y], -1)[:, :, None] - centers) ** 2).sum(-1).argmin(-1)
    shades = np.linspace(0.80, 0.97, len(centers))
    axes.imshow(shades[nearest], extent=(left, right, bottom, top), origin="lower", cmap="gray",
                vmin=0, vmax=1, aspect="auto", zorder=0, interpolation="nearest")
    for cluster in range(len(centers)):
        axes.contour(x, y, nearest == cluster, levels=[0.5], colors="0.3", linewidths=0.7, zorder=1)


def _draw_samples(axes: Axes, shown: Moment, classes: np.ndarray) -> None:
    distances = np.linalg.norm(shown.z[:, None] - shown.centers, axis=-1)
    nearest, second = np.sort(distances, axis=1)[:, :2].T
    close = nearest > CLOSE * second
    for i, label in enumerate(np.unique(classes)):
        color = CLASSES[i % 10]
        own = shown.z[(classes == label) & ~close]
        axes.scatter(own[:, 0], own[:, 1], s=5, color=color, marker=MARKERS[i % 10], alpha=0.7,
                     linewidths=0, label=f"class {label}", zorder=2, rasterized=True)
        edge = shown.z[(classes == label) & close]
        axes.scatter(edge[:, 0], edge[:, 1], s=16, color=color, marker="x", linewidths=0.8,
                     zorder=3, rasterized=True)
    axes.scatter([], [], s=16, color="0.3", marker="x", linewidths=0.8, label="close to a border")
    axes.scatter(shown.centers[:, 0], shown.centers[:, 1], s=50, color="white", edgecolors="black",
                 marker="X", linewidths=0.9, zorder=4, label="centres")


DISTANCE_RATIOS = FigureSpec(
    "distance-ratios", ("training-curves",), draw_ratios,
    "Histogram of the ratio of the distances to the two nearest centres, before and after a reset; "
    "mean over runs.", ("ratios",),
    {"datasets": ("gtsrb", "optdigits", "mnist"), "algorithms": ("dcn",), "variants": ("brb",),
     "pretrained": True})
VORONOI = FigureSpec(
    "voronoi", ("voronoi",), draw_voronoi,
    "Voronoi cells of the centres in two dimensions before and after a reset.", ("embeddings",),
    {"datasets": ("usps",), "algorithms": ("dec",), "variants": ("brb",), "pretrained": True})
