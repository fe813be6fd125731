"""Figures of embeddings in two dimensions, and of the borders between clusters around a reset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...training.history import AFTER_RESET, around_resets
from ..tables import labels
from .panels import add_legend, mark_resets, panels, title, variant_name
from .runs import Choice, Runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLASSES = ("#332288", "#DDCC77", "#117733", "#CC6677", "#88CCEE", "#882255", "#44AA99", "#999933",
           "#AA4499", "#666666")  # Tol's muted palette, safe for color-blind readers
MARKERS = "os^Dv<>pdh"
CLOSE = 0.9  # ratio of the distances to the two nearest centers from which a sample is marked
MOMENTS = (("before the reset", "#0072B2", "-"), ("right after it", "#D55E00", "--"),
           ("an epoch later", "#000000", ":"))


@dataclass(frozen=True)
class Moment:
    """Embeddings (rows, d) and centers (k, d) at one moment of a run."""

    name: str
    z: np.ndarray
    centers: np.ndarray


def moment(runs: Runs, run: str, epoch: int, *, name: str, after_reset: bool = False) -> Moment:
    """Load the end of an epoch (-1: the start), or the moment after the reset at its start."""
    ending, arrays = AFTER_RESET if after_reset else "", []
    for curve in runs.columns(run, "embedding" + ending, "centers" + ending):
        known = ", ".join(map(str, curve.epochs))
        runs.require(epoch in curve.epochs, f"no embeddings at epoch {epoch}, only at {known},")
        arrays.append(curve.values[curve.epochs == epoch][0])
    return Moment(name, *arrays)


def project(moments: list[Moment]) -> list[Moment]:
    """Project all moments on the two principal axes of all of them together."""
    if moments[0].z.shape[-1] == 2:
        return moments
    together = np.concatenate([moment.z for moment in moments]).astype(np.float64)
    mean = together.mean(0)
    axes = np.linalg.svd(together - mean, full_matrices=False)[2][:2]
    axes = axes * np.sign(axes[np.arange(2), np.abs(axes).argmax(1)])[:, None]  # fix the sign
    return [Moment(moment.name, (moment.z - mean) @ axes.T, (moment.centers - mean) @ axes.T)
            for moment in moments]


def scatter(axes: Axes, shown: Moment, classes: np.ndarray) -> None:
    """Draw samples by class, and centers as rings, which do not hide tight clusters."""
    for i, label in enumerate(np.unique(classes)):
        x, y = shown.z[classes == label].T
        axes.scatter(x, y, s=4.0, color=CLASSES[i % 10], marker=MARKERS[i % 10], alpha=0.6,
                     linewidths=0, label=f"class {label}", rasterized=True)
    axes.scatter(shown.centers[:, 0], shown.centers[:, 1], s=70, facecolors="none",
                 edgecolors="black", marker="o", linewidths=0.9, zorder=4, label="centers")
    frame(axes)
    axes.set_title(shown.name)


def frame(axes: Axes) -> None:
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(visible=True, color="0.6")


def same_limits(several: list[Axes], moments: list[Moment], margin: float = 0.05) -> None:
    everything = np.concatenate([part for moment in moments for part in (moment.z, moment.centers)])
    space = margin * np.ptp(everything, axis=0)
    x, y = np.transpose([everything.min(0) - space, everything.max(0) + space])
    for axes in several:
        axes.set(xlim=x, ylim=y)


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
    figure.suptitle(title(runs), fontsize=9)
    return add_legend(figure, grid[0, 0])


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
    figure.suptitle(title(runs, "brb"), fontsize=9)
    return add_legend(figure, places[0])


def _draw_nmi(axes: Axes, runs: Runs, run: str, epoch: int, later: int) -> None:
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


def draw_ratios(runs: Runs, choice: Choice) -> Figure:
    figure, grid = panels(1, len(runs.values("dataset")), width=2.6, sharey=True)
    for axes, dataset in zip(grid[0], runs.values("dataset"), strict=True):
        shown = runs.only(dataset=[dataset])
        epoch, shares = ratio_shares(shown, choice.epoch)
        edges = np.linspace(0, 1, shares.shape[1] + 1)
        for values, (name, color, style) in zip(shares, MOMENTS, strict=True):
            axes.stairs(100 * values, edges, color=color, ls=style, linewidth=1.2, label=name)
        first = shown.frame.iloc[0]
        method = labels.method(first.algorithm, "brb", pretrained=first.pretrained)
        axes.set(title=f"{method}, {labels.dataset(dataset)}, epoch {epoch}", xlim=(0, 1),
                 xlabel=r"distance ratio $\rho = d_1 / d_2$")
        axes.xaxis.label.set_parse_math(True)
    grid[0, 0].set_ylabel("samples (%)")
    return add_legend(figure, grid[0, 0])


def ratio_shares(runs: Runs, epoch: int | None) -> tuple[int, np.ndarray]:
    """Return the epoch of a reset, by default the first, and mean shares (3, bins) over runs."""
    name, shares = "distance_ratio_histogram", []
    for run in runs.frame["run"]:
        runs.columns(run, name, f"{name}_after_reset")
        around = around_resets(runs.reader.history(run)["clustering"], name)
        resets = runs.resets_of(run, epoch)
        known = [at for at in around.epochs.tolist() if at in resets]
        epoch = known[0] if epoch is None and known else epoch
        runs.require(epoch in known, f"no distance ratios around the reset at epoch {epoch}")
        counts = around.values[around.epochs.tolist().index(epoch)]
        shares.append(counts / counts.sum(-1, keepdims=True))
    assert epoch is not None
    return epoch, np.mean(shares, axis=0)


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
    figure.suptitle(title(runs, "brb"), fontsize=9)
    return add_legend(figure, grid[0, 0])


def _draw_cells(axes: Axes, centers: np.ndarray) -> None:
    """Shade the part of the plane nearest to each center and draw the borders."""
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
        x, y = shown.z[(classes == label) & ~close].T
        axes.scatter(x, y, s=5, color=color, marker=MARKERS[i % 10], alpha=0.7, linewidths=0,
                     label=f"class {label}", zorder=2, rasterized=True)
        x, y = shown.z[(classes == label) & close].T
        axes.scatter(x, y, s=16, color=color, marker="x", linewidths=0.8, zorder=3, rasterized=True)
    axes.scatter([], [], s=16, color="0.3", marker="x", linewidths=0.8, label="close to a border")
    axes.scatter(shown.centers[:, 0], shown.centers[:, 1], s=50, color="white", edgecolors="black",
                 marker="X", linewidths=0.9, zorder=4, label="centers")
