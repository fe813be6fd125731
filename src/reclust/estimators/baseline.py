"""K-means on the same samples, to tell whether the deep model is worth it."""

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

MAX_ROWS = 50_000  # samples that k-means uses; the others are assigned to the nearest center
MAX_NUMBERS = 2**26  # numbers that k-means uses, so that wide sparse rows do not fill the memory
CHUNK = 4096


@dataclass(frozen=True)
class Baseline:
    """K-means on the standardized samples: labels (n,), centers (k, features) and inertia."""

    labels_: np.ndarray
    cluster_centers_: np.ndarray
    inertia_: float


def k_means_baseline(X: Any, preparation: Preparation, k: int, *, seed: int,
                     device: torch.device) -> Baseline:
    """Cluster X (n, ...) as the network sees it, flattened."""
    n, key = X.shape[0], draws.fold(draws.key(seed, device=device), "baseline")
    width = math.prod(preparation.sample_shape or X.shape[1:])
    chunk = max(1, min(CHUNK, MAX_NUMBERS // 8 // width))

    def flat(rows: np.ndarray) -> Iterator[Tensor]:
        for start in range(0, len(rows), chunk):
            part = preparation.network_input(X[rows[start : start + chunk]])
            yield part.flatten(1).float().to(device)

    count = min(MAX_ROWS, max(2 * k, MAX_NUMBERS // width))
    some = draws.permutation(key, n)[:count].sort().values.cpu().numpy()
    centers = KMeans()(torch.cat(list(flat(some))), k, key)
    labels, inertia = [], 0.0
    for samples in flat(np.arange(n)):
        labels.append(nearest(samples, centers))
        inertia += float((samples - centers[labels[-1]]).double().pow(2).sum())
    return Baseline(torch.cat(labels).cpu().numpy(), centers.cpu().numpy(), inertia)
