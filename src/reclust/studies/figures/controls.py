"""New targets without a reset of the network that learns: noise, and labels of a reset copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Choice, Recipe, Runs, curve_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(runs: Runs, choice: Choice) -> Figure:
    return curve_panels([runs.chosen(choice)], ("accuracy", "label_change", "intra_class_distance", "inter_class_distance"))


RECIPE = Recipe("controls", ("noise-and-disentangled",), draw,
                "Controls of BRB: noise on embeddings, labels of a reset copy (disentangled), a reset without new targets "
                "(recomputed centers). Mean and standard error; distances are cosine distances.", ("distances",),
                {"datasets": ("optdigits",), "algorithms": ("dcn",), "pretrained": True})
