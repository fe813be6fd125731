"""What BRB does to labels and embeddings: accuracy, label change, distances within and between classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from .base import CURVES, Choice, Recipe, Runs, curve_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = ("accuracy", "label_change", "intra_class_distance", "inter_class_distance")


USUAL = {"algorithms": ("dcn",), "variants": ("none", "recluster", "brb"), "pretrained": True}


def draw(panels: Sequence[str], runs: Runs, choice: Choice) -> Figure:
    return curve_panels(runs.by_dataset(choice), panels)


RECIPE = Recipe("analysis", CURVES, partial(draw, PANELS), "Accuracy, label change over an epoch (at resets alone, "
                "points, where labels were looked at less often), and distances within and between classes.",
                ("distances",), USUAL | {"datasets": ("gtsrb", "optdigits", "mnist")}, by_dataset=True)
WITH_SILHOUETTE = Recipe("analysis-silhouette", CURVES, partial(draw, (*PANELS, "silhouette")),
                         "The same with the silhouette of true labels.", ("distances",), USUAL | {"datasets": ("mnist",)},
                         by_dataset=True)
