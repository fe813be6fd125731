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
from ..utils.device import rows_at_once

MAX_ROWS = 50_000  # samples that k-means uses; the others are assigned to the nearest center
MAX_NUMBERS = 2**26  # numbers that k-means uses, so that wide sparse rows do not fill the memory
TRIED_ROWS = 1000  # samples on which both scalings of a table are tried


@dataclass(frozen=True)
class Baseline:
    """K-means on the samples as they are or standardized, whichever shows more structure."""

    labels_: np.ndarray
    cluster_centers_: np.ndarray  # (k, features), of standardized features
    inertia_: float
    weights_: np.ndarray  # (features,), 1 or in proportion to their standard deviations

    def assign(self, x: Tensor) -> Tensor:
        """Label standardized samples: (B, features) -> (B,)."""
        weights, centers = (torch.from_numpy(array).to(x)
                            for array in (self.weights_, self.cluster_centers_))
        return nearest(x * weights, centers * weights)


def k_means_baseline(X: Any, preparation: Preparation, k: int, *, seed: int,
                     device: torch.device) -> Baseline:
    n, key = X.shape[0], draws.fold(draws.key(seed, device=device), "baseline")
    width = math.prod(preparation.sample_shape or X.shape[1:])
    chunk = rows_at_once(device, width)

    def flat(rows: np.ndarray | None = None) -> Iterator[Tensor]:
        for start in range(0, n if rows is None else len(rows), chunk):
            part = slice(start, start + chunk)
            x = preparation.network_input(X[part if rows is None else rows[part]], device)
            yield x.flatten(1).float()

    count = min(MAX_ROWS, max(2 * k, MAX_NUMBERS // width))
    some = torch.cat(list(flat(draws.subset(key, n, count).cpu().numpy())))
    weights = _weights(preparation, width).to(some)
    if structure(some * weights, k, key) <= structure(some, k, key):
        weights = torch.ones_like(weights)
    centers = KMeans()(some * weights, k, key)
    labels, inertia = np.empty(n, dtype=np.int32), 0.0
    for start, samples in zip(range(0, n, chunk), flat(), strict=True):
        weighted = samples * weights
        own = nearest(weighted, centers)
        labels[start : start + chunk] = own.cpu().numpy()
        inertia += float((weighted - centers[own]).double().pow(2).sum())
    unweighted = torch.where(weights > 0, centers / weights, 0)
    return Baseline(labels, unweighted.cpu().numpy(), inertia, weights.cpu().numpy())


def _weights(preparation: Preparation, width: int) -> Tensor:
    """Return what turns standardized features back into the given ones, up to a common factor."""
    if preparation.image_shape is not None:  # standardized by channel, which keeps proportions
        return torch.ones(width)
    spread = torch.from_numpy(np.broadcast_to(preparation.first.scale, (width,)).astype(np.float32))
    spread = torch.where(spread.isfinite(), spread, 0)
    return spread / spread.max().clamp(min=torch.finfo(spread.dtype).tiny)


def in_common_units(preparation: Preparation, X: Any, k: int) -> Preparation:
    """Divide all columns by one number if that shows more structure than standardizing them.

    Columns are not comparable if one of them has most of the variance.
    """
    key, weights = draws.fold(draws.key(0), "units"), _weights(preparation, X.shape[1])
    rows = draws.subset(key, X.shape[0], min(TRIED_ROWS, MAX_NUMBERS // X.shape[1])).numpy()
    x, squares = preparation.network_input(X[rows]).float(), weights.square()
    alike = squares.max() < squares.sum() / 2
    more = alike and structure(x * weights, k, key) > structure(x, k, key)
    return preparation.scaled_together() if more else preparation


def structure(x: Tensor, k: int, key: Tensor) -> float:
    """Return the share of variance that k clusters explain beyond that in shuffled columns."""
    x = x[draws.permutation(key, len(x))[:TRIED_ROWS]]
    x = x - x.mean(0)
    order = draws.bits(draws.fold(key, "shuffled"), (x.shape[1], len(x))).argsort(-1)
    both = torch.stack([x, x.T.gather(1, order).T])
    fit = KMeans(n_init=3).fit(both, min(k, len(x)), key.expand(2))
    unexplained, shuffled = (fit.inertia / x.square().sum().clamp(min=1e-30)).tolist()
    return shuffled - unexplained
