"""Accuracy of the replica that is selected of n, and of the best of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tables import labels
from ..tables.selection import SIZES, pools, repetitions
from .panels import legend, panels
from .runs import Choice, FigureSpec, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(runs: Runs, choice: Choice) -> Figure:
    found = [pool for pool in pools(repetitions(runs.reader, runs.study))
             if choice.datasets is None or pool.dataset in choice.datasets]
    runs.require(found, "no independent replicas")
    figure, ((axes,),) = panels()
    for i, pool in enumerate(found):
        color, sizes = labels.OTHER_COLORS[i % len(labels.OTHER_COLORS)], pool.sizes
        kept = [pool.kept(n)[0] for n in sizes]
        best = [own + pool.regret(n) for n, own in zip(sizes, kept, strict=True)]
        axes.plot(sizes, kept, color=color, marker="o", markersize=3, linewidth=1.2,
                  label=labels.dataset(pool.dataset))
        axes.plot(sizes, best, color=color, linestyle="--", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks(SIZES, list(map(str, SIZES)))
    axes.minorticks_off()
    axes.set_xlabel("replicas (n_init)")
    axes.set_ylabel("accuracy of the kept replica (%)")
    legend(figure, axes)
    return figure


N_INIT = FigureSpec("n-init", ("best",), draw,
                    "Accuracy of the replica selected without labels, by the number of replicas; "
                    "dashed: the best of them.")
