"""Student's and Wilcoxon's tests of paired differences, for many cells at once.

Importing scipy.stats takes longer than making a table, so the signed-rank test is written out here.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import stdtr, stdtrit


def mean_interval(differences: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of Student's interval of the mean: (cells, pairs) -> two of (cells,)."""
    mean, error = _mean_and_error(differences)
    half = stdtrit(differences.shape[1] - 1, (1 + confidence) / 2) * error
    return mean - half, mean + half


def t_test(differences: np.ndarray) -> np.ndarray:
    """Two-sided p of a mean of 0, (cells, pairs) -> (cells,); NaN where all differences are 0."""
    mean, error = _mean_and_error(differences)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 2 * stdtr(differences.shape[1] - 1, -np.abs(mean / error))


def _mean_and_error(differences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return differences.mean(1), differences.std(1, ddof=1) / np.sqrt(differences.shape[1])


def signed_rank_test(differences: np.ndarray) -> np.ndarray:
    """Two-sided exact p of Wilcoxon's test without differences of 0, (cells, pairs) -> (cells,)."""
    return np.array([_signed_rank(own[own != 0]) for own in differences])


def _signed_rank(own: np.ndarray) -> float:
    if not len(own):
        return np.nan
    _, which, counts = np.unique(np.abs(own), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(counts) - counts + 1)[which]  # twice the mean rank: an integer
    positive = int(doubled[own > 0].sum())
    p = _rank_sum_distribution(tuple(sorted(doubled.tolist())))
    return min(1.0, 2 * float(min(p[: positive + 1].sum(), p[positive:].sum())))


@lru_cache(maxsize=64)  # cells without equal differences have the same ranks
def _rank_sum_distribution(ranks: tuple[int, ...]) -> np.ndarray:
    """Probability of each sum of positive ranks if every sign is a coin flip."""
    p = np.zeros(sum(ranks) + 1)
    p[0] = 1.0
    for rank in ranks:
        p = (p + np.concatenate([np.zeros(rank), p[:-rank]])) / 2
    return p
