"""Scaling learned from the training samples: per feature for tables, per channel for images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

ROWS = 8192
"""Samples scaled at once, so that memory-mapped files and integer images never exist twice in float64."""


@dataclass(frozen=True)
class Scaling:
    """x -> (x - shift) / scale, where both broadcast to a sample."""

    shift: np.ndarray
    scale: np.ndarray

    def __call__(self, samples: np.ndarray, dtype: np.dtype | type = np.float64) -> np.ndarray:
        scaled = np.empty(samples.shape, dtype=dtype)
        for rows in _chunks(len(samples)):
            scaled[rows] = (samples[rows].astype(np.float64) - self.shift) / self.scale
        return scaled


def identity() -> Scaling:
    return Scaling(np.zeros(()), np.ones(()))


def to_unit_range(samples: np.ndarray) -> Scaling:
    """Images to [0, 1] by the smallest and largest value of the whole set."""
    low, high = float(samples.min()), float(samples.max())
    return Scaling(np.asarray(low), np.asarray(high - low if high > low else 1.0))


def z_score(samples: np.ndarray, before: Scaling, *, axes: tuple[int, ...] = (0,)) -> Scaling:
    """Mean 0 and standard deviation 1 over these axes, of samples that went through `before`; constants become 0.

    Two passes with a shift by the mean: exact where the textbook's one-pass formula cancels, and safe for huge numbers
    because they are measured in units of the largest.
    """
    largest = np.maximum.reduce([np.abs(part).max(axis=axes, keepdims=True) for part in _scaled(samples, before)])
    unit = np.where(largest > 0, largest, 1.0)
    count = samples.size // max(1, unit.size)
    mean = sum((part / unit).sum(axis=axes, keepdims=True) for part in _scaled(samples, before)) / count
    variance = sum(((part / unit - mean) ** 2).sum(axis=axes, keepdims=True) for part in _scaled(samples, before)) / count
    # A spread at the level of rounding is a constant that was not exactly representable.
    spread = np.where(np.sqrt(variance) > 1e-12, np.sqrt(variance), 0.0)
    return Scaling((mean * unit)[0], np.where(spread > 0, spread * unit, 1.0)[0])


def _chunks(n: int) -> Iterator[slice]:
    return (slice(start, start + ROWS) for start in range(0, n, ROWS))


def _scaled(samples: np.ndarray, before: Scaling) -> Iterator[np.ndarray]:
    return (before(samples[rows]) for rows in _chunks(len(samples)))
