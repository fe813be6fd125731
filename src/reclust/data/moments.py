"""Mean and standard deviation in one pass over chunks, which may be mapped, sparse or integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .streams import dense_rows

NUMBERS = 2**22
"""Numbers looked at at once, so that samples never exist as a whole in float64."""


class Moments:
    """Over these axes of all chunks (n, ...) that were added.

    The moments of chunks are merged (Chan, Golub, LeVeque), which does not cancel as the textbook's formula does, and they
    are kept in units of the largest number so far, whose square may not overflow.
    """

    def __init__(self, axes: tuple[int, ...]) -> None:
        self.axes = axes
        self._count = 0
        self._unit, self._mean, self._squares = np.zeros(()), np.zeros(()), np.zeros(())

    def add(self, chunk: NDArray[Any]) -> None:
        over: dict[str, Any] = {"axis": self.axes, "keepdims": True}
        part = chunk.astype(np.float64)
        unit = np.maximum(self._unit, np.abs(part).max(**over))
        unit = np.where(unit > 0, unit, 1.0)
        part, mean, squares = part / unit, self._mean * (self._unit / unit), self._squares * (self._unit / unit) ** 2
        own_mean = part.mean(**over)
        own_count = part.size // own_mean.size
        delta, total = own_mean - mean, self._count + own_count
        self._mean = mean + delta * (own_count / total)
        self._squares = squares + ((part - own_mean) ** 2).sum(**over) + delta**2 * (self._count * own_count / total)
        self._count, self._unit = total, unit

    def result(self, constant: float = 1.0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation, of a shape that broadcasts to one sample; `constant` where all numbers are the same, and
        where they are but for rounding their size, by which they become about 0."""
        spread = np.sqrt(self._squares / self._count)
        scale = np.where(spread > 1e-14, spread * self._unit, np.where(spread > 0, self._unit, constant))
        return (self._mean * self._unit)[0], scale[0]


def statistics(samples: Any, axes: tuple[int, ...] = (0,)) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of samples (n, ...), dense, mapped or sparse."""
    moments = Moments(axes)
    for rows in chunks(samples):
        moments.add(dense_rows(samples, rows))
    return moments.result()


def chunks(samples: Any, growth: float = 1.0) -> Iterator[slice]:
    """Slices of the rows of (n, ...) with so many numbers each, once they are larger by `growth`."""
    step = max(1, int(NUMBERS / growth / max(1, int(np.prod(samples.shape[1:])))))
    return (slice(start, start + step) for start in range(0, samples.shape[0], step))
