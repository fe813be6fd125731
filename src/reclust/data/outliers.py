"""Warnings about columns of a table that standardising does not suit: outliers and long tails."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..utils.exceptions import warn
from .scaling import CHUNK_SIZE, Scaling
from .streams import dense_rows

MIN_ROWS = 30
MAX_SPREAD = 0.2
"""Standard deviations of the other values, at most, for outliers to hide their differences."""
FAR = 10
"""How many times farther from the median than all other values outliers lie."""
MIN_DISTINCT = 10
"""Columns with fewer distinct values are categories or counts."""
LONG_TAIL = 4
"""Ratio of the distances from the median to the 95 % and the 5 % quantile."""
MAX_NUMBERS = 2**24
"""Numbers in suspicious columns that are looked at, so that checking stays fast."""


def warn_about_columns(X: Any, scaling: Scaling, names: Sequence[str] | None) -> None:
    """Warn about outliers that hide a column's differences, and about columns that need a log."""
    outliers = list(outlier_columns(X, scaling))
    if outliers:
        found = [f"{column_name(names, column)} ({farthest:g}; {count} of {X.shape[0]} rows)"
                 for column, count, farthest in outliers]
        warn("Outliers dominate the standard deviation, so that all other values look alike, in "
             f"{listed(found)}. Correct or drop them, or impute them if they mean 'missing'.")
    skewed = long_tailed_columns(X)
    if len(skewed):
        found = [column_name(names, column) for column in skewed.tolist()]
        warn(f"{len(skewed)} of {X.shape[1]} columns have long tails ({listed(found)}). Amounts "
             "that span powers of ten usually cluster better as logarithms: use np.log1p on them.")


def column_name(names: Sequence[str] | None, column: int) -> str:
    return f"feature {column}" if names is None else repr(names[column])


def listed(words: Sequence[str]) -> str:
    """Join the first five words."""
    return ", ".join(words[:5]) + ", …" * (len(words) > 5)


def outlier_columns(X: Any, scaling: Scaling) -> Iterator[tuple[int, int, float]]:
    """Yield the column, the number of its outliers and the farthest of them."""
    n = X.shape[0]
    if n < MIN_ROWS:
        return
    some = scaling(dense_rows(X, some_rows(X)))
    deviation = np.median(np.abs(some - np.median(some, axis=0)), axis=0)
    # A median deviation of 0 means that most values are the same.
    suspects = np.flatnonzero((deviation > 0) & (deviation < MAX_SPREAD))[:max(1, MAX_NUMBERS // n)]
    if not len(suspects):
        return
    columns = X[:, suspects].toarray() if sparse.issparse(X) else np.asarray(X[:, suspects])
    z = Scaling(scaling.shift[suspects], scaling.scale[suspects])(columns)
    for i, column in enumerate(suspects.tolist()):
        count = count_outliers(z[:, i])
        if count:
            yield column, count, float(columns[np.abs(z[:, i] - np.median(z[:, i])).argmax(), i])


def count_outliers(z: NDArray[np.float64]) -> int:
    """Count the standardised values (n,) that hide the differences among all others.

    Outliers are at most 1 % of the values, or less than half and all equal (such as -999). They lie
    beyond all others by a larger factor than those do beyond the median distance, which heavy tails
    do not.
    """
    off = np.abs(z - np.median(z))
    distance, n = np.sort(off), len(z)
    starts = np.array([np.searchsorted(distance, distance[-1]), *range(n - max(1, n // 100), n)])
    starts = starts[starts > n // 2]
    before, usual = distance[starts - 1], distance[n // 2]
    apart = distance[starts] * usual >= before * np.maximum(FAR * usual, before)
    starts = starts[(usual > 0) & apart]
    if not len(starts):
        return 0
    others = z[off <= distance[starts.min() - 1]]
    hidden = others.std() < MAX_SPREAD and len(np.unique(others)) > MIN_DISTINCT
    return n - len(others) if hidden else 0


def long_tailed_columns(X: Any) -> NDArray[np.intp]:
    """Return the columns whose long tails a log shortens; none if they are a minority."""
    if X.shape[0] < MIN_ROWS:
        return np.empty(0, np.intp)
    some = dense_rows(X, some_rows(X)).astype(np.float64)
    varied = (np.diff(np.sort(some, axis=0), axis=0) > 0).sum(axis=0) >= MIN_DISTINCT
    amounts = np.flatnonzero(varied & (some.min(axis=0) >= 0))
    tail, log_tail = _tail(some[:, amounts]), _tail(np.log1p(some[:, amounts]))
    found = amounts[(tail > LONG_TAIL) & (log_tail < tail / 2)]
    return found if 2 * len(found) >= varied.sum() else found[:0]


def _tail(values: NDArray[np.float64]) -> NDArray[np.float64]:
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95), axis=0)
    return np.divide(high - middle, middle - low, out=np.zeros_like(middle), where=middle > low)


def some_rows(X: Any) -> slice:
    """Select about a thousand evenly spaced rows, fewer of a wide table."""
    return slice(None, None, max(1, X.shape[0] // min(1_000, max(100, CHUNK_SIZE // X.shape[1]))))
