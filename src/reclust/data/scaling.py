"""Scaling learned from the training samples: per feature for tables, per channel for images."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .dataset import dense_rows

CHUNK_SIZE = 2**22  # numbers that are converted to float64 at a time


@dataclass(frozen=True)
class Scaling:
    """x -> (x - shift) / scale; both broadcast to a sample."""

    shift: np.ndarray
    scale: np.ndarray

    def inverse(self) -> "Scaling":
        return Scaling(np.asarray(-self.shift / self.scale), np.asarray(1 / self.scale))

    def __call__(self, samples: np.ndarray, dtype: np.dtype | type = np.float64) -> np.ndarray:
        scaled = np.empty(samples.shape, dtype=dtype)
        for rows in chunks(samples):
            scaled[rows] = (samples[rows].astype(np.float64) - self.shift) / self.scale
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
    for rows in chunks(samples, growth):
        moments.add(transform(dense_rows(samples, rows)))
    return moments.scaling(constant)


def some_rows(X: Any) -> np.ndarray:
    """Return at most ten thousand evenly spread rows in float64, of wide data a thousand."""
    most = max(1000, min(10_000, CHUNK_SIZE // X.shape[1]))
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

    def add(self, chunk: NDArray[Any]) -> None:
        over: dict[str, Any] = {"axis": self.axes, "keepdims": True}
        part = chunk.astype(np.float64)
        unit = np.maximum(self._unit, np.abs(part).max(**over))
        unit = np.where(unit > 0, unit, 1.0)
        part, ratio = part / unit, self._unit / unit
        mean, squares = self._mean * ratio, self._squares * ratio**2
        new_mean = part.mean(**over)
        new_count = part.size // new_mean.size
        delta, total = new_mean - mean, self._count + new_count
        self._mean = mean + delta * (new_count / total)
        self._squares = (squares + ((part - new_mean) ** 2).sum(**over)
                         + delta**2 * (self._count * new_count / total))
        self._count, self._unit = total, unit

    def scaling(self, constant: float = 1.0) -> Scaling:
        """Return the z-score; the scale is `constant` where all numbers are equal."""
        spread = np.sqrt(self._squares / self._count)
        # Numbers that differ by rounding only are divided by their size, which makes them about 0.
        rounding = np.where(spread > 0, self._unit, constant)
        scale = np.where(spread > 1e-14, spread * self._unit, rounding)
        return Scaling((self._mean * self._unit)[0], scale[0])


def chunks(samples: Any, growth: float = 1.0) -> Iterator[slice]:
    """Slice the rows of (n, ...) into chunks of CHUNK_SIZE numbers, after growing by `growth`."""
    step = max(1, int(CHUNK_SIZE / growth / max(1, int(np.prod(samples.shape[1:])))))
    return (slice(start, start + step) for start in range(0, samples.shape[0], step))
