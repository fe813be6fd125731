"""What a fit keeps of n replicas, and the best of them, by n."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tables import labels
from ..tables.selection import SIZES, pools, repetitions
from .base import Choice, Recipe, Runs, legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(runs: Runs, choice: Choice) -> Figure:
    """One line for each data set; dashed what the best of so many replicas has."""
    found = [pool for pool in pools(repetitions(runs.reader, runs.study))
             if choice.datasets is None or pool.dataset in choice.datasets]
    if not found:
        raise runs.missing("no independent replicas")
    figure, ((axes,),) = panels()
    for i, pool in enumerate(found):
        color, sizes = labels.OTHERS[i % len(labels.OTHERS)], pool.sizes
        kept = [pool.kept(n)[0] for n in sizes]
        axes.plot(sizes, kept, color=color, marker="o", markersize=3, linewidth=1.2, label=labels.dataset(pool.dataset))
        axes.plot(sizes, [own + pool.regret(n) for n, own in zip(sizes, kept, strict=True)], color=color, linestyle="--",
                  linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks(SIZES, list(map(str, SIZES)))
    axes.minorticks_off()
    axes.set_xlabel("replicas (n_init)")
    axes.set_ylabel("accuracy of the kept replica (%)")
    legend(figure, axes)
    return figure


RECIPE = Recipe("n-init", ("best",), draw, "Accuracy of the replica that is kept without labels, by how many there are; "
                "dashed the best of them.")
