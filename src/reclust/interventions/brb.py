"""BRB, breaking the reclustering barrier, is a sentence in the words of this package."""

from __future__ import annotations

from collections.abc import Mapping

from .momentum import ResetMomentum
from .reclustering.kmeans import KMeans
from .reclustering.recluster import Method, Recluster
from .soft_reset import SoftReset
from .steps import Every


def BRB(interval: int = 20, keep: float | Mapping[str, float] = 0.8, method: Method = KMeans()) -> Every:
    """Every `interval` epochs: soft reset of the encoder, reclustering, reset of the centres' momentum."""
    return Every(interval, (SoftReset(keep), Recluster(method), ResetMomentum()))
