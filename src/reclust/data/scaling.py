"""Scaling learned from the training samples: per feature for tables, per channel for images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .moments import Moments, chunks
from .streams import dense_rows


@dataclass(frozen=True)
class Scaling:
    """x -> (x - shift) / scale, where both broadcast to a sample."""

    shift: np.ndarray
    scale: np.ndarray

    def inverse(self) -> Scaling:
        return Scaling(np.asarray(-self.shift / self.scale), np.asarray(1 / self.scale))

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


def z_score(samples: Any, before: Callable[[np.ndarray], np.ndarray], *, axes: tuple[int, ...] = (0,),
            growth: float = 1.0, constant: float = 1.0) -> Scaling:
    """Mean 0 and standard deviation 1 over these axes, of samples (n, ...) that went through `before`; constants become 0.

    growth: by how much `before` makes samples larger. constant: the scale of constants; infinity keeps new values of them at 0.
    """
    moments = Moments(axes)
    for rows in chunks(samples, growth):
        moments.add(before(dense_rows(samples, rows)))
    return Scaling(*moments.result(constant))
