"""Figures of studies, drawn from a store by the functions listed here; see figures.json."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING

from ...utils.exceptions import require
from ..store.reader import StoreReader
from ..tables import labels
from . import curves, embeddings, scores
from .panels import STYLE, save
from .runs import Choice, FigureSpec, MissingData, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Choice", "FIGURES", "FigureSpec", "MissingData", "draw", "figure", "save", "source"]

DRAW: dict[str, Callable[[Runs, Choice], Figure]] = {
    "learning-curves": curves.draw_learning_curves,
    **dict.fromkeys(("analysis", "controls"), partial(curves.draw_curves, curves.DISTANCES)),
    "analysis-silhouette": partial(curves.draw_curves, (*curves.DISTANCES, "silhouette")),
    "relative-change": scores.draw_relative_change, "radar": scores.draw_radar,
    "distance-ratios": embeddings.draw_ratios, "voronoi": embeddings.draw_voronoi,
    "sensitivity": scores.draw_sensitivity, "silhouette": curves.draw_silhouette,
    "reconstruction": curves.draw_reconstruction, "runtime": scores.draw_runtime,
    "embedding": embeddings.draw_embedding, "reset-closeup": embeddings.draw_closeup,
    **dict.fromkeys(("embedding-reset", "momentum-reset"), scores.draw_by_algorithm),
    **{f"{measure}-bars": partial(scores.draw_by_start, measure) for measure in ("nmi", "ari")},
    "soft-reset-components": partial(curves.draw_curves, ("accuracy",)),
    "n-init": scores.draw_n_init,
}
FIGURES = {name: FigureSpec(name, draw=DRAW[name], **described) for name, described in json.loads(
    (files(__package__) / "figures.json").read_text(encoding="utf-8")).items()}


def figure(reader: StoreReader, name: str, choice: Choice = Choice()) -> Figure:
    """Draw a matplotlib figure, or raise `MissingData` if the store lacks what it shows."""
    matplotlib = require("matplotlib", purpose="Drawing figures", extra="plot")
    if name not in FIGURES:
        raise ValueError(f"{reader.path}: there is no figure {name!r}, only {', '.join(FIGURES)}.")
    spec = FIGURES[name]
    with matplotlib.rc_context(STYLE):
        return spec.draw(Runs.select(reader, spec, choice), choice)


def draw(reader: StoreReader, name: str, path: str | os.PathLike[str],
         choice: Choice = Choice()) -> None:
    save(figure(reader, name, choice), path)


def source(reader: StoreReader, name: str, choice: Choice = Choice()) -> str:
    """Return the studies and numbers of runs that a figure shows, for its caption."""
    several = Runs.select(reader, FIGURES[name], choice).by_dataset(choice)
    if len(several) == 1:
        return several[0].source
    return "; ".join(f"{runs.source} ({', '.join(map(labels.dataset, runs.values('dataset')))})"
                     for runs in several)
