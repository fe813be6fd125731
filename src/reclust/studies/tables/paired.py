"""Student's and Wilcoxon's tests of paired differences, for many cells at once.

scipy has both, but takes longer to import than a table to make; tests hold them equal.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

EXACT = 50
"""Pairs up to which the signed-rank test counts all signs instead of taking their sum for normal."""


def mean_interval(differences: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Between which numbers the mean of each cell lies, by Student's t: (cells, pairs) -> twice (cells,)."""
    mean, error = _mean_and_error(differences)
    half = _quantile(confidence, differences.shape[1] - 1) * error
    return mean - half, mean + half


def t_test(differences: np.ndarray) -> np.ndarray:
    """Two-sided p of a mean of 0, (cells, pairs) -> (cells,); not a number where all differences are 0."""
    mean, error = _mean_and_error(differences)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1 - _within(np.abs(mean / error), differences.shape[1] - 1)


def _mean_and_error(differences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return differences.mean(1), differences.std(1, ddof=1) / np.sqrt(differences.shape[1])


def _within(t: np.ndarray | float, freedom: int) -> np.ndarray:
    """The chance that Student's t with so many whole degrees of freedom lies between -t and t: the finite sums of its integral
    over the angle."""
    angle = np.arctan(t / math.sqrt(freedom))
    cosine, odd = np.cos(angle), freedom % 2
    term, total = np.ones_like(cosine), np.zeros_like(cosine)
    for i in range(freedom // 2):
        total = total + term
        term = term * cosine**2 * (2 * i + 1 + odd) / (2 * i + 2 + odd)
    return 2 / np.pi * (angle + np.sin(angle) * cosine * total) if odd else np.sin(angle) * total


@lru_cache
def _quantile(confidence: float, freedom: int) -> float:
    """The t between whose negative and which Student's lies with this chance, by halving."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return high


def signed_rank_test(differences: np.ndarray) -> np.ndarray:
    """Two-sided p of Wilcoxon's test, (cells, pairs) -> (cells,). Differences of 0 are left out, equal ones share a rank."""
    return np.array([_signed_rank(own[own != 0]) for own in differences])


def _signed_rank(own: np.ndarray) -> float:
    if not len(own):
        return np.nan
    _, which, counts = np.unique(np.abs(own), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(counts) - counts + 1)[which]  # twice the mean rank of equal ones: a whole number
    positive = int(doubled[own > 0].sum())
    if len(own) <= EXACT:
        chances = _chances(tuple(sorted(doubled.tolist())))
        return min(1.0, 2 * float(min(chances[: positive + 1].sum(), chances[positive:].sum())))
    centre, spread = doubled.sum() / 2, np.sqrt((doubled.astype(float) ** 2).sum()) / 2
    return math.erfc(abs(positive - centre) / spread / math.sqrt(2))


@lru_cache(maxsize=64)  # cells without equal differences have the same ranks
def _chances(ranks: tuple[int, ...]) -> np.ndarray:
    """Chance of each sum of those ranks whose sign is positive, (sum of all ranks + 1,), where every sign is a coin's."""
    chances = np.zeros(sum(ranks) + 1)
    chances[0] = 1.0
    for rank in ranks:
        chances = (chances + np.concatenate([np.zeros(rank), chances[:-rank]])) / 2
    return chances
