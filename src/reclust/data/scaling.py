"""Scaling learned from the training samples: per feature for tables, per channel for images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .streams import dense_rows

NUMBERS = 2**22
"""Numbers looked at at once, so that mapped, sparse or integer samples never exist as a whole in float64."""


@dataclass(frozen=True)
class Scaling:
    """x -> (x - shift) / scale, where both broadcast to a sample."""

    shift: np.ndarray
    scale: np.ndarray

    def __call__(self, samples: np.ndarray, dtype: np.dtype | type = np.float64) -> np.ndarray:
        scaled = np.empty(samples.shape, dtype=dtype)
        for rows in chunks(samples):
            scaled[rows] = (samples[rows].astype(np.float64) - self.shift) / self.scale
        return scaled


def identity() -> Scaling:
    return Scaling(np.zeros(()), np.ones(()))


def to_unit_range(samples: np.ndarray) -> Scaling:
    """Images to [0, 1] by the smallest and largest value of the whole set."""
    low, high = float(samples.min()), float(samples.max())
    return Scaling(np.asarray(low), np.asarray(high - low if high > low else 1.0))


def z_score(samples: Any, before: Scaling, *, axes: tuple[int, ...] = (0,)) -> Scaling:
    """Mean 0 and standard deviation 1 over these axes, of samples (n, ...) that went through `before`; constants become 0.

    One pass: the moments of chunks are merged (Chan, Golub, LeVeque), which does not cancel as the textbook's formula does,
    and they are kept in units of the largest number so far, whose square may not overflow.
    """
    count, unit, mean, squares = 0, np.float64(0), np.float64(0), np.float64(0)
    for rows in chunks(samples):
        part = before(dense_rows(samples, rows))
        larger = np.maximum(unit, np.abs(part).max(axis=axes, keepdims=True))
        larger = np.where(larger > 0, larger, 1.0)
        part, mean, squares = part / larger, mean * (unit / larger), squares * (unit / larger) ** 2
        own_mean = part.mean(axis=axes, keepdims=True)
        own_count = part.size // own_mean.size
        delta, total = own_mean - mean, count + own_count
        mean = mean + delta * (own_count / total)
        squares = squares + ((part - own_mean) ** 2).sum(axis=axes, keepdims=True) + delta**2 * (count * own_count / total)
        count, unit = total, larger
    # A spread at the level of rounding is a constant that was not exactly representable.
    spread = np.where(np.sqrt(squares / count) > 1e-12, np.sqrt(squares / count), 0.0)
    return Scaling((mean * unit)[0], np.where(spread > 0, spread * unit, 1.0)[0])


def chunks(samples: Any) -> Iterator[slice]:
    """Slices of the rows of (n, ...) with so many numbers each."""
    step = max(1, NUMBERS // max(1, int(np.prod(samples.shape[1:]))))
    return (slice(start, start + step) for start in range(0, samples.shape[0], step))
