"""`Reclust("auto")` beside methods that find the number of clusters, on labeled data that only score: ARI, number and seconds.

    pip install umap-learn evoc            methods that are not installed are left out
    python benchmarks/unknown_k.py tables tables.npz            data as in front_door.py
    python benchmarks/unknown_k.py texts FOLDER
    python benchmarks/unknown_k.py images FOLDER --sets digits usps --rows 10000

Every method has its defaults. Noise of HDBSCAN and EVoC counts as one more cluster in the index, not in the number. Sweeps try 2 to 20
clusters on at most 50 principal components.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import front_door
import numpy as np
from _records import write_record
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from reclust import Reclust, metrics

SWEEP, COMPONENTS, SILHOUETTE_ROWS = range(2, 21), 50, 2_000


def reduced(X: np.ndarray) -> np.ndarray:
    most = min(COMPONENTS, *X.shape)
    return PCA(most, random_state=0).fit_transform(X) if X.shape[1] > most else X


def by_bic(X: np.ndarray) -> np.ndarray:
    x = reduced(X)
    models = [GaussianMixture(k, reg_covar=1e-3, random_state=0).fit(x) for k in range(1, 21) if k < len(x)]
    return min(models, key=lambda model: model.bic(x)).predict(x)


def by_silhouette(X: np.ndarray) -> np.ndarray:
    x = reduced(X)
    labels = [KMeans(k, n_init=10, random_state=0).fit_predict(x) for k in SWEEP if k < len(x)]
    some = min(SILHOUETTE_ROWS, len(x))
    return max(labels, key=lambda found: silhouette_score(x, found, sample_size=some, random_state=0))


METHODS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "HDBSCAN": lambda X: HDBSCAN(copy=True).fit_predict(X),
    "UMAP + HDBSCAN": lambda X: front_door.METHODS["UMAP + HDBSCAN"](X, 0, 0),
    "EVoC": lambda X: front_door.evoc(X, 0, 0),
    "mixtures, BIC": by_bic,
    "k-means, silhouette": by_silhouette,
}


def scored(method: Callable[[], np.ndarray], y: np.ndarray) -> dict[str, float]:
    started = time.perf_counter()
    labels = method()
    found = int(len(np.unique(labels[labels >= 0])))
    seconds, k = time.perf_counter() - started, len(np.unique(y))
    return {"ari": 100 * metrics.ari(y, np.unique(labels, return_inverse=True)[1]), "k": found, "error": abs(found - k) / k,
            "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("tables", "texts", "images"))
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--sets", nargs="+", default=["digits", "optdigits", "usps", "mnist", "gtsrb"])
    parser.add_argument("--rows", type=int, help="at most this number of images of a set")
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--only-ours", action="store_true")
    arguments = parser.parse_args()
    sets = {"tables": lambda: front_door.tables(arguments.data), "texts": lambda: front_door.texts(arguments.data),
            "images": lambda: front_door.images(arguments.data, arguments.sets, arguments.rows)}[arguments.kind]()
    settings = {"effort": arguments.effort, "rows": arguments.rows}
    measured: dict[str, Any] = {}
    for name, X, y in sets:
        flat = X.reshape(len(X), -1).astype(np.float32)
        rows = StandardScaler().fit_transform(flat) if arguments.kind == "tables" else flat
        found = {"Reclust": scored(partial(Reclust("auto", effort=arguments.effort, random_state=0).fit_predict, X), y)}
        for method, function in {} if arguments.only_ours else METHODS.items():
            try:
                found[method] = scored(partial(function, rows), y)
            except (ImportError, ValueError, np.linalg.LinAlgError) as error:
                print(f"  {method}: left out. {error}")
        measured[name] = {"samples": len(X), "features": flat.shape[1], "classes": len(np.unique(y)), "methods": found}
        print(f"{name} ({len(X)} x {flat.shape[1]}, {len(np.unique(y))}): " + ", ".join(
            f"{method} {seen['ari']:.1f} (k {seen['k']}, {seen['seconds']:.0f} s)" for method, seen in found.items()), flush=True)
        path = write_record(f"unknown_k_{arguments.kind}", settings, measured)  # so that a run can be stopped
    for method in ("Reclust", *METHODS):
        runs = [seen["methods"][method] for seen in measured.values() if method in seen["methods"]]
        if runs:
            print(f"{method:20} ARI {np.mean([run['ari'] for run in runs]):5.1f}, median error of k "
                  f"{np.median([run['error'] for run in runs]):.2f}, {len(runs)} sets")
    print(f"record: {path}")


if __name__ == "__main__":
    main()
