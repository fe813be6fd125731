"""The figure at the top of the reproduction: our accuracies and gains against the paper's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reclust.studies.figures.panels import STYLE, panels
from reclust.studies.store.reader import StoreReader
from reclust.utils.exceptions import require

from .cells import SETS, agreements, improvements

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = {"agrees": "#0072B2", "higher": "#009E73", "lower": "#D55E00"}
SIGNS = {"better": "#0072B2", "open": "0.6", "worse": "#D55E00"}
MARKERS = {"agrees": "o", "higher": "^", "lower": "v", "better": "o", "open": "s", "worse": "v"}


def overview(reader: StoreReader) -> Figure | None:
    """Draw accuracies on the left and BRB's gains on the right; None without records."""
    cells = [cell for cell in agreements(reader) if cell.dataset in SETS]
    gains = [one for one in improvements(reader) if one.ours.dataset in SETS]
    if not cells:
        return None
    matplotlib = require("matplotlib", purpose="Drawing figures", extra="plot")
    with matplotlib.rc_context(STYLE):
        figure, ((left, right),) = panels(1, 2, width=3.7, height=3.7)
        _draw(left, {verdict: [(cell.paper, cell.mean, cell.mean - cell.stderr,
                                cell.mean + cell.stderr) for cell in cells
                               if cell.verdict == verdict] for verdict in COLORS}, COLORS)
        left.set(title=f"Accuracy of {len(cells)} cells", xlabel="paper (%)", ylabel="here (%)")
        _draw(right, {sign: [(paper, one.difference, one.low, one.high) for one, paper in gains
                             if one.sign == sign] for sign in SIGNS}, SIGNS)
        right.axhline(0, color="0.7", linewidth=0.6, zorder=0)
        right.axvline(0, color="0.7", linewidth=0.6, zorder=0)
        right.set(title=f"Gain of BRB over its baseline in {len(gains)} cells",
                  xlabel="paper (points)", ylabel="here (points)")
        for axes in (left, right):
            axes.legend(frameon=False, loc="upper left")
    return figure


def _draw(axes: Axes, groups: dict[str, list[tuple]], colors: dict[str, str]) -> None:
    """Draw points (paper, ours, low, high) with their intervals, and the diagonal."""
    for name, points in groups.items():
        if points:
            paper, ours, low, high = np.array(points).T
            axes.errorbar(paper, ours, (ours - low, high - ours), linestyle="none",
                          color=colors[name], marker=MARKERS[name], markersize=3.5, linewidth=0.6,
                          alpha=0.9, label=f"{name} ({len(points)})")
    limits = [*axes.get_xlim(), *axes.get_ylim()]
    axes.plot([min(limits), max(limits)], [min(limits), max(limits)], color="black", linewidth=0.6,
              zorder=0)
