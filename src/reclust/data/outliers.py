"""Columns of a table that standardising does little good: a few values far out erase the others, or most are crowded at one
end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .moments import NUMBERS
from .scaling import Scaling
from .streams import dense_rows

LEAST_ROWS = 30
"""In fewer, one of a skewed kind may be that far out by chance."""
ERASED = 0.2
"""Standard deviations that the other values are left with, at most."""
FAR = 10
"""How many times farther from the median than all others values must be to be a typo or a sign such as -999."""
DISTINCT = 10
"""So few other values, such as 0 and 1, are categories or counts, which have nothing to lose."""
LONG_TAIL = 4
"""How many times farther above the median than below it the outer twentieths begin, as amounts do that span powers of ten."""
LOOKED_AT = 2**24
"""Numbers in suspicious columns that are looked at, so that a check never takes as long as a fit."""


def erased_columns(X: Any, scaling: Scaling) -> Iterator[tuple[int, int, float]]:
    """Number of the column, how many of its values lie far out, and the farthest of them."""
    n = X.shape[0]
    if n < LEAST_ROWS:
        return
    some = scaling(dense_rows(X, some_rows(X)))
    usual = np.median(np.abs(some - np.median(some, axis=0)), axis=0)
    suspects = np.flatnonzero((usual > 0) & (usual < ERASED))[:max(1, LOOKED_AT // n)]  # at 0, most values are the same
    if not len(suspects):
        return
    columns = X[:, suspects].toarray() if sparse.issparse(X) else np.asarray(X[:, suspects])
    z = Scaling(scaling.shift[suspects], scaling.scale[suspects])(columns)
    for i, column in enumerate(suspects.tolist()):
        count = far_out(z[:, i])
        if count:
            yield column, count, float(columns[np.abs(z[:, i] - np.median(z[:, i])).argmax(), i])


def far_out(z: NDArray[np.float64]) -> int:
    """How many of the standardised values (n,) erase all others: at most 1 % of them, or less than half that are all the same.

    Heavy tails are no mistakes: far is what lies beyond all others by a larger factor than those beyond the usual distance.
    """
    off = np.abs(z - np.median(z))
    distance, n = np.sort(off), len(z)
    starts = np.array([np.searchsorted(distance, distance[-1]), *range(n - max(1, n // 100), n)])
    starts = starts[starts > n // 2]
    before, usual = distance[starts - 1], distance[n // 2]
    starts = starts[(usual > 0) & (distance[starts] * usual >= before * np.maximum(FAR * usual, before))]
    if not len(starts):
        return 0
    others = z[off <= distance[starts.min() - 1]]
    return n - len(others) if others.std() < ERASED and len(np.unique(others)) > DISTINCT else 0


def crowded_columns(X: Any) -> NDArray[np.intp]:
    """Numbers of the columns whose values are crowded at the low end, of which logarithms make much less; none where most
    columns are not so."""
    if X.shape[0] < LEAST_ROWS:
        return np.empty(0, np.intp)
    some = dense_rows(X, some_rows(X)).astype(np.float64)
    varied = (np.diff(np.sort(some, axis=0), axis=0) > 0).sum(axis=0) >= DISTINCT
    amounts = np.flatnonzero(varied & (some.min(axis=0) >= 0))
    tail, in_logs = _tail(some[:, amounts]), _tail(np.log1p(some[:, amounts]))
    crowded = amounts[(tail > LONG_TAIL) & (in_logs < tail / 2)]
    return crowded if 2 * len(crowded) >= varied.sum() else crowded[:0]


def _tail(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 where the median is as low as values get: there is nothing to draw apart."""
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95), axis=0)
    return np.divide(high - middle, middle - low, out=np.zeros_like(middle), where=middle > low)


def some_rows(X: Any) -> slice:
    """About a thousand rows of all parts, fewer of a wide table."""
    return slice(None, None, max(1, X.shape[0] // min(1_000, max(100, NUMBERS // X.shape[1]))))
