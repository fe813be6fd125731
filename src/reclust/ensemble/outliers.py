"""Samples that belong nowhere: far from every cluster for its shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils.extmath import randomized_svd

AXES = 20  # principal components in which shapes of clusters are estimated
OUTLYING = 6.0  # score from which a sample belongs nowhere


@dataclass(frozen=True)
class ClusterShapes:
    """Gaussians of clusters in principal components, and the variance of what these leave out.

    center (D,); axes (p, D); means (k, p); whitening (k, p, p); offsets (k,), minus the log density
    at the means; rest (1,), the mean squared distance from the components; scale (2,), the median
    score of the fit and the distance of its third quartile from that.
    """

    center: np.ndarray
    axes: np.ndarray
    means: np.ndarray
    whitening: np.ndarray
    offsets: np.ndarray
    rest: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, x: np.ndarray, labels: np.ndarray, k: int) -> ClusterShapes:
        """Fit rows (n, D) and their clusters (n,)."""
        center = x.mean(0)
        axes = randomized_svd(x - center, min(AXES, *x.shape), random_state=0)[2]
        z = (x - center) @ axes.T
        p, sizes = len(axes), np.maximum(np.bincount(labels, minlength=k), 1)
        means = np.eye(k)[labels].T @ z / sizes[:, None]
        within = z - means[labels]
        pooled = within.T @ within / len(z)
        pooled += (1e-3 * np.trace(pooled) / p + 1e-12) * np.eye(p)
        whitening, offsets = [], []
        for cluster, size in enumerate(sizes):  # shrunk to the common shape, as 2 p samples would
            own = within[labels == cluster]
            shape = (own.T @ own + 2 * p * pooled) / (size + 2 * p) + 1e-3 * pooled
            factor = np.linalg.cholesky(shape)
            whitening.append(np.linalg.inv(factor))
            offsets.append(2 * np.log(np.diag(factor)).sum() - 2 * np.log(size / len(z)))
        rest = np.square(x - center).sum(1).mean() - np.square(z).sum(1).mean()
        shapes = cls(center, axes, means, np.stack(whitening), np.array(offsets),
                     np.array([rest if rest > 1e-9 else np.inf]), np.array([0.0, 1.0]))
        low, middle, high = np.percentile(shapes.score(x), (25, 50, 75))
        scale = np.array([middle, max(high - middle, middle - low, 1e-12)])
        return cls(**{**vars(shapes), "scale": scale})

    def score(self, x: np.ndarray) -> np.ndarray:
        """Return how far rows (n, D) are from all clusters: 0 for a typical one, (n,)."""
        z = (x - self.center) @ self.axes.T
        distances = [np.square((z - mean) @ whitening.T).sum(1) + offset for mean, whitening, offset
                     in zip(self.means, self.whitening, self.offsets, strict=True)]
        rest = np.square(x - self.center).sum(1) - np.square(z).sum(1)
        left_out = np.maximum(rest, 0) / self.rest * (x.shape[1] - len(self.axes))
        return (np.min(distances, axis=0) + left_out - self.scale[0]) / self.scale[1]
