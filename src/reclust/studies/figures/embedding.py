"""Where the samples lie at the start and at the end of clustering, without and with BRB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Choice, Recipe, Runs, legend, name_of, panels, title
from .scatter import classes, in_the_plane, moment, scatter

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(runs: Runs, choice: Choice) -> Figure:
    runs = runs.chosen(choice)
    figure, grid = panels(len(runs.variants), 2, width=2.6, height=2.3)
    for row, variant in zip(grid, runs.variants, strict=True):
        run = runs.only(variants=[variant]).frame["run"].iloc[0]
        (curve,) = runs.columns(run, "embedding")
        last = int(curve.epochs.max())
        moments = [moment(runs, run, epoch, name=f"{name_of(variant)}, {'start' if epoch < 0 else f'{epoch + 1} epochs'}")
                   for epoch in (-1, last)]
        for axes, shown in zip(row, moments, strict=True):
            scatter(axes, in_the_plane([shown])[0], classes(runs, run))
    legend(figure, grid[0, 0])
    figure.suptitle(title(runs), fontsize=9)
    return figure


RECIPE = Recipe("embedding", ("embeddings",), draw,
                "Embeddings of one seed by true class at the start and at the end, each on its own principal axes.",
                ("embeddings",), {"datasets": ("usps",), "algorithms": ("idec",), "pretrained": True})
