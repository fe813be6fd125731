"""Figures of scores by data set and by hyperparameter, of relative changes, and of seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..store.reader import CELL
from ..tables import labels
from ..tables.runtime import cell_times
from ..tables.selection import SIZES, pools, repetitions
from .panels import add_legend, panels, variant_name
from .runs import Choice, Runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = Mapping[tuple[str, str], tuple[float, float]]  # (data set, variant) -> mean, stderr
RADAR_LINES = (("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-."))
PARTS = (("epoch", "one epoch of training", "#999999"), ("clustering", "clustering", "#0072B2"),
         ("embedding", "embedding", "#E69F00"), ("reset", "weight reset", "#009E73"),
         ("momentum", "momentum reset", "#CC79A7"))


def means(runs: Runs, measure: str) -> Numbers:
    """Average the means of the algorithms, in percent, so that each counts the same."""
    groups = runs.frame.groupby(["dataset", "variant", "algorithm"], sort=False)[measure]
    grouped = 100 * groups.agg(["mean", "sem"])
    return {key: (rows["mean"].mean(), np.linalg.norm(np.nan_to_num(rows["sem"])) / len(rows))
            for key, rows in grouped.groupby(level=[0, 1], sort=False)}


def draw_bars(axes: Axes, numbers: Numbers, datasets: Sequence[str], variants: list[str]) -> None:
    colors, width = labels.colors(variants), 0.8 / len(variants)
    for i, variant in enumerate(variants):
        place = np.arange(len(datasets)) + (i - (len(variants) - 1) / 2) * width
        mean, spread = np.array([numbers.get((dataset, variant), (np.nan, np.nan))
                                 for dataset in datasets]).T
        axes.bar(place, mean, width, yerr=spread, color=colors[variant],
                 label=variant_name(variant), edgecolor="white", linewidth=0.5,
                 error_kw={"linewidth": 0.8, "ecolor": "0.35"})
    names = [labels.dataset(dataset).replace(" ", "\n", 1) for dataset in datasets]
    axes.set_xticks(range(len(datasets)), names)
    axes.tick_params(axis="x", length=0)


def draw_by_start(measure: str, runs: Runs, choice: Choice) -> Figure:
    starts, datasets = sorted(runs.values("pretrained"), reverse=True), runs.values("dataset")
    figure, grid = panels(1, len(starts), width=max(3.0, 1.0 + 0.6 * len(datasets)), sharey=True)
    for axes, start in zip(grid[0], starts, strict=True):
        chosen = runs.only(pretrained=[start])
        counts = chosen.frame.groupby("dataset")["algorithm"].nunique()
        complete = chosen.only(dataset=[  # a mean over some of the algorithms would mislead
            name for name in chosen.values("dataset")
            if counts[name] == runs.frame["algorithm"].nunique()])
        draw_bars(axes, means(complete, measure), datasets, runs.variants)
        axes.set_title(labels.value("pretrained", start))
    algorithms = "/".join(map(labels.algorithm, runs.values("algorithm")))
    grid[0, 0].set_ylabel(f"{labels.measure(measure)} (%), {algorithms}")
    return add_legend(figure, grid[0, 0])


def draw_by_algorithm(runs: Runs, choice: Choice) -> Figure:
    """Draw one panel for each algorithm, on an axis that begins near the lowest bar."""
    algorithms, datasets = runs.values("algorithm"), runs.values("dataset")
    figure, grid = panels(1, len(algorithms), width=max(1.7, 0.62 * len(datasets) + 0.3),
                          sharey=True)
    numbers = [means(runs.only(algorithm=[algorithm]), "acc") for algorithm in algorithms]
    variants = sorted(runs.values("variant"), key=lambda variant: variant != "brb")
    for axes, algorithm, bars in zip(grid[0], algorithms, numbers, strict=True):
        draw_bars(axes, bars, datasets, variants)
        axes.tick_params(axis="x", labelsize=6.5)
        axes.set_title(", ".join(labels.method(algorithm, "none", pretrained=start)
                                 for start in runs.values("pretrained")))
    lowest = min(mean - spread for bars in numbers for mean, spread in bars.values())
    grid[0, 0].set(ylim=(max(0.0, 10 * np.floor((lowest - 10) / 10)), None), ylabel="accuracy (%)")
    return add_legend(figure, grid[0, 0])


def draw_relative_change(runs: Runs, choice: Choice) -> Figure:
    changes = {key: (change, 0.0) for key, change in relative_changes(runs).items()}
    figure, ((axes,),) = panels(width=max(3.4, 1.0 + 0.75 * len(runs.values("dataset"))))
    variants = [variant for variant in runs.variants if variant != "none"]
    draw_bars(axes, changes, runs.values("dataset"), variants)
    axes.axhline(0, color="black", linewidth=0.8)
    first = runs.frame.iloc[0]
    axes.set(ylabel="relative change of accuracy (%)",
             title=labels.method(first.algorithm, "none", pretrained=first.pretrained))
    return add_legend(figure, axes)


def relative_changes(runs: Runs) -> dict[tuple[str, str], float]:
    """Map (data set, variant) to its change of accuracy in percent of the baseline's."""
    accuracy = means(runs, "acc")
    runs.require("none" in runs.values("variant"), "no run without an intervention")
    return {(dataset, variant): 100 * (mean / accuracy[dataset, "none"][0] - 1)
            for (dataset, variant), (mean, _) in accuracy.items()
            if variant != "none" and (dataset, "none") in accuracy}


def draw_radar(runs: Runs, choice: Choice) -> Figure:
    from matplotlib.ticker import MaxNLocator

    datasets = runs.values("dataset")
    runs.require("brb" in runs.values("variant"), "no run with the variant brb")
    angles = np.linspace(0, 2 * np.pi, len(datasets), endpoint=False)
    figure, ((axes,),) = panels(height=3.4, subplot_kw={"projection": "polar"})
    highest = 0.0
    for algorithm, (color, style) in zip(runs.values("algorithm"), RADAR_LINES, strict=False):
        changes = relative_changes(runs.only(algorithm=[algorithm]))
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
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:+.0f} %" if value else "")
    starts = " and ".join(labels.value("pretrained", start) for start in runs.values("pretrained"))
    axes.set_title(f"relative change of accuracy, {starts}")
    return add_legend(figure, axes)


def draw_runtime(runs: Runs, choice: Choice) -> Figure:
    known = set(runs.frame[list(CELL)].itertuples(index=False, name=None))
    cells = [cell for cell in cell_times(runs.reader, runs.study)
             if tuple(getattr(cell, name) for name in CELL) in known]
    runs.require(cells, "no run with an intervention")
    several = len({(cell.dataset, cell.algorithm, cell.pretrained) for cell in cells}) > 1
    figure, ((axes,),) = panels(height=0.9 + 0.28 * len(cells), width=5.2)
    left = np.zeros(len(cells))
    for part, name, color in PARTS:
        values = np.array([cell.epoch if part == "epoch" else cell.parts[part] for cell in cells])
        axes.barh(range(len(cells)), values, left=left, color=color, label=name, edgecolor="white",
                  linewidth=0.4)
        left += values
    for i, cell in enumerate(cells):
        axes.text(left[i], i, f"  +{cell.overhead:.1f} %", va="center", fontsize=7)
    names = [labels.method(cell.algorithm, cell.variant, pretrained=cell.pretrained)
             + f", {labels.dataset(cell.dataset)}" if several else labels.variant(cell.variant)
             for cell in cells]
    axes.set_yticks(range(len(cells)), names)
    if not several:
        method = labels.method(cells[0].algorithm, "none", pretrained=cells[0].pretrained)
        axes.set_title(f"{method}, {labels.dataset(cells[0].dataset)}")
    axes.invert_yaxis()
    axes.set(xlim=(0, 1.18 * left.max()),
             xlabel="seconds of an epoch with a reset;\nbeside it what BRB adds to 20 epochs")
    return add_legend(figure, axes, columns=3)


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
    chosen = [pool for pool in pools(repetitions(runs.reader, runs.study))
              if pool.dataset in runs.values("dataset")]
    runs.require(chosen, "no independent replicas")
    figure, ((axes,),) = panels()
    for i, pool in enumerate(chosen):
        color, sizes = labels.OTHER_COLORS[i % len(labels.OTHER_COLORS)], pool.sizes
        selected = [pool.kept(n)[0] for n in sizes]
        best = [accuracy + pool.regret(n) for n, accuracy in zip(sizes, selected, strict=True)]
        axes.plot(sizes, selected, color=color, marker="o", markersize=3, linewidth=1.2,
                  label=labels.dataset(pool.dataset))
        axes.plot(sizes, best, color=color, linestyle="--", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks(SIZES, list(map(str, SIZES)))
    axes.minorticks_off()
    axes.set(xlabel="replicas (n_init)", ylabel="accuracy of the kept replica (%)")
    return add_legend(figure, axes)
