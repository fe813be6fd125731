"""Parts of the report of a single fit: a map of the embedding, histograms, cluster profiles.

Shapes: m samples, r replicas, d embedding size, k clusters, f features.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from .. import metrics
from .parts import as_bytes, plane, spread, standardized


def embedding_map(z: np.ndarray, centers: np.ndarray, labels: np.ndarray, rows: np.ndarray, *,
                  classes: np.ndarray | None = None, samples: int = 1500) -> dict[str, Any]:
    """Project embeddings (m, d) and centers (k, d) onto the plane of their largest variance.

    The result is a scene of one frame; `share` is the share of the variance that it shows.
    """
    kept = spread(len(z), samples)
    points, middles = standardized(np.asarray(z, dtype=np.float64)[kept],
                                   np.asarray(centers, dtype=np.float64))
    flat = np.concatenate([points, middles]) @ plane(points)
    reach = 1.1 * float(np.quantile(np.abs(flat[: len(kept)]), 0.998)) or 1.0
    total = float((points**2).sum())
    return {
        "frames": [{"epoch": -1, "reset": False}],
        "points": as_bytes(np.clip(flat / reach * 127 + 128, 0, 255)),
        "clusters": labels[kept], "rows": rows[kept], "n_clusters": len(centers),
        "classes": None if classes is None else [str(name) for name in classes[kept]],
        "share": float((flat[: len(kept)] ** 2).sum()) / total if total else 1.0,
    }


def histogram(values: np.ndarray, *, bins: int = 20) -> dict[str, Any]:
    """Count finite values in equal bins of [0, 1], and return their median."""
    known = values[np.isfinite(values)]
    counts, _ = np.histogram(np.clip(known, 0.0, 1.0), bins=bins, range=(0.0, 1.0))
    return {"counts": counts, "median": float(np.median(known)) if len(known) else None}


def profiles(x: np.ndarray, labels: np.ndarray, k: int, names: Sequence[str], *,
             count: int = 8) -> list[list[dict[str, Any]]]:
    """Find the features of x (m, f) whose mean in a cluster deviates most, in standard deviations.

    Constant features are left out.
    """
    x = np.asarray(x, dtype=np.float64)
    mean, std = x.mean(0), x.std(0)
    varying = std > 1e-12 * np.maximum(np.abs(mean), 1e-300)
    made = []
    for cluster in range(k):
        members = x[labels == cluster]
        own = members.mean(0) if len(members) else mean
        deviation = np.where(varying, (own - mean) / np.where(varying, std, 1.0), 0.0)
        order = np.argsort(-np.abs(deviation), kind="stable")[:count]
        made.append([{"name": str(names[i]), "deviation": deviation[i], "mean": own[i],
                      "overall": mean[i]} for i in order if varying[i]])
    return made


def agreement(labels: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the share of labelings (r, m) that agree with the reference on each sample, (m,).

    Clusters are first matched one to one with those of the reference.
    """
    return np.mean([metrics.matched(other, reference) == reference for other in labels], axis=0)


def pairwise_nmi(labelings: Sequence[np.ndarray]) -> np.ndarray:
    """Return the NMI between all pairs of r labelings, (r, r)."""
    table = np.eye(len(labelings))
    for i, j in combinations(range(len(labelings)), 2):
        table[i, j] = table[j, i] = metrics.nmi(labelings[i], labelings[j])
    return table


def mean_per_cluster(values: np.ndarray, labels: np.ndarray, k: int) -> list[float | None]:
    """Average values (m,) over each cluster; None for empty ones."""
    sums = np.bincount(labels, weights=values, minlength=k)
    sizes = np.bincount(labels, minlength=k)
    return [float(total / n) if n else None for total, n in zip(sums, sizes, strict=True)]


def effective_dimensions(z: np.ndarray) -> float:
    """Return how many directions the variance of z (m, d) spreads over: 1 for a line, d at most."""
    variances = np.linalg.eigvalsh(np.atleast_2d(np.cov(np.asarray(z, dtype=np.float64).T)))
    variances = np.clip(variances, 0.0, None)
    return float(variances.sum() ** 2 / (variances**2).sum()) if variances.sum() > 0 else 0.0
