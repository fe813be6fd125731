"""Scaling learned from the training samples: per feature for tables, per channel for images."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .dataset import dense_rows

CHUNK_SIZE = 2**18  # numbers that are converted to float64 at a time: they fit a core's cache
THREADS = min(8, os.cpu_count() or 1)  # that convert chunks
T = TypeVar("T")


@dataclass(frozen=True)
class Scaling:
    """x -> (x - shift) / scale; both broadcast to a sample."""

    shift: np.ndarray
    scale: np.ndarray

    def __call__(self, samples: np.ndarray, dtype: np.dtype | type = np.float64) -> np.ndarray:
        scaled = np.empty(samples.shape, dtype=dtype)
        for rows in chunks(samples):
            part = samples[rows].astype(np.float64)
            part -= self.shift
            part /= self.scale
            scaled[rows] = part
        return scaled


IDENTITY = Scaling(np.zeros(()), np.ones(()))


def to_unit_range(samples: np.ndarray) -> Scaling:
    """Map the smallest and largest value of all images to 0 and 1."""
    low, high = float(samples.min()), float(samples.max())
    return Scaling(np.asarray(low), np.asarray(high - low if high > low else 1.0))


def z_score(samples: Any, transform: Callable[[np.ndarray], np.ndarray] = IDENTITY, *,
            axes: tuple[int, ...] = (0,), growth: float = 1.0, constant: float = 1.0) -> Scaling:
    """Scale samples to mean 0 and standard deviation 1 over `axes`, after a transform.

    It multiplies their size by `growth`. `constant=inf` keeps new values of constant features at 0.
    """
    moments = Moments(axes)
    for part in map_chunks(lambda rows: moments.of(transform(dense_rows(samples, rows))), samples,
                           growth):
        moments.merge(*part)
    return moments.scaling(constant)


def some_rows(X: Any) -> np.ndarray:
    """Return at most ten thousand evenly spread rows in float64, of wide data a thousand."""
    most = max(1000, min(10_000, 2**22 // X.shape[1]))
    return dense_rows(X, slice(None, None, X.shape[0] // most + 1)).astype(np.float64)


def are_components(X: Any) -> bool:
    """Tell whether these are principal components: uncorrelated, of decreasing spread."""
    if sparse.issparse(X):
        return False
    some = some_rows(X)
    spread = some.std(0)
    decreasing = (np.diff(spread) < 0.2 * spread[:-1]).all() and 0 < 2 * spread[-1] < spread[0]
    return bool(len(spread) >= 8 and decreasing
                and np.median(np.abs(np.corrcoef(some, rowvar=False))) < 0.05)


class Moments:
    """Mean and standard deviation over `axes` of all chunks (n, ...) that were added.

    Chunks are merged as by Chan, Golub and LeVeque, which avoids cancellation, in units of the
    largest number so far, whose square cannot overflow.
    """

    def __init__(self, axes: tuple[int, ...]) -> None:
        self.axes = axes
        self._count = 0
        self._unit, self._mean, self._squares = np.zeros(()), np.zeros(()), np.zeros(())

    def of(self, chunk: NDArray[Any]) -> tuple[int, NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the count, unit, mean and sum of squared deviations of one chunk."""
        over: dict[str, Any] = {"axis": self.axes, "keepdims": True}
        part = chunk.astype(np.float64)
        unit = np.maximum(part.max(**over), -part.min(**over))
        unit = np.where(unit > 0, unit, 1.0)
        part /= unit
        mean = part.mean(**over)
        part -= mean
        return part.size // mean.size, unit, mean, np.square(part, out=part).sum(**over)

    def merge(self, count: int, unit: NDArray[Any], mean: NDArray[Any],
              squares: NDArray[Any]) -> None:
        common = np.maximum(self._unit, unit)
        old, new = self._unit / common, unit / common
        delta, total = mean * new - self._mean * old, self._count + count
        self._mean = self._mean * old + delta * (count / total)
        self._squares = (self._squares * old**2 + squares * new**2
                         + delta**2 * (self._count * count / total))
        self._count, self._unit = total, common

    def scaling(self, constant: float = 1.0) -> Scaling:
        """Return the z-score; the scale is `constant` where all numbers are equal."""
        spread = np.sqrt(self._squares / self._count)
        # Numbers that differ by rounding only are divided by their size, which makes them about 0.
        rounding = np.where(spread > 0, self._unit, constant)
        scale = np.where(spread > 1e-14, spread * self._unit, rounding)
        return Scaling((self._mean * self._unit)[0], scale[0])


def map_chunks(function: Callable[[slice], T], samples: Any, growth: float = 1.0) -> Iterator[T]:
    """Apply a function to slices of rows in threads, in order: numpy itself uses one of them."""
    with ThreadPoolExecutor(THREADS) as pool:
        yield from pool.map(function, chunks(samples, growth))


def chunks(samples: Any, growth: float = 1.0) -> Iterator[slice]:
    """Slice the rows of (n, ...) into chunks of CHUNK_SIZE numbers, after growing by `growth`."""
    step = max(1, int(CHUNK_SIZE / growth / max(1, int(np.prod(samples.shape[1:])))))
    return (slice(start, start + step) for start in range(0, samples.shape[0], step))
