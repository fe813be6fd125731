"""Figure files that are the same bytes on every machine."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...utils.exceptions import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE: dict[str, Any] = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "legend.fontsize": 7,
    "xtick.labelsize": 7, "ytick.labelsize": 7, "axes.spines.top": False,
    "axes.spines.right": False, "axes.linewidth": 0.6, "xtick.major.width": 0.6,
    "ytick.major.width": 0.6, "figure.facecolor": "white", "savefig.dpi": 200, "pdf.fonttype": 42,
    "svg.fonttype": "none",  # text stays text: a third of the size, and searchable
    "svg.hashsalt": "reclust",  # identifiers would be random otherwise
}
LONG_PATH = 400  # characters from which the coordinates of a path are rounded to tenths
_COORDINATES, _DIGITS = re.compile(r'\b(?:d|x|y)="[^"]*"'), re.compile(r"-?\d+\.\d{3,}")
_IDENTIFIER = re.compile(r'(?<=["#])([A-Za-z]\w*)[0-9a-f]{10}(?=["()])')
_UNDATED = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {"Software": None}}


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Save as .pdf, .svg or .png, without dates."""
    matplotlib = require("matplotlib", purpose="Drawing figures", extra="plot")
    path = Path(path)
    if path.suffix not in _UNDATED:
        raise ValueError(f"{path.name} has no known format: use one of {', '.join(_UNDATED)}.")
    with matplotlib.rc_context(STYLE):
        figure.savefig(path, metadata=_UNDATED[path.suffix])
    if path.suffix == ".svg":
        svg = renumber(shorten(path.read_text(encoding="utf-8")))
        path.write_text(svg, encoding="utf-8", newline="\n")


def shorten(svg: str) -> str:
    """Round coordinates to hundredths of a point, and to tenths in long paths: half the size."""

    def rounded(found: re.Match[str]) -> str:
        digits = 1 if len(found[0]) > LONG_PATH else 2
        return _DIGITS.sub(lambda one: f"{float(one[0]):.{digits}f}", found[0])

    return _COORDINATES.sub(rounded, svg)


def renumber(svg: str) -> str:
    """Replace identifiers by numbers in order of appearance, with a suffix for this picture.

    Matplotlib's are digests of coordinates, whose last digits depend on the processor.
    """
    seen: dict[str, int] = {}
    picture = hashlib.sha256(_IDENTIFIER.sub(r"\1", svg).encode()).hexdigest()[:8]
    return _IDENTIFIER.sub(
        lambda found: f"{found[1]}{seen.setdefault(found[0], len(seen))}_{picture}", svg)
