"""How the time of an epoch with a reset splits into parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..tables import labels
from ..tables.runtime import PARTS, spent
from .base import Choice, Recipe, Runs, legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = {"epoch": "#999999", "clustering": "#0072B2", "embedding": "#E69F00", "reset": "#009E73", "momentum": "#CC79A7"}
NAMES = {"epoch": "one epoch of training", "clustering": "clustering", "embedding": "embedding", "reset": "weight reset",
         "momentum": "momentum reset"}


def draw(runs: Runs, choice: Choice) -> Figure:
    known = set(runs.chosen(choice).frame[["dataset", "algorithm", "pretrained", "variant"]].itertuples(index=False, name=None))
    cells = [one for one in spent(runs.reader, runs.study)
             if (one.dataset, one.algorithm, one.pretrained, one.variant) in known]
    if not cells:
        raise runs.missing("no run with an intervention")
    several = len({(one.dataset, one.algorithm, one.pretrained) for one in cells}) > 1
    figure, grid = panels(height=0.9 + 0.28 * len(cells), width=5.2)
    axes, left = grid[0, 0], np.zeros(len(cells))
    for part in ("epoch", "clustering", "embedding", "reset", "momentum"):
        values = np.array([one.epoch if part == "epoch" else one.parts[part] for one in cells])
        axes.barh(range(len(cells)), values, left=left, color=COLORS[part], label=NAMES[part], edgecolor="white", linewidth=0.4)
        left += values
    for i, one in enumerate(cells):
        axes.text(left[i], i, f"  +{one.overhead:.1f} %", va="center", fontsize=7)
    full = [f"{labels.method(one.algorithm, one.variant, pretrained=one.pretrained)}, {labels.dataset(one.dataset)}"
            for one in cells]
    axes.set_yticks(range(len(cells)), full if several else [labels.variant(one.variant) for one in cells])
    if not several:
        one = cells[0]
        axes.set_title(f"{labels.method(one.algorithm, 'none', pretrained=one.pretrained)}, {labels.dataset(one.dataset)}")
    axes.invert_yaxis()
    axes.set_xlim(0, 1.18 * left.max())
    axes.set_xlabel("seconds of an epoch with a reset;\nbeside it what BRB adds to 20 epochs")
    legend(figure, axes, ncols=3)
    return figure


assert set(PARTS) < set(COLORS)
RECIPE = Recipe("runtime", ("runtime",), draw, "Seconds of one epoch and of one reset by part.")
