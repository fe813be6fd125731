"""Student's and Wilcoxon's tests of paired differences, NaN for fewer than two pairs.

Importing scipy.stats takes longer than making a table, so the signed-rank test is written out here.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import stdtr, stdtrit


def mean_interval(differences: np.ndarray, confidence: float) -> tuple[float, float]:
    """Return the limits of Student's confidence interval of the mean."""
    mean, error = _mean_and_error(differences)
    half = float(stdtrit(len(differences) - 1, (1 + confidence) / 2)) * error
    return mean - half, mean + half


def t_test(differences: np.ndarray) -> float:
    """Two-sided p of a mean of 0; NaN if all differences are 0."""
    mean, error = _mean_and_error(differences)
    return 2 * float(stdtr(len(differences) - 1, -abs(mean / error))) if error else math.nan


def _mean_and_error(differences: np.ndarray) -> tuple[float, float]:
    count = len(differences)
    error = float(differences.std(ddof=1) / math.sqrt(count)) if count > 1 else math.nan
    return float(differences.mean()), error


def signed_rank_test(differences: np.ndarray) -> float:
    """Two-sided exact p of Wilcoxon's test without differences of 0."""
    own = differences[differences != 0]
    if not len(own) or len(differences) < 2:
        return math.nan
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
