"""Parts of the report of a single fit: where samples lie, how sure they are, what makes a cluster different.

Shapes: m samples looked at, r replicas, d embedding size, k clusters, f features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import metrics
from .parts import as_bytes, centred, plane, spread


def embedding_map(z: np.ndarray, centers: np.ndarray, labels: np.ndarray, rows: np.ndarray, *,
                  classes: np.ndarray | None = None, samples: int = 1500) -> dict[str, Any]:
    """Embeddings (m, d) and centres (k, d) in the plane of their two largest variances, as a scene of one frame.

    labels, rows, classes: of the m samples. `share` is how much of the variance the plane shows.
    """
    kept = spread(len(z), samples)
    points, middles = centred(np.asarray(z, dtype=np.float64)[kept], np.asarray(centers, dtype=np.float64))
    directions = plane(points)
    flat = np.concatenate([points, middles]) @ directions
    reach = 1.1 * float(np.quantile(np.abs(flat[: len(kept)]), 0.998)) or 1.0
    whole = float((points**2).sum())
    return {
        "frames": [{"epoch": -1, "reset": False}], "points": as_bytes(np.clip(flat / reach * 127 + 128, 0, 255)),
        "clusters": labels[kept], "rows": rows[kept], "n_clusters": len(centers),
        "classes": None if classes is None else [str(one) for one in classes[kept]],
        "share": float((flat[: len(kept)] ** 2).sum()) / whole if whole else 1.0,
    }


def histogram(values: np.ndarray, *, bins: int = 20) -> dict[str, Any]:
    """Counts in equal parts of [0, 1], and the median; what is not a number is not counted."""
    known = values[np.isfinite(values)]
    counts, _ = np.histogram(np.clip(known, 0.0, 1.0), bins=bins, range=(0.0, 1.0))
    return {"counts": counts, "median": float(np.median(known)) if len(known) else None}


def profiles(x: np.ndarray, labels: np.ndarray, k: int, names: Sequence[str], *, count: int = 8) -> list[list[dict[str, Any]]]:
    """For each cluster the features of x (m, f) whose mean differs most from the mean of all, in standard deviations of all.

    Features that are the same everywhere say nothing and are left out.
    """
    x = np.asarray(x, dtype=np.float64)
    mean, std = x.mean(0), x.std(0)
    varying = std > 1e-12 * np.maximum(np.abs(mean), 1e-300)
    made = []
    for cluster in range(k):
        members = x[labels == cluster]
        own = members.mean(0) if len(members) else mean
        deviation = np.where(varying, (own - mean) / np.where(varying, std, 1.0), 0.0)
        order = [i for i in np.argsort(-np.abs(deviation), kind="stable")[:count] if varying[i]]
        made.append([{"name": str(names[i]), "deviation": deviation[i], "mean": own[i], "overall": mean[i]} for i in order])
    return made


def agreement(labels: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Of each sample, (m,), the share of labelings (r, m) that put it where the reference (m,) does, after each one's clusters
    were matched one to one with those of the reference."""
    return np.mean([metrics.matched(other, reference) == reference for other in labels], axis=0)


def pairwise(labels: Sequence[np.ndarray]) -> np.ndarray:
    """NMI between each two labelings, (r, r)."""
    table = np.eye(len(labels))
    for i, one in enumerate(labels):
        for j in range(i):
            table[i, j] = table[j, i] = metrics.nmi(one, labels[j])
    return table


def off_diagonal(table: np.ndarray) -> np.ndarray:
    """The entries of (r, r) for pairs of two different ones, each pair once."""
    return table[np.tril_indices(len(table), -1)]


def mean_per_cluster(values: np.ndarray, labels: np.ndarray, k: int) -> list[float | None]:
    """The mean of values (m,) over each cluster; None where it has no sample."""
    sums, sizes = np.bincount(labels, weights=values, minlength=k), np.bincount(labels, minlength=k)
    return [float(total / n) if n else None for total, n in zip(sums, sizes, strict=True)]


def effective_dimensions(z: np.ndarray) -> float:
    """How many directions the variance of z (m, d) spreads over: 1 for a line, d for a ball, 0 for a point."""
    variances = np.linalg.eigvalsh(np.atleast_2d(np.cov(np.asarray(z, dtype=np.float64).T)))
    variances = np.clip(variances, 0.0, None)
    return float(variances.sum() ** 2 / (variances**2).sum()) if variances.sum() > 0 else 0.0
