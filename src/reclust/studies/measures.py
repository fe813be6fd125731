"""What a study may record beside scores, by name."""

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
    Reconstruction,
    Sizes,
)
from ..training.monitors.base import Monitor
from ..utils.choices import LABEL_FREE_SCORES

SHOWN = 1000
"""Samples whose embeddings are kept."""

MEASURES: Mapping[str, Callable[[np.ndarray, int], Monitor]] = MappingProxyType({
    "distances": lambda classes, every: Distances(classes, every=every),
    "ratios": lambda classes, every: DistanceRatios(every=every),
    "purity": lambda classes, every: Purity(classes, every=every),
    "norms": lambda classes, every: Norms(every=every),
    "reconstruction": lambda classes, every: Reconstruction(every=every),
    "sizes": lambda classes, every: Sizes(every=every),
    "embeddings": lambda classes, every: EmbeddingRows(shown_rows(len(classes))),
})
"""Name -> (classes (n,), epochs between two looks) -> monitor."""

LABEL_FREE: Mapping[str, Selector] = MappingProxyType(dict(zip(
    LABEL_FREE_SCORES, (Consistency(), SharedInformation(), Silhouette(), Silhouette("cosine"),
                        Compactness(), SizeEntropy()), strict=True)))
"""Scores of finished replicas by name, to choose among them. What compares replicas with each other is not here: it can be
computed from the labels in the store."""


def shown_rows(n: int) -> np.ndarray:
    """The samples whose embeddings are kept: at most SHOWN, all over the set."""
    return np.unique(np.linspace(0, n - 1, min(n, SHOWN)).astype(np.int64))
