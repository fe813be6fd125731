"""Relative improvement by BRB on each data set, as a radar chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..tables import labels
from .bars import relative_changes
from .panels import legend, panels, variant_name
from .runs import Choice, FigureSpec, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = (("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-."))


def draw(runs: Runs, choice: Choice) -> Figure:
    from matplotlib.ticker import MaxNLocator

    runs = runs.chosen(choice)
    datasets = runs.values("dataset")
    runs.require("brb" in runs.values("variant"), "no run with the variant brb")
    angles = np.linspace(0, 2 * np.pi, len(datasets), endpoint=False)
    figure, ((axes,),) = panels(height=3.4, subplot_kw={"projection": "polar"})
    highest = 0.0
    for algorithm, (color, style) in zip(runs.values("algorithm"), LINES, strict=False):
        changes = relative_changes(runs.only(algorithms=[algorithm]))
        values = np.array([changes.get((dataset, "brb"), np.nan) for dataset in datasets])
        if np.isnan(values).all():
            continue
        around, closed = np.append(angles, angles[0]), np.append(values, values[0])
        axes.plot(around, closed, color=color, linestyle=style, marker="o", markersize=3,
                  label=f"{labels.algorithm(algorithm)}+BRB")
        axes.fill(around, closed, color=color, alpha=0.15)
        highest = max(highest, np.nanmax(np.abs(values)))
    axes.plot(np.linspace(0, 2 * np.pi, 100), np.zeros(100), color="black", linewidth=0.8,
              label=variant_name("none"))
    axes.set_xticks(angles, [labels.dataset(dataset) for dataset in datasets])
    axes.tick_params(axis="x", pad=6)
    axes.set_rlabel_position(180 / len(datasets))  # between two data sets
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.tick_params(axis="y", labelsize=6, labelcolor="0.3")
    axes.grid(color="0.85", linewidth=0.6)
    axes.set_rmin(min(0.0, *(line.get_ydata().min() for line in axes.lines)) - 0.15 * highest)
    axes.yaxis.set_major_formatter(  # 0 is the black ring
        lambda value, _: f"{value:+.0f} %" if value else "")
    starts = " and ".join(labels.value("pretrained", start) for start in runs.values("pretrained"))
    axes.set_title(f"relative change of accuracy, {starts}")
    legend(figure, axes)
    return figure


RADAR = FigureSpec(
    "radar", ("from-scratch", "acc-table"), draw,
    "Relative improvement of accuracy by BRB, by data set.",
    defaults={"algorithms": ("dec", "idec"), "pretrained": False})
