"""Plain k-means beside every fit, to tell whether the deep model was worth it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import draws
from .kmeans import kmeans
from .objectives import nearest
from .preparation import Preparation

ROWS = 50_000
"""Samples that k-means looks at; the others go to the nearest of its centres."""
CHUNK = 4096


@dataclass(frozen=True)
class Baseline:
    """K-means on the standardised samples: labels_ (n,), cluster_centers_ (k, features), inertia_ over all samples."""

    labels_: np.ndarray
    cluster_centers_: np.ndarray
    inertia_: float


def k_means_baseline(X: Any, preparation: Preparation, k: int, *, seed: int, device: torch.device) -> Baseline:
    """The best of three restarts on X (n, ...) as a network would see it, one row a sample."""

    def flat(rows: Any) -> Tensor:
        return preparation.network_input(X[rows]).flatten(1).float().to(device)

    n, key = X.shape[0], draws.fold(draws.key(seed, device=device), "baseline")
    some = draws.permutation(key, n)[:ROWS].sort().values.cpu().numpy()
    centers = kmeans(flat(some), k, key=key, n_init=3).centers
    labels, inertia = [], 0.0
    for start in range(0, n, CHUNK):
        samples = flat(slice(start, start + CHUNK))
        labels.append(nearest(samples, centers))
        inertia += float((samples - centers[labels[-1]]).double().pow(2).sum())
    return Baseline(torch.cat(labels).cpu().numpy(), centers.cpu().numpy(), inertia)
