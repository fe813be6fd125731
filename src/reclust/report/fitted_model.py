"""The part of a fitted estimator that a report reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from ..data.accept import SampleSet
from ..data.preparation import Preparation
from ..training.history import Curve
from ..training.result import Model, Result


class FittedModel(Protocol):
    """A fitted clustering, in the attribute names of scikit-learn."""

    labels_: np.ndarray
    cluster_centers_: np.ndarray
    n_clusters_: int
    ids_: np.ndarray | None
    replicas_: list[Any]
    best_replica_: int
    history_: dict[str, dict[str, Curve]]
    result_: Result
    baseline_: Any
    preparation_: Preparation

    def check_input(self, X: Any) -> SampleSet:
        """Read and check samples."""
        ...

    def map_samples(self, X: np.ndarray, function: Callable[[Model, Tensor], Tensor]) -> np.ndarray:
        """Apply `function(model, embeddings)` to samples, batch by batch."""
        ...

    def map_batches(self, batches: Iterable[Tensor],
                    function: Callable[[Model, Tensor], Tensor]) -> np.ndarray:
        """Apply `function(model, embeddings)` to batches of network input."""
        ...

    def soft_labels(self, model: Model, z: Tensor) -> Tensor:
        """Return the probability of each cluster for embeddings (B, d)."""
        ...
