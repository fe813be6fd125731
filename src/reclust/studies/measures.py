"""Measures that a study can record besides scores, by name."""

from collections.abc import Callable, Mapping

import numpy as np

from ..ensemble import selection
from ..ensemble.selection import Selector
from ..training.monitors import analysis
from ..training.monitors.base import Monitor
from ..utils.choices import LABEL_FREE_SCORES

MAX_SHOWN = 1000  # samples whose embeddings are recorded

# Functions that make a monitor from the classes (n,) and the epochs between two points.
MEASURES: Mapping[str, Callable[[np.ndarray, int], Monitor]] = {
    "distances": lambda classes, every: analysis.Distances(classes, every=every),
    "ratios": lambda classes, every: analysis.DistanceRatios(every=every),
    "purity": lambda classes, every: analysis.Purity(classes, every=every),
    "gradients": lambda classes, every: analysis.GradientNorms(),
    "norms": lambda classes, every: analysis.Norms(every=every),
    "reconstruction": lambda classes, every: analysis.ReconstructionLoss(every=every),
    "sizes": lambda classes, every: analysis.Sizes(every=every),
    "embeddings": lambda classes, every: analysis.EmbeddingRows(shown_rows(len(classes))),
}
# Scores of finished replicas by which to select one without labels.
LABEL_FREE: Mapping[str, Selector] = dict(zip(LABEL_FREE_SCORES, (
    selection.Consistency(), selection.SharedInformation(), selection.Silhouette(),
    selection.Silhouette("cosine"), selection.Compactness(), selection.SizeEntropy(),
), strict=True))


def shown_rows(n: int) -> np.ndarray:
    """Return the evenly spread rows whose embeddings are recorded."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_SHOWN)).astype(np.int64))
