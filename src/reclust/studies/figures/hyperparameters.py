"""Figures of accuracy by hyperparameter: settings of BRB, and the number of replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..tables import labels
from ..tables.selection import SIZES, pools, repetitions
from .panels import legend, panels
from .runs import Choice, FigureSpec, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_sensitivity(runs: Runs, choice: Choice) -> Figure:
    import pandas

    for factor in ("keep", "interval", "lr"):
        runs.require(factor in runs.frame, f"no factor {factor!r}")
    rates = sorted(runs.values("lr"), reverse=True)
    settings = runs.frame.groupby(["dataset", "lr", "interval", "keep"])
    means = 100 * settings["acc"].mean()
    # In an unfinished study, the mean of some of the algorithms would look like an effect.
    means = means.where(settings["algorithm"].nunique() == runs.frame["algorithm"].nunique())
    means = means.reindex(pandas.MultiIndex.from_product(means.index.levels))
    datasets = [dataset for dataset in runs.values("dataset") if means[dataset].notna().any()]
    runs.require(datasets, "no setting with runs of all algorithms")
    figure, grid = panels(len(datasets), len(rates), width=1.9, height=2.1, sharey=True)
    for row, dataset in zip(grid, datasets, strict=True):
        low, high = means[dataset].min(), means[dataset].max()
        for axes, rate in zip(row, rates, strict=True):
            table = means[dataset, rate].unstack("keep")
            shown = axes.imshow(table, cmap="cividis", vmin=low, vmax=high, aspect="auto")
            axes.set_xticks(range(table.shape[1]), [f"{keep:g}" for keep in table.columns])
            axes.set_yticks(range(table.shape[0]), [f"{interval:g}" for interval in table.index])
            for i, j in np.argwhere(table.notna().to_numpy()):
                dark = table.iloc[i, j] < low + 0.55 * (high - low)
                axes.text(j, i, f"{table.iloc[i, j]:.0f}", ha="center", va="center",
                          color="white" if dark else "black", fontsize=7)
            if axes in grid[0]:
                axes.set_title(f"learning rate {rate:g}", fontsize=8)
            if axes in grid[-1]:
                axes.set_xlabel("reset factor α")
        row[0].set_ylabel(f"{labels.dataset(dataset)}\ninterval T")
        figure.colorbar(shown, ax=row.tolist(), label="accuracy (%)", shrink=0.9, pad=0.02)
    return figure


def draw_n_init(runs: Runs, choice: Choice) -> Figure:
    found = [pool for pool in pools(repetitions(runs.reader, runs.study))
             if pool.dataset in runs.values("dataset")]
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
    axes.set(xlabel="replicas (n_init)", ylabel="accuracy of the kept replica (%)")
    legend(figure, axes)
    return figure


SENSITIVITY = FigureSpec(
    "sensitivity", ("sensitivity",), draw_sensitivity,
    "Mean accuracy over algorithms and seeds for each setting of BRB, with pretraining; empty if "
    "an algorithm is missing.")
N_INIT = FigureSpec("n-init", ("best",), draw_n_init,
                    "Accuracy of the replica selected without labels, by the number of replicas; "
                    "dashed: the best of them.")
