"""Figures of grouped bars: scores by data set, BRB with and without a part, relative changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..tables import labels
from .panels import legend, panels, variant_name
from .runs import Choice, FigureSpec, Runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = Mapping[tuple[str, str], tuple[float, float]]
"""(data set, variant) -> mean and standard error."""


def means(runs: Runs, measure: str) -> Numbers:
    """Average the means of the algorithms, in percent, so that each counts the same."""
    groups = runs.frame.groupby(["dataset", "variant", "algorithm"], sort=False)[measure]
    grouped = 100 * groups.agg(["mean", "sem"])
    return {key: (own["mean"].mean(), np.linalg.norm(np.nan_to_num(own["sem"])) / len(own))
            for key, own in grouped.groupby(level=[0, 1], sort=False)}


def draw_bars(axes: Axes, numbers: Numbers, datasets: Sequence[str],
              variants: Sequence[str]) -> None:
    colors, width = labels.colors(variants), 0.8 / len(variants)
    for i, variant in enumerate(variants):
        place = np.arange(len(datasets)) + (i - (len(variants) - 1) / 2) * width
        mean, spread = np.array([numbers.get((dataset, variant), (np.nan, np.nan))
                                 for dataset in datasets]).T
        axes.bar(place, mean, width, yerr=spread, color=colors[variant],
                 label=variant_name(variant), edgecolor="white", linewidth=0.5,
                 error_kw={"linewidth": 0.8, "ecolor": "0.35"})
    axes.set_xticks(range(len(datasets)),
                    [labels.dataset(dataset).replace(" ", "\n", 1) for dataset in datasets])
    axes.tick_params(axis="x", length=0)


def draw_by_start(measure: str, runs: Runs, choice: Choice) -> Figure:
    """Draw one panel with and one without pretraining."""
    runs = runs.chosen(choice)
    starts, datasets = sorted(runs.values("pretrained"), reverse=True), runs.values("dataset")
    width = max(3.0, 1.0 + 0.6 * len(datasets))
    figure, grid = panels(1, len(starts), width=width, sharey=True)
    for axes, start in zip(grid[0], starts, strict=True):
        own = runs.only(pretrained=start)
        counts = own.frame.groupby("dataset")["algorithm"].nunique()
        complete = own.only(datasets=[  # a mean over some of the algorithms would mislead
            name for name in own.values("dataset")
            if counts[name] == runs.frame["algorithm"].nunique()])
        draw_bars(axes, means(complete, measure), datasets, runs.variants)
        axes.tick_params(axis="x", labelsize=7)
        axes.set_title(labels.value("pretrained", start))
    algorithms = "/".join(map(labels.algorithm, runs.values("algorithm")))
    grid[0, 0].set_ylabel(f"{labels.measure(measure)} (%), {algorithms}")
    legend(figure, grid[0, 0])
    return figure


def draw_by_algorithm(runs: Runs, choice: Choice) -> Figure:
    """Draw one panel for each algorithm, on an axis that begins near the lowest bar."""
    runs = runs.chosen(choice)
    algorithms, datasets = runs.values("algorithm"), runs.values("dataset")
    width = max(1.7, 0.62 * len(datasets) + 0.3)
    figure, grid = panels(1, len(algorithms), width=width, sharey=True)
    numbers = [means(runs.only(algorithms=[algorithm]), "acc") for algorithm in algorithms]
    variants = sorted(runs.values("variant"), key=lambda variant: variant != "brb")
    for axes, algorithm, own in zip(grid[0], algorithms, numbers, strict=True):
        draw_bars(axes, own, datasets, variants)
        axes.tick_params(axis="x", labelsize=6.5)
        axes.set_title(", ".join(dict.fromkeys(
            labels.method(algorithm, "none", pretrained=start)
            for start in runs.values("pretrained"))))
    lowest = min(mean - spread for own in numbers for mean, spread in own.values())
    grid[0, 0].set_ylim(bottom=max(0.0, 10 * np.floor((lowest - 10) / 10)))
    grid[0, 0].set_ylabel("accuracy (%)")
    legend(figure, grid[0, 0])
    return figure


def draw_relative_change(runs: Runs, choice: Choice) -> Figure:
    runs = runs.chosen(choice)
    changes = {key: (change, 0.0) for key, change in relative_changes(runs).items()}
    figure, ((axes,),) = panels(width=max(3.4, 1.0 + 0.75 * len(runs.values("dataset"))))
    draw_bars(axes, changes, runs.values("dataset"),
              [variant for variant in runs.variants if variant != "none"])
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_ylabel("relative change of accuracy (%)")
    algorithm, pretrained = runs.values("algorithm")[0], runs.values("pretrained")[0]
    axes.set_title(labels.method(algorithm, "none", pretrained=pretrained))
    legend(figure, axes)
    return figure


def relative_changes(runs: Runs) -> dict[tuple[str, str], float]:
    """Map (data set, variant) to its change of accuracy in percent of the baseline's."""
    found = means(runs, "acc")
    runs.require("none" in runs.values("variant"), "no run without an intervention")
    return {(dataset, variant): 100 * (mean / found[dataset, "none"][0] - 1)
            for (dataset, variant), (mean, _) in found.items()
            if variant != "none" and (dataset, "none") in found}


RELATIVE_CHANGE = FigureSpec(
    "relative-change", ("acc-table",), draw_relative_change,
    "Relative change of the mean accuracy against no intervention.",
    defaults={"algorithms": ("dcn",), "pretrained": True})
NMI_BARS, ARI_BARS = (
    FigureSpec(f"{measure}-bars", ("acc-table",), partial(draw_by_start, measure),
               f"{measure.upper()} by data set, averaged over algorithms and seeds, without data "
               "sets that lack an algorithm.") for measure in ("nmi", "ari"))
EMBEDDING_RESET = FigureSpec(
    "embedding-reset", ("embedding-reset",), draw_by_algorithm,
    "Accuracy with and without a reset of the embedding layer. Mean and standard error; the axis "
    "does not begin at 0.")
MOMENTUM_RESET = FigureSpec(
    "momentum-reset", ("momentum-reset",), draw_by_algorithm,
    "Accuracy with and without the momentum reset, and with a reset of the step count as well. "
    "Mean and standard error; the axis does not begin at 0.")
