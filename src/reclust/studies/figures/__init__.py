"""Figures of studies, from the store alone. A new one is one file with a `Recipe`, and one line here."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...utils.lazy import require
from ..store.reader import StoreReader
from ..tables import labels
from . import (
    analysis,
    controls,
    distance_ratios,
    embedding,
    embedding_reset,
    learning_curves,
    metric_bars,
    momentum_reset,
    n_init,
    radar,
    reconstruction,
    relative_change,
    reset_closeup,
    runtime,
    sensitivity,
    silhouette,
    soft_reset_components,
    voronoi,
)
from .base import Choice, MissingData, Recipe, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Choice", "FIGURES", "MissingData", "Recipe", "Runs", "draw", "figure", "save"]

FIGURES: dict[str, Recipe] = {recipe.name: recipe for recipe in (
    learning_curves.RECIPE,
    analysis.RECIPE,
    analysis.WITH_SILHOUETTE,
    relative_change.RECIPE,
    radar.RECIPE,
    distance_ratios.RECIPE,
    voronoi.RECIPE,
    sensitivity.RECIPE,
    silhouette.RECIPE,
    reconstruction.RECIPE,
    runtime.RECIPE,
    embedding.RECIPE,
    reset_closeup.RECIPE,
    embedding_reset.RECIPE,
    momentum_reset.RECIPE,
    metric_bars.NMI,
    metric_bars.ARI,
    controls.RECIPE,
    soft_reset_components.RECIPE,
    n_init.RECIPE,
)}
"""All figures by name."""

STYLE: dict[str, Any] = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "legend.fontsize": 7, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6, "xtick.major.width": 0.6,
    "ytick.major.width": 0.6, "figure.facecolor": "white", "savefig.dpi": 200, "pdf.fonttype": 42,
    "svg.fonttype": "none",  # text stays text: a third of the size, and it can be searched
    "svg.hashsalt": "reclust",  # identifiers in the file would be random otherwise
}
_LONG = 400
_PLACES, _DIGITS = re.compile(r'\b(?:d|x|y)="[^"]*"'), re.compile(r"-?\d+\.\d{3,}")
_IDENTIFIER = re.compile(r'(?<=["#])([A-Za-z]\w*)[0-9a-f]{10}(?=["()])')
_UNDATED = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {"Software": None}}


def figure(reader: StoreReader, name: str, choice: Choice = Choice()) -> Figure:
    """A matplotlib figure that no window knows of; `MissingData` where the store lacks what it draws."""
    matplotlib = require("matplotlib", purpose="Drawing figures", extra="plot")
    if name not in FIGURES:
        raise ValueError(f"There is no figure named {name!r}: choose among {', '.join(FIGURES)}.")
    recipe = FIGURES[name]
    with matplotlib.rc_context(STYLE):
        return recipe.draw(Runs.of(reader, recipe, choice), choice)


def source(reader: StoreReader, name: str, choice: Choice = Choice()) -> str:
    """From which study a figure is drawn, or which ones, and of how many runs, for its caption."""
    several = Runs.of(reader, FIGURES[name], choice).by_dataset(choice)
    if len(several) == 1:
        return several[0].source
    return "; ".join(f"{one.source} ({', '.join(map(labels.dataset, one.values('dataset')))})" for one in several)


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """As .pdf, .svg or .png: the same figure gives the same bytes."""
    matplotlib = require("matplotlib", purpose="Drawing figures", extra="plot")
    path = Path(path)
    if path.suffix not in _UNDATED:
        raise ValueError(f"{path.name} does not say which format to write: end it with {', '.join(_UNDATED)}.")
    with matplotlib.rc_context(STYLE):
        figure.savefig(path, metadata=_UNDATED[path.suffix])
    if path.suffix == ".svg":
        path.write_text(_numbered(_shorter(path.read_text(encoding="utf-8"))), encoding="utf-8", newline="\n")


def _shorter(svg: str) -> str:
    """With places in hundredths of a point, in tenths along the many of a curve, which nobody can see: half the size."""

    def rounded(found: re.Match[str]) -> str:
        digits = 1 if len(found[0]) > _LONG else 2
        return _DIGITS.sub(lambda one: f"{float(one[0]):.{digits}f}", found[0])

    return _PLACES.sub(rounded, svg)


def _numbered(svg: str) -> str:
    """With identifiers in the order in which they appear. Matplotlib's are digests of places in full precision, the last digits
    of which differ from one processor to another; what all end with keeps those of several pictures on one page apart."""
    seen: dict[str, int] = {}
    drawing = hashlib.sha256(_IDENTIFIER.sub(r"\1", svg).encode()).hexdigest()[:8]
    return _IDENTIFIER.sub(lambda found: f"{found[1]}{seen.setdefault(found[0], len(seen))}_{drawing}", svg)


def draw(reader: StoreReader, name: str, path: str | os.PathLike[str], choice: Choice = Choice()) -> None:
    """Draw a figure into a file."""
    save(figure(reader, name, choice), path)
