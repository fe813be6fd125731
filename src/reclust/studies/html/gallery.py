"""The figures of the paper in the report of a store: those that it has records for."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...utils.lazy import require
from ..figures import FIGURES, MissingData, figure, save, source
from ..store.reader import StoreReader

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PIXELS = 96
"""Of an inch, as browsers count them."""


def sources(store: StoreReader) -> dict[str, str]:
    """Figure -> from which study, of how many runs. Only of those whose studies have finished runs, which is known at once;
    whether these recorded all that is drawn shows when it is."""
    found = {}
    for name in FIGURES:
        try:
            found[name] = source(store, name)
        except MissingData:
            continue
    return found


def gallery(store: StoreReader, found: Mapping[str, str], done: Callable[[], object]) -> dict[str, Any] | None:
    """What the page shows of these figures, and in words which ones it does not; None where there is nothing to show or say.

    found: of `sources`. done: called after each.
    """
    if not found:
        return None
    try:
        require("matplotlib", purpose="Drawing figures", extra="plot")
    except ImportError as missing:
        return {"drawn": [], "said": [str(missing)]}
    drawn, failed = {}, {}
    for name, own in found.items():
        try:
            made = _picture(figure(store, name))
            drawn[name] = {"name": name, "about": FIGURES[name].about, "source": f"From {own}.", **made}
        except MissingData:
            pass
        except Exception as error:  # studies of one's own may bear the paper's names: the rest of the report is worth having
            failed[name] = f"{type(error).__name__}: {error}"
        done()
    lacking = [name for name in FIGURES if name not in drawn and name not in failed]
    if not drawn and not failed:
        return None
    said = [f"Not drawn for lack of records: {', '.join(lacking)}."] if lacking else []
    return {"drawn": list(drawn.values()), "said": said + [f"{name} could not be drawn: {why}" for name, why in failed.items()]}


def _picture(drawing: Figure) -> dict[str, Any]:
    """As an image of its own, whose names and styles cannot meet those of the page."""
    width, height = (round(PIXELS * inches) for inches in drawing.get_size_inches())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.svg"
        save(drawing, path)
        content = base64.b64encode(path.read_bytes()).decode()
    return {"width": width, "height": height, "picture": f"data:image/svg+xml;base64,{content}"}
