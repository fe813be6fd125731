"""Parts that figures share: style, grids of axes, legends, curves with error bands, files."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data.errors import DataError
from ...utils.exceptions import require
from ...utils.files import write_bytes
from ..tables import labels
from .runs import Runs, in_order, over_one_epoch

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE: dict[str, Any] = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "legend.fontsize": 7,
    "xtick.labelsize": 7, "ytick.labelsize": 7, "axes.spines.top": False,
    "axes.spines.right": False, "axes.linewidth": 0.6, "xtick.major.width": 0.6,
    "ytick.major.width": 0.6, "figure.facecolor": "white", "savefig.dpi": 200, "pdf.fonttype": 42,
    "text.parse_math": False,  # names may hold dollar signs
    "svg.fonttype": "none",  # text stays text: a third of the size, and searchable
    "svg.hashsalt": "reclust",  # identifiers would be random otherwise
}
_UNDATED = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {"Software": None}}


def panels(rows: int = 1, columns: int = 1, *, width: float = 3.4, height: float = 2.4,
           **options: Any) -> tuple[Figure, np.ndarray]:
    """Make a figure with a grid of axes (rows, columns) of this size in inches each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def variant_name(variant: str) -> str:
    return "no intervention" if variant == "none" else labels.variant(variant)


def title(runs: Runs, variant: str = "none") -> str:
    first = runs.frame.iloc[0]
    return (f"{labels.method(first.algorithm, variant)}, {labels.dataset(first.dataset)}, "
            f"{labels.value('pretrained', first.pretrained)}")


def add_legend(figure: Figure, axes: Axes, columns: int | None = None) -> Figure:
    """Draw one legend below all panels, with points large enough to tell apart."""
    from matplotlib.collections import PathCollection

    handles, names = axes.get_legend_handles_labels()
    fitting = max(1, min(len(names), int(figure.get_figwidth() / 1.1)))
    legend = figure.legend(handles, names, loc="outside lower center", frameon=False,
                           ncols=columns or fitting)
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set_sizes([18])
            handle.set_alpha(1)
    return figure


def mark_resets(axes: Axes, epochs: Iterable[int]) -> None:
    """Draw a dotted vertical line at each epoch, as one path to keep files small."""
    places = np.array(sorted(epochs), dtype=float)
    axes.plot(np.repeat(places, 3), np.tile([0, 1, np.nan], len(places)), color="0.75",
              linewidth=0.5, linestyle=":", zorder=0, transform=axes.get_xaxis_transform(),
              scaley=False)


def banded(axes: Axes, curves: pandas.DataFrame, column: str, variants: Sequence[str],
           points: bool = False) -> None:
    """Draw each variant's mean over runs in a band of one standard error, or as points."""
    colors = labels.colors(variants)
    for i, variant in enumerate(variants):
        rows = curves[curves["variant"] == variant].dropna(subset=[column])
        wide = rows.pivot_table(index="epoch", columns="run", values=column).sort_index()
        if wide.empty:
            continue
        scale = 100 if column in labels.PERCENT else 1
        mean, spread = scale * wide.mean(axis=1), scale * wide.sem(axis=1).fillna(0.0)
        # Epochs are measured at their end and the start is epoch -1: add one for epochs trained.
        epochs = wide.index.to_numpy() + 1
        style = "-" if variant == "brb" else labels.STYLES[i % len(labels.STYLES)]
        form: dict[str, Any] = {"color": colors[variant], "label": variant_name(variant),
                                "zorder": 3 + (variant == "brb")}
        if points:
            axes.errorbar(epochs, mean, spread, linestyle="none", marker="o", markersize=2,
                          linewidth=0.8, **form)
            continue
        axes.plot(epochs, mean, linestyle=style, linewidth=1.2, **form)
        axes.fill_between(epochs, mean - spread, mean + spread, color=colors[variant], alpha=0.2,
                          linewidth=0)
    axes.set_ylabel(labels.measure(column))


def curve_panels(several: Sequence[Runs], columns: Sequence[str]) -> Figure:
    """Draw a grid of panels: rows are curves, columns are data sets and algorithms."""
    from matplotlib.ticker import MaxNLocator

    cells = [(runs, cell) for runs in several for cell in dict.fromkeys(
        runs.frame[["dataset", "algorithm", "pretrained"]].itertuples(index=False, name=None))]
    variants = in_order(dict.fromkeys(variant for runs in several for variant in runs.variants))
    curves = {runs.study: runs.curves(*columns) for runs in several}
    resets = {runs.study: runs.resets() for runs in several}
    height = 2.4 if len(columns) == 1 else 1.7
    figure, grid = panels(len(columns), len(cells), height=height, sharex="col")
    for place, (runs, (dataset, algorithm, pretrained)) in zip(grid.T, cells, strict=True):
        chosen = runs.only(dataset=[dataset], algorithm=[algorithm], pretrained=[pretrained])
        shown = curves[runs.study][curves[runs.study]["run"].isin(chosen.frame["run"])]
        fired = set().union(*(resets[runs.study].get(run, ()) for run in chosen.frame["run"]))
        for axes, column in zip(place, columns, strict=True):
            mark_resets(axes, fired)
            some = shown
            if column == "label_change":
                measured = np.unique(shown.loc[shown[column].notna(), "epoch"])
                some = shown[over_one_epoch(shown["epoch"].to_numpy(), measured)]
            banded(axes, some, column, variants, points=len(some) < len(shown))
            if axes not in grid[:, 0]:
                axes.set_ylabel("")
        method = labels.method(algorithm, "none", pretrained=pretrained)
        place[0].set_title(f"{method}, {labels.dataset(dataset)}")
        place[-1].set_xlabel("epochs")
        place[-1].xaxis.set_major_locator(MaxNLocator(6, integer=True))
    return add_legend(figure, grid[0, 0])


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Save as .pdf, .svg or .png, the same bytes each time."""
    path = Path(path)
    if path.suffix not in _UNDATED:
        raise DataError(f"{path.name} has no known format: use one of {', '.join(_UNDATED)}.")
    write_bytes(path, rendered(figure, path.suffix))


def rendered(figure: Figure, suffix: str) -> bytes:
    matplotlib = require("matplotlib", purpose="Drawing figures", extra="plot")
    content = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(content, format=suffix[1:], metadata=_UNDATED[suffix])
    return content.getvalue()
