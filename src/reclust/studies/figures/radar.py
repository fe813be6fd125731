"""Relative improvement by BRB on each data set, as a radar chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..tables import labels
from .base import Choice, Recipe, Runs, legend, name_of, panels
from .relative_change import relative_changes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = (("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-."))


def draw(runs: Runs, choice: Choice) -> Figure:
    from matplotlib.ticker import MaxNLocator

    runs = runs.chosen(choice)
    datasets = runs.values("dataset")
    if "brb" not in runs.values("variant"):
        raise runs.missing("no run with the variant brb")
    angles = np.linspace(0, 2 * np.pi, len(datasets), endpoint=False)
    figure, grid = panels(height=3.4, subplot_kw={"projection": "polar"})
    axes, highest = grid[0, 0], 0.0
    for algorithm, (color, style) in zip(runs.values("algorithm"), LINES, strict=False):
        changes = relative_changes(runs.only(algorithms=[algorithm]))
        values = np.array([changes.get((dataset, "brb"), np.nan) for dataset in datasets])
        if np.isnan(values).all():
            continue
        closed = np.append(values, values[0])
        axes.plot(np.append(angles, angles[0]), closed, color=color, linestyle=style, marker="o", markersize=3,
                  label=f"{labels.algorithm(algorithm)}+BRB")
        axes.fill(np.append(angles, angles[0]), closed, color=color, alpha=0.15)
        highest = max(highest, np.nanmax(np.abs(values)))
    ring = np.linspace(0, 2 * np.pi, 100)
    axes.plot(ring, np.zeros(100), color="black", linewidth=0.8, label=name_of("none"))
    axes.set_xticks(angles, [labels.dataset(dataset) for dataset in datasets])
    axes.tick_params(axis="x", pad=6)
    axes.set_rlabel_position(180 / len(datasets))  # between two data sets
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.tick_params(axis="y", labelsize=6, labelcolor="0.3")
    axes.grid(color="0.85", linewidth=0.6)
    axes.set_rmin(min(0.0, *(line.get_ydata().min() for line in axes.lines)) - 0.15 * highest)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:+.0f} %" if value else "")  # the black ring
    starts = " and ".join(labels.value("pretrained", start) for start in runs.values("pretrained"))
    axes.set_title(f"relative change of accuracy, {starts}")
    legend(figure, axes)
    return figure


RECIPE = Recipe("radar", ("from-scratch", "acc-table"), draw, "Relative improvement of accuracy by BRB, by data set.",
                usual={"algorithms": ("dec", "idec"), "pretrained": False})
