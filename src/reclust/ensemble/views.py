"""Views of a table: the same rows, scaled in different ways."""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

MAX_COLUMNS = 60


def standardized(x: np.ndarray) -> np.ndarray:
    """Scale columns to mean 0 and standard deviation 1; constant columns become 0."""
    spread = x.std(0)
    return (x - x.mean(0)) / np.where(spread > 1e-12 * np.abs(x).max(0), spread, np.inf)


def _weighted_by_correlation(z: np.ndarray) -> np.ndarray:
    """Give columns more weight that many others resemble."""
    z = np.clip(z, -2, 2)
    scaled = standardized(z)
    squares = np.einsum("nd,nd->d", np.linalg.multi_dot([scaled, scaled.T, scaled]), scaled)
    return z * (squares / len(z) ** 2) ** 0.25  # the sum of squared correlations


VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "standardized": lambda z: z,
    "clipped": lambda z: np.clip(z, -2, 2),
    "arcsinh": lambda z: standardized(np.arcsinh(z)),
    "winsorized": lambda z: standardized(np.clip(z, *np.percentile(z, (5, 95), axis=0))),
    "correlated": _weighted_by_correlation,
    "ranks": lambda z: np.clip(ndtri((rankdata(z, axis=0) - 0.5) / len(z)), -3, 3),
}


def table_views(x: np.ndarray, scales: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Return the views of rows (n, d), each with at most 60 principal components.

    Columns that have a scale (d,), not NaN, are only divided by it.
    """
    return {name: principal_components(view, MAX_COLUMNS)
            for name, view in scaled_views(x, scales).items()}


def scaled_views(x: np.ndarray, scales: np.ndarray | None = None) -> dict[str, np.ndarray]:
    x = np.asarray(x, dtype=np.float64)
    fixed = np.zeros(x.shape[1], bool) if scales is None else np.isfinite(scales)
    z = standardized(x[:, ~fixed])
    varying = z.any(0)
    z = z[:, varying] if varying.any() or fixed.any() else z[:, :1]
    if not fixed.any():
        return {name: view(z) for name, view in VIEWS.items()}
    scaled = (x - x.mean(0))[:, fixed] / scales[fixed]  # type: ignore[index]
    return {name: np.concatenate([view(z) if z.size else z, scaled], 1)
            for name, view in VIEWS.items()}


def principal_components(x: np.ndarray, most: int) -> np.ndarray:
    """Center rows, and rotate them to at most `most` principal components: -> (n, min(d, most))."""
    x = x - x.mean(0)
    if x.shape[1] <= most:
        return x
    if len(x) >= x.shape[1]:
        _, axes = np.linalg.eigh(x.T @ x)
        return x @ axes[:, : -most - 1 : -1]
    values, axes = np.linalg.eigh(x @ x.T)
    scaled = axes * np.sqrt(np.clip(values, 0, None))
    return scaled[:, : -most - 1 : -1].copy()  # torch takes no array that is reversed
