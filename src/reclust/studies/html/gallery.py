"""Figures of the paper in the report of a store, as far as it has their data."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..figures import FIGURES, MissingData, figure, save, source
from ..store.reader import StoreReader

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 96  # CSS pixels per inch


def gallery(store: StoreReader, done: Callable[[], object]) -> dict[str, Any] | None:
    """Draw the figures that the store has data for, calling `done` after each; None without any."""
    drawn, missing, failed = [], [], []
    for name, spec in FIGURES.items():
        try:
            text = {"name": name, "about": spec.about, "source": f"From {source(store, name)}."}
            drawn.append({**text, **_picture(figure(store, name))})
        except MissingData:
            missing.append(name)
        except ImportError as error:  # without matplotlib
            return {"drawn": [], "said": [str(error)]}
        except Exception as error:  # custom studies may have the paper's names; keep the report
            failed.append(f"{name} could not be drawn: {type(error).__name__}: {error}")
        done()
    if not drawn and not failed:
        return None
    said = [f"Not drawn, no data: {', '.join(missing)}."] if missing else []
    return {"drawn": drawn, "said": [*said, *failed]}


def _picture(drawing: Figure) -> dict[str, Any]:
    """Embed as an image, so that its identifiers and styles cannot clash with the page's."""
    width, height = (round(DPI * inches) for inches in drawing.get_size_inches())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.svg"
        save(drawing, path)
        content = base64.b64encode(path.read_bytes()).decode()
    return {"width": width, "height": height, "picture": f"data:image/svg+xml;base64,{content}"}
