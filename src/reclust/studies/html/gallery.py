"""Figures of the paper in the report of a store, as far as it has their data."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...utils.exceptions import require
from ..figures import FIGURES, MissingData, figure, save, source
from ..store.reader import StoreReader

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 96
"""CSS pixels per inch."""


def sources(store: StoreReader) -> dict[str, str]:
    """Map the figures whose studies have finished runs to these studies and numbers of runs."""
    found = {}
    for name in FIGURES:
        try:
            found[name] = source(store, name)
        except MissingData:
            continue
    return found


def gallery(store: StoreReader, found: Mapping[str, str],
            done: Callable[[], object]) -> dict[str, Any] | None:
    """Draw the figures that `sources` found, calling `done` after each; None if there are none."""
    if not found:
        return None
    try:
        require("matplotlib", purpose="Drawing figures", extra="plot")
    except ImportError as missing:
        return {"drawn": [], "said": [str(missing)]}
    drawn, failed = {}, {}
    for name, own in found.items():
        try:
            drawn[name] = {"name": name, "about": FIGURES[name].about, "source": f"From {own}.",
                           **_picture(figure(store, name))}
        except MissingData:
            pass
        except Exception as error:  # custom studies may have the paper's names; keep the report
            failed[name] = f"{name} could not be drawn: {type(error).__name__}: {error}"
        done()
    if not drawn and not failed:
        return None
    missing_names = [name for name in FIGURES if name not in drawn and name not in failed]
    said = [f"Not drawn, no data: {', '.join(missing_names)}."] if missing_names else []
    return {"drawn": list(drawn.values()), "said": [*said, *failed.values()]}


def _picture(drawing: Figure) -> dict[str, Any]:
    """Embed as an image, so that its identifiers and styles cannot clash with the page's."""
    width, height = (round(DPI * inches) for inches in drawing.get_size_inches())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.svg"
        save(drawing, path)
        content = base64.b64encode(path.read_bytes()).decode()
    return {"width": width, "height": height, "picture": f"data:image/svg+xml;base64,{content}"}
