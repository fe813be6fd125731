"""Figures of studies, drawn from a store. To add one, write its `FigureSpec` and list it here."""

from __future__ import annotations

import os
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

FIGURES: dict[str, FigureSpec] = {spec.name: spec for spec in (
    curves.LEARNING_CURVES, curves.ANALYSIS, curves.ANALYSIS_SILHOUETTE, scores.RELATIVE_CHANGE,
    scores.RADAR, embeddings.DISTANCE_RATIOS, embeddings.VORONOI, scores.SENSITIVITY,
    curves.SILHOUETTE, curves.RECONSTRUCTION, scores.RUNTIME, embeddings.EMBEDDING,
    embeddings.RESET_CLOSEUP, scores.EMBEDDING_RESET, scores.MOMENTUM_RESET, scores.NMI_BARS,
    scores.ARI_BARS, curves.CONTROLS, curves.SOFT_RESET_COMPONENTS, scores.N_INIT,
)}


def figure(reader: StoreReader, name: str, choice: Choice = Choice()) -> Figure:
    """Draw a matplotlib figure, or raise `MissingData` if the store lacks what it shows."""
    matplotlib = require("matplotlib", purpose="Drawing figures", extra="plot")
    if name not in FIGURES:
        raise ValueError(f"There is no figure {name!r}: choose among {', '.join(FIGURES)}.")
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
