"""Time of an epoch with a reset, by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..tables import labels
from ..tables.runtime import cell_times
from .panels import legend, panels
from .runs import Choice, FigureSpec, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = (("epoch", "one epoch of training", "#999999"), ("clustering", "clustering", "#0072B2"),
         ("embedding", "embedding", "#E69F00"), ("reset", "weight reset", "#009E73"),
         ("momentum", "momentum reset", "#CC79A7"))


def draw(runs: Runs, choice: Choice) -> Figure:
    columns = ["dataset", "algorithm", "pretrained", "variant"]
    known = set(runs.chosen(choice).frame[columns].itertuples(index=False, name=None))
    cells = [one for one in cell_times(runs.reader, runs.study)
             if (one.dataset, one.algorithm, one.pretrained, one.variant) in known]
    runs.require(cells, "no run with an intervention")
    several = len({(one.dataset, one.algorithm, one.pretrained) for one in cells}) > 1
    figure, ((axes,),) = panels(height=0.9 + 0.28 * len(cells), width=5.2)
    left = np.zeros(len(cells))
    for part, name, color in PARTS:
        values = np.array([one.epoch if part == "epoch" else one.parts[part] for one in cells])
        axes.barh(range(len(cells)), values, left=left, color=color, label=name, edgecolor="white",
                  linewidth=0.4)
        left += values
    for i, one in enumerate(cells):
        axes.text(left[i], i, f"  +{one.overhead:.1f} %", va="center", fontsize=7)
    names = [labels.method(one.algorithm, one.variant, pretrained=one.pretrained)
             + f", {labels.dataset(one.dataset)}" if several else labels.variant(one.variant)
             for one in cells]
    axes.set_yticks(range(len(cells)), names)
    if not several:
        method = labels.method(cells[0].algorithm, "none", pretrained=cells[0].pretrained)
        axes.set_title(f"{method}, {labels.dataset(cells[0].dataset)}")
    axes.invert_yaxis()
    axes.set_xlim(0, 1.18 * left.max())
    axes.set_xlabel("seconds of an epoch with a reset;\nbeside it what BRB adds to 20 epochs")
    legend(figure, axes, ncols=3)
    return figure


RUNTIME = FigureSpec("runtime", ("runtime",), draw,
                     "Seconds of one epoch of training and of one reset by part.")
