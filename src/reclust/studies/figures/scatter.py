"""Embeddings of some samples at one moment of a run, in two dimensions: what several figures draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...training.history import AFTER_RESET
from .base import Runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLASSES = ("#332288", "#DDCC77", "#117733", "#CC6677", "#88CCEE", "#882255", "#44AA99", "#999933", "#AA4499", "#666666")
"""Tol's muted palette, which stays apart for the colour-blind; markers help where many points mix."""
MARKERS = "os^Dv<>pdh"


@dataclass(frozen=True)
class Moment:
    """Embeddings (rows, d) and centres (k, d) at one moment."""

    name: str
    z: np.ndarray
    centers: np.ndarray


def moment(runs: Runs, run: str, epoch: int, *, name: str, after_reset: bool = False) -> Moment:
    """At the end of an epoch (-1: the start), or right after the reset at the start of it."""
    ending = AFTER_RESET if after_reset else ""
    made = []
    for curve in runs.columns(run, "embedding" + ending, "centers" + ending):
        places = np.flatnonzero(curve.epochs == epoch)
        if not len(places):
            raise runs.missing(f"no embeddings at epoch {epoch} (there are {', '.join(map(str, curve.epochs))})")
        made.append(curve.values[places[0]])
    return Moment(name, *made)


def classes(runs: Runs, run: str) -> np.ndarray:
    """(rows,): the true classes of the samples whose embeddings were kept."""
    try:
        return runs.reader.array(run, "shown_classes")
    except KeyError as error:
        raise runs.missing("no classes of the samples shown") from error


def in_the_plane(moments: list[Moment]) -> list[Moment]:
    """All moments by one projection: as they are where d = 2, else on the two principal axes of all of them together."""
    if moments[0].z.shape[-1] == 2:
        return moments
    together = np.concatenate([one.z for one in moments]).astype(np.float64)
    mean = together.mean(0)
    axes = np.linalg.svd(together - mean, full_matrices=False)[2][:2]
    axes = axes * np.sign(axes[np.arange(2), np.abs(axes).argmax(1)])[:, None]  # the sign is a convention
    return [Moment(one.name, (one.z - mean) @ axes.T, (one.centers - mean) @ axes.T) for one in moments]


def scatter(axes: Axes, shown: Moment, truth: np.ndarray, *, size: float = 4.0) -> None:
    """Samples by class, colour and marker telling them apart, and the centres as rings, since DEC's clusters shrink to points
    that a filled mark would hide."""
    for i, label in enumerate(np.unique(truth)):
        own = shown.z[truth == label]
        axes.scatter(own[:, 0], own[:, 1], s=size, color=CLASSES[i % 10], marker=MARKERS[i % 10], alpha=0.6, linewidths=0,
                     label=f"class {label}", rasterized=True)
    axes.scatter(shown.centers[:, 0], shown.centers[:, 1], s=70, facecolors="none", edgecolors="black", marker="o",
                 linewidths=0.9, zorder=4, label="centres")
    framed(axes)
    axes.set_title(shown.name)


def framed(axes: Axes) -> None:
    """No ticks, since the axes have no unit, and a box around the points."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set(visible=True, color="0.6")


def same_limits(axes_list: list[Axes], moments: list[Moment], margin: float = 0.05) -> None:
    everything = np.concatenate([part for one in moments for part in (one.z, one.centers)])
    low, high = everything.min(0), everything.max(0)
    space = margin * (high - low)
    for axes in axes_list:
        axes.set_xlim(low[0] - space[0], high[0] + space[0])
        axes.set_ylim(low[1] - space[1], high[1] + space[1])
