"""Samples that belong nowhere: far from every cluster for its shape."""

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.utils.extmath import randomized_svd
from torch import Tensor

AXES = (20, 30)  # fewest and most principal components in which shapes are estimated
AXIS_ROWS = 8  # rows that each of them needs
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
    def fit(cls, x: np.ndarray, labels: np.ndarray, k: int) -> "ClusterShapes":
        """Fit rows (n, D) and their clusters (n,)."""
        center = x.mean(0)
        _, scales, axes = randomized_svd(x - center, min(AXES[1], *x.shape), random_state=0)
        large = (scales**2 > np.square(x - center).sum() / x.shape[1]).sum()  # above the mean
        axes = axes[: max(2, min(max(AXES[0], large), len(x) // AXIS_ROWS))]
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
        low, middle, high = np.percentile(shapes.score(torch.from_numpy(x)), (25, 50, 75))
        scale = np.array([middle, max(high - middle, middle - low, 1e-12)])
        return cls(**{**vars(shapes), "scale": scale})

    def score(self, x: Tensor) -> Tensor:
        """Return how far rows (n, D) are from all clusters: 0 for a typical one, (n,)."""
        center, axes, means, whitening, offsets, rest, scale = (
            torch.from_numpy(part).to(x) for part in vars(self).values())
        z = (x - center) @ axes.T
        shapes = zip(means, whitening, offsets, strict=True)
        distances = torch.stack([((z - mean) @ white.T).square().sum(1) + offset
                                 for mean, white, offset in shapes])
        outside = (x - center).square().sum(1) - z.square().sum(1)
        left_out = outside.clamp(min=0) / rest * (x.shape[1] - len(axes))
        return (distances.amin(0) + left_out - scale[0]) / scale[1]
