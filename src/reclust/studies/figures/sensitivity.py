"""Accuracy by reset factor, interval and learning rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..tables import labels
from .panels import panels
from .runs import Choice, FigureSpec, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(runs: Runs, choice: Choice) -> Figure:
    import pandas

    runs = runs.chosen(choice)
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
            shown = axes.imshow(table.to_numpy(), cmap="cividis", vmin=low, vmax=high,
                                aspect="auto")
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


SENSITIVITY = FigureSpec(
    "sensitivity", ("sensitivity",), draw,
    "Mean accuracy over algorithms and seeds for each setting of BRB, with pretraining; empty if "
    "an algorithm is missing.")
