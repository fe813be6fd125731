"""Plain k-means beside every fit, to tell whether the deep model was worth it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import draws
from ..data.preparation import Preparation
from ..interventions.reclustering.kmeans import KMeans
from ..objectives import nearest

ROWS = 50_000
"""Samples that k-means looks at; the others go to the nearest of its centres."""
NUMBERS = 2**26
"""Numbers that it looks at, so that of wide and sparse rows no more than this becomes dense at once."""
CHUNK = 4096
RESTARTS = 10
"""As many as reclustering has: with fewer, what k-means can find is often missed, and a deep model looks better than it is."""


@dataclass(frozen=True)
class Baseline:
    """K-means on the standardised samples: labels_ (n,), cluster_centers_ (k, features), inertia_ over all samples."""

    labels_: np.ndarray
    cluster_centers_: np.ndarray
    inertia_: float


def k_means_baseline(X: Any, preparation: Preparation, k: int, *, seed: int, device: torch.device) -> Baseline:
    """The best of `RESTARTS` on X (n, ...) as a network would see it, one row a sample."""

    n, key = X.shape[0], draws.fold(draws.key(seed, device=device), "baseline")
    width = math.prod(preparation.sample_shape or X.shape[1:])
    chunk = max(1, min(CHUNK, NUMBERS // 8 // width))

    def flat(rows: np.ndarray) -> Iterator[Tensor]:
        for start in range(0, len(rows), chunk):
            yield preparation.network_input(X[rows[start : start + chunk]]).flatten(1).float().to(device)

    some = draws.permutation(key, n)[: min(ROWS, max(2 * k, NUMBERS // width))].sort().values.cpu().numpy()
    centers = KMeans(n_init=RESTARTS)(torch.cat(list(flat(some))), k, key)
    labels, inertia = [], 0.0
    for samples in flat(np.arange(n)):
        labels.append(nearest(samples, centers))
        inertia += float((samples - centers[labels[-1]]).double().pow(2).sum())
    return Baseline(torch.cat(labels).cpu().numpy(), centers.cpu().numpy(), inertia)
