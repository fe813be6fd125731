"""Clusters of uneven size: classes of real sets thinned until the largest is 1, 10 or 100 times the smallest; ARI and mean recall of classes.

    python benchmarks/uneven.py images FOLDER --sets digits usps          data as in front_door.py
    python benchmarks/uneven.py texts FOLDER --rows 3000

Sizes fall geometrically from class to class, in a random order. "told" is `Reclust` told the true sizes: k-means in the network's
embedding that must give its clusters these sizes (Sinkhorn), or the network's probabilities under the same condition, whichever is better.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import front_door
import numpy as np
from _records import write_record
from scipy.special import logsumexp
from sklearn.metrics import recall_score

from reclust import Reclust, metrics

RATIOS, ROUNDS, SINKHORN = (1, 10, 100), 20, 200
BESIDE = ("k-means", "UMAP + mixture")


def thinned(y: np.ndarray, ratio: float, rng: np.random.Generator) -> np.ndarray:
    """Return the rows that are left when sizes of classes fall from 1 to 1 / ratio of the largest."""
    classes, sizes = np.unique(y, return_counts=True)
    shares = ratio ** -(rng.permutation(len(classes)) / (len(classes) - 1))
    largest = (sizes / shares).min()
    rows = [rng.choice(np.flatnonzero(y == c), max(2, round(largest * share)), replace=False)
            for c, share in zip(classes, shares, strict=True)]
    return np.sort(np.concatenate(rows))


def with_sizes(cost: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Assign rows at the least cost (n, k) so that clusters have about these sizes."""
    logits = -cost / max(np.quantile(cost - cost.min(1, keepdims=True), 0.5), 1e-12) * 20
    columns = np.zeros(cost.shape[1])
    for _ in range(SINKHORN):
        rows = -logsumexp(logits + columns, axis=1)
        columns = np.log(sizes) - logsumexp(logits + rows[:, None], axis=0)
    return (logits + columns).argmax(1)


def told(model: Reclust, X: Any, sizes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the better clustering of the network's embedding or probabilities with the true sizes."""
    found, k, z = np.bincount(model.labels_, minlength=len(sizes)), len(sizes), model.transform(X)
    in_order = np.empty(k)
    in_order[np.argsort(found)] = np.sort(sizes)
    by_probability = with_sizes(-np.log(model.predict_proba(X) + 1e-6), in_order)
    centers, labels = np.stack([z[model.labels_ == c].mean(0) if found[c] else z.mean(0) for c in range(k)]), model.labels_
    for _ in range(ROUNDS):
        distances = ((z[:, None] - centers) ** 2).sum(-1)
        labels = with_sizes(distances, in_order)
        centers = np.stack([z[labels == c].mean(0) if (labels == c).any() else centers[c] for c in range(k)])
    return max((by_probability, labels), key=partial(metrics.ari, y))


def score(y: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    labels = np.unique(labels, return_inverse=True)[1]
    mapped = np.array([np.bincount(y[labels == c]).argmax() for c in range(labels.max() + 1)])[labels]
    return {"ari": 100 * metrics.ari(y, labels), "recall": 100 * recall_score(y, mapped, average="macro")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("images", "texts", "tables"))
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--sets", nargs="+", default=["digits", "optdigits", "usps"])
    parser.add_argument("--rows", type=int, help="at most this number of samples of a set")
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--ratios", type=int, nargs="+", default=RATIOS)
    arguments = parser.parse_args()
    sets = {"tables": lambda: front_door.tables(arguments.data), "texts": lambda: front_door.texts(arguments.data),
            "images": lambda: front_door.images(arguments.data, arguments.sets, None)}[arguments.kind]()
    measured: dict[str, Any] = {}
    for name, X, classes in sets:
        y, rng = np.unique(classes, return_inverse=True)[1], np.random.default_rng(0)
        rows = rng.permutation(len(y))[:arguments.rows]
        X, y, k = X[rows], y[rows], len(np.unique(y))
        for ratio in arguments.ratios:
            some = thinned(y, ratio, np.random.default_rng(1))
            x, t = X[some], y[some]
            model = Reclust(k, effort=arguments.effort, random_state=0).fit(x)
            flat = x.reshape(len(x), -1).astype(np.float32)
            found = {"Reclust": score(t, model.labels_), "told": score(t, told(model, x, np.bincount(t, minlength=k), t))}
            for method in BESIDE:
                try:
                    found[method] = score(t, front_door.METHODS[method](flat, k, 0))
                except ImportError as error:
                    print(f"  {method}: left out. {error}")
            measured[f"{name}, 1:{ratio}"] = {"samples": len(x), "classes": k, "methods": found}
            print(f"{name}, 1:{ratio} ({len(x)}): " + ", ".join(
                f"{method} {s['ari']:.1f} (recall {s['recall']:.1f})" for method, s in found.items()), flush=True)
    print(f"record: {write_record(f'uneven_{arguments.kind}', vars(arguments) | {'data': None}, measured)}")


if __name__ == "__main__":
    main()
