"""The halves of a soft reset on their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Choice, Recipe, Runs, curve_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(runs: Runs, choice: Choice) -> Figure:
    return curve_panels([runs.chosen(choice)], ["accuracy"])


RECIPE = Recipe("soft-reset-components", ("soft-reset-components",), draw,
                "Accuracy with perturbation only, with contraction only, and with Gaussian noise in their place.",
                usual={"datasets": ("usps", "optdigits"), "algorithms": ("dcn",), "pretrained": True})
