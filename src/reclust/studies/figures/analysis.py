"""What BRB does to labels and embeddings: accuracy, label change, distances within and between classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import CURVES, Choice, Recipe, Runs, curve_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = ("accuracy", "label_change", "intra_class_distance", "inter_class_distance")


def draw(runs: Runs, choice: Choice) -> Figure:
    return curve_panels(chosen(runs, choice), PANELS)


def draw_with_silhouette(runs: Runs, choice: Choice) -> Figure:
    return curve_panels(chosen(runs, choice.otherwise(datasets=("mnist",))), (*PANELS, "silhouette"))


def chosen(runs: Runs, choice: Choice) -> Runs:
    choice = choice.otherwise(datasets=("gtsrb", "optdigits", "mnist"), algorithms=("dcn",), pretrained=True)
    found = runs.prefer(datasets=choice.datasets, algorithms=choice.algorithms, pretrained=choice.pretrained)
    return found.only(variants=[variant for variant in found.variants if variant in ("none", "recluster", "brb")])


RECIPE = Recipe("analysis", CURVES, draw, "Accuracy, label change, and distances within and between classes.",
                ("distances",))
WITH_SILHOUETTE = Recipe("analysis-silhouette", CURVES, draw_with_silhouette,
                         "The same with the silhouette of true labels.", ("distances",))
