"""What BRB does to labels and embeddings: accuracy, label change, distances within and between classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .base import CURVES, Choice, Recipe, Runs, curve_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = ("accuracy", "label_change", "intra_class_distance", "inter_class_distance")


def draw(runs: Runs, choice: Choice) -> Figure:
    return curve_panels(analysed(runs, choice, ("gtsrb", "optdigits", "mnist")), PANELS)


def draw_with_silhouette(runs: Runs, choice: Choice) -> Figure:
    return curve_panels(analysed(runs, choice, ("mnist",)), (*PANELS, "silhouette"))


def analysed(runs: Runs, choice: Choice, datasets: Sequence[str]) -> Runs:
    found = runs.chosen(choice, datasets=datasets, algorithms=("dcn",), pretrained=True)
    return found.only(variants=("none", "recluster", "brb"))


RECIPE = Recipe("analysis", CURVES, draw, "Accuracy, label change, and distances within and between classes.",
                ("distances",))
WITH_SILHOUETTE = Recipe("analysis-silhouette", CURVES, draw_with_silhouette,
                         "The same with the silhouette of true labels.", ("distances",))
