"""Measures that a study can record besides scores, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from ..estimators.selection import (
    Compactness,
    Consistency,
    Selector,
    SharedInformation,
    Silhouette,
    SizeEntropy,
)
from ..training.monitors.analysis import (
    DistanceRatios,
    Distances,
    EmbeddingRows,
    Norms,
    Purity,
    ReconstructionLoss,
    Sizes,
)
from ..training.monitors.base import Monitor
from ..utils.choices import LABEL_FREE_SCORES

MAX_SHOWN = 1000
"""Maximal number of samples whose embeddings are recorded."""

MEASURES: Mapping[str, Callable[[np.ndarray, int], Monitor]] = MappingProxyType({
    "distances": lambda classes, every: Distances(classes, every=every),
    "ratios": lambda classes, every: DistanceRatios(every=every),
    "purity": lambda classes, every: Purity(classes, every=every),
    "norms": lambda classes, every: Norms(every=every),
    "reconstruction": lambda classes, every: ReconstructionLoss(every=every),
    "sizes": lambda classes, every: Sizes(every=every),
    "embeddings": lambda classes, every: EmbeddingRows(shown_rows(len(classes))),
})
"""Name -> function that makes a monitor from the classes (n,) and the epochs between two points."""

LABEL_FREE: Mapping[str, Selector] = MappingProxyType(dict(zip(
    LABEL_FREE_SCORES, (Consistency(), SharedInformation(), Silhouette(), Silhouette("cosine"),
                        Compactness(), SizeEntropy()), strict=True)))
"""Name -> score of finished replicas by which to select one without labels."""


def shown_rows(n: int) -> np.ndarray:
    """Return the evenly spread rows whose embeddings are recorded."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_SHOWN)).astype(np.int64))
