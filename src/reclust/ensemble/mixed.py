"""Mixtures for tables of numbers and categories."""

import numpy as np

MAX_ITER = 60
REGULARIZATION = 0.2  # added to variances, since many columns hold few distinct numbers
PRIOR = 2.0  # rows like the whole table that are added to each cluster's categories


def mixed_mixture(z: np.ndarray, levels: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Refine labels (n,) by EM: Gaussians of diagonal covariance times independent categories.

    z (n, p): scaled numbers; levels (n, q): 0/1 columns, which sum to 1 in each category.
    """
    n, share = len(labels), np.eye(k)[labels] * 0.9 + 0.1 / k
    typical = levels.mean(0)
    for _ in range(MAX_ITER):
        size = share.sum(0)[:, None]
        mean = share.T @ z / size
        variance = np.maximum(share.T @ np.square(z) / size - mean**2, 0) + REGULARIZATION
        probability = (share.T @ levels + PRIOR * typical) / (size + PRIOR) + 1e-9
        # Of log((z - mean)² / variance) only sums over columns are needed, as products of matrices.
        distance = (np.square(z) @ (1 / variance).T - 2 * z @ (mean / variance).T
                    + (mean**2 / variance).sum(1))
        logits = (np.log(size[:, 0] / n) - (distance + np.log(variance).sum(1)) / 2
                  + levels @ np.log(probability).T)
        before, share = share, np.exp(logits - logits.max(1, keepdims=True))
        share /= share.sum(1, keepdims=True)
        if np.abs(share - before).max() < 1e-3:
            break
    return share.argmax(1)
