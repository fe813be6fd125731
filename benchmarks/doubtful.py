"""How far probabilities and outlier scores of `Reclust` can be trusted, on labeled tables whose labels only score.

    python benchmarks/doubtful.py tables.npz                    X and y of each table as NAME/X, NAME/y

Probabilities: of the samples with a probability of at least 0.9, the share that has the commonest class of its cluster. Outliers: the
area under the curve of `outlier_score_` for noise rows that are mixed in, beside the distance to the nearest center of k-means. A noise
row is uniform within the range of each column, or takes each of its values from another row. In tables of fewer than a thousand rows,
of which a few are noise, the mean of five draws counts.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import front_door
import numpy as np
from _records import write_record
from sklearn.cluster import KMeans
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from reclust import Reclust

SHARES, SURE, FOUND = (0.05, 0.1), 0.9, 0.8
SMALL, DRAWS = 1000, 5


def noise(X: np.ndarray, kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "uniform":
        return rng.uniform(X.min(0), X.max(0), size=(count, X.shape[1]))
    return np.column_stack([rng.choice(column, count) for column in X.T])


def both(X: np.ndarray, k: int, kind: str, share: float, effort: str, rng: np.random.Generator) -> dict[str, float]:
    """The area under the curve of both scores for one draw of noise."""
    rows = np.concatenate([X, noise(X, kind, max(3, round(share * len(X))), rng)])
    is_noise, z = np.arange(len(rows)) >= len(X), StandardScaler().fit_transform(rows)
    distances = KMeans(k, n_init=10, random_state=0).fit(z).transform(z).min(1)
    scores = Reclust(k, effort=effort, random_state=0).fit(rows).outlier_score_
    return {"Reclust": roc_auc_score(is_noise, scores), "k-means": roc_auc_score(is_noise, distances)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--effort", default="quick")
    arguments = parser.parse_args()
    measured: dict[str, Any] = {}
    for name, X, y in front_door.tables(arguments.data):
        classes, k = np.unique(y, return_inverse=True)[1], len(np.unique(y))
        rng, X = np.random.default_rng(0), X.astype(np.float64)
        model = Reclust(k, effort=arguments.effort, random_state=0).fit(X)
        commonest = np.array([np.bincount(classes[model.labels_ == c]).argmax() for c in range(model.n_clusters_)])
        right, sure = commonest[model.labels_] == classes, model.probabilities_ >= SURE
        found: dict[str, Any] = {"right": float(right.mean()), "sure": float(sure.mean()),
                                 "right_if_sure": float(right[sure].mean()) if sure.any() else None, "auc": {}}
        for kind in ("uniform", "shuffled"):
            for share in SHARES:
                draws = [both(X, k, kind, share, arguments.effort, rng) for _ in range(DRAWS if len(X) < SMALL else 1)]
                found["auc"][f"{kind}, {share:.0%}"] = {way: float(np.mean([one[way] for one in draws])) for way in draws[0]}
        measured[name] = found
        print(name, {key: round(number, 2) for key, number in found.items() if isinstance(number, float)},
              {kind: [round(number, 2) for number in one.values()] for kind, one in found["auc"].items()}, flush=True)
    known = [found["right_if_sure"] for found in measured.values() if found["right_if_sure"] is not None]
    print(f"probability at least {SURE}: {100 * np.mean(known):.1f} % have the commonest class of their cluster, mean of {len(known)} tables")
    for kind in next(iter(measured.values()))["auc"]:
        counted = [found["auc"][kind] for found in measured.values() if found["auc"][kind]["k-means"] >= FOUND]
        means = {way: np.mean([one[way] for one in counted]) for way in counted[0]}
        print(f"{kind}: k-means {means['k-means']:.3f}, Reclust {means['Reclust']:.3f}, at least 0.9 in "
              f"{sum(one['Reclust'] >= 0.9 for one in counted)} of {len(counted)} tables where k-means has {FOUND}")
    print(f"record: {write_record('doubtful', {'effort': arguments.effort}, measured)}")


if __name__ == "__main__":
    main()
