"""`Reclust` beside the methods people use, on labeled data that only score: accuracy, NMI, ARI and seconds.

    pip install umap-learn evoc            methods that are not installed are left out
    python benchmarks/front_door.py tables tables.npz           X and y of each table as NAME/X, NAME/y; standardized for the others
    python benchmarks/front_door.py tables FOLDER               NAME.csv of each table, classes in the last column
    python benchmarks/front_door.py texts FOLDER                NAME.npz of each set, with unit-length embeddings E and classes y
    python benchmarks/front_door.py images FOLDER --sets usps   NAME.npz of each set, with images and labels; "digits" is scikit-learn's
    python benchmarks/front_door.py speed                       random rows: 1,000 x 20 and 20,000 x 384

Nothing is set for `Reclust` but the number of clusters and the seed. HDBSCAN and EVoC find the number of clusters themselves, and
their noise counts as one more cluster.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _records import write_record
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.datasets import load_digits, make_blobs
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from reclust import Reclust, metrics

Method = Callable[[np.ndarray, int, int], np.ndarray]  # rows (n, d), number of clusters, seed -> labels (n,)
MEASURES = {"acc": metrics.accuracy, "nmi": metrics.nmi, "ari": metrics.ari}
MAX_ROWS = 5_000  # of a table
KMEANS_SEEDS = 10


def kmeans(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    return KMeans(k, n_init=10, random_state=seed).fit_predict(X)


def spectral(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    model = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=min(10, len(X) - 1), random_state=seed)
    return model.fit_predict(X)


def mixture(X: np.ndarray, k: int, seed: int, covariance: str = "full") -> np.ndarray:
    return GaussianMixture(k, covariance_type=covariance, n_init=5, reg_covar=1e-3, random_state=seed).fit_predict(X)


def umap(X: np.ndarray, seed: int) -> np.ndarray:
    from umap import UMAP

    reducer = UMAP(n_neighbors=20, n_components=min(10, X.shape[1]), min_dist=0.0, random_state=seed, n_jobs=1)
    return reducer.fit_transform(X)


def evoc(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from evoc import EVoC

    return EVoC(random_state=seed).fit_predict(X)


METHODS: dict[str, Method] = {
    "k-means": kmeans,
    "mixture, full": mixture,
    "mixture, diagonal": lambda X, k, seed: mixture(X, k, seed, "diag"),
    "spectral": spectral,
    "UMAP + k-means": lambda X, k, seed: kmeans(umap(X, seed), k, seed),
    "UMAP + mixture": lambda X, k, seed: mixture(umap(X, seed), k, seed),
    "UMAP + HDBSCAN": lambda X, k, seed: HDBSCAN(min_cluster_size=15).fit_predict(umap(X, seed)),
    "EVoC": evoc,
}
BESIDE = {
    "tables": ("k-means", "mixture, full", "mixture, diagonal", "spectral", "UMAP + mixture", "UMAP + HDBSCAN"),
    "texts": ("k-means", "mixture, diagonal", "spectral", "UMAP + k-means", "UMAP + mixture", "UMAP + HDBSCAN", "EVoC"),
    "images": ("k-means", "UMAP + mixture"),
    "speed": ("k-means", "UMAP + HDBSCAN"),
}


def tables(path: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    if path.is_dir():
        files = {file.stem: np.loadtxt(file, delimiter=",", skiprows=1) for file in path.glob("*.csv")}
        stored = {name: (rows[:, :-1], rows[:, -1].astype(int)) for name, rows in files.items()}
    else:
        file = np.load(path)
        stored = {name: (file[f"{name}/X"], file[f"{name}/y"]) for name in {key.split("/")[0] for key in file}}
    rng = np.random.default_rng(0)
    for name, (X, y) in sorted(stored.items()):
        rows = np.sort(rng.permutation(len(X))[:MAX_ROWS])
        yield name, X[rows], y[rows]


def texts(folder: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for path in sorted(folder.glob("*.npz")):
        stored = np.load(path)
        yield path.stem, stored["E"], stored["y"]


def images(folder: Path, sets: list[str], most: int | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for name in sets:
        if name == "digits":
            X, y = load_digits().images, load_digits().target
        else:
            stored = np.load(folder / f"{name}.npz")
            X, y = stored["images"], stored["labels"]
        rows = np.sort(np.random.default_rng(0).permutation(len(X))[:most])
        yield name, X[rows], y[rows]


def random_rows() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for rows, features, clusters in ((1_000, 20, 10), (20_000, 384, 20)):
        X, y = make_blobs(rows, features, centers=clusters, cluster_std=6.0, random_state=0)
        yield f"{rows:,} x {features}", X.astype(np.float32), y


def timed(method: Callable[[], np.ndarray], y: np.ndarray) -> dict[str, float]:
    started = time.perf_counter()
    labels = method()
    seconds = time.perf_counter() - started
    labels = np.unique(labels, return_inverse=True)[1]
    return {**{name: 100 * float(measure(y, labels)) for name, measure in MEASURES.items()}, "seconds": seconds}


def mean_of(runs: list[dict[str, float]]) -> dict[str, Any]:
    each = {name: [run[name] for run in runs] for name in runs[0]}
    return {**{name: float(np.mean(numbers)) for name, numbers in each.items()}, "each": each["acc"]}


def ours(X: np.ndarray, y: np.ndarray, k: int, effort: str, repetitions: int) -> dict[str, Any]:
    runs, agreement = [], []
    for seed in range(repetitions):
        model = Reclust(k, effort=effort, random_state=seed)
        runs.append(timed(partial(model.fit_predict, X), y))
        agreement.append(model.agreement_)
    return {**mean_of(runs), "agreement": float(np.mean(agreement))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=list(BESIDE))
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--sets", nargs="+", default=["digits", "optdigits", "usps"])
    parser.add_argument("--rows", type=int, help="at most this number of images of a set")
    parser.add_argument("--efforts", nargs="+", default=["normal"])
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--only-ours", action="store_true")
    parser.add_argument("--record", help="name of the record, front_door_KIND by default")
    arguments = parser.parse_args()
    sets = {"tables": lambda: tables(arguments.data), "texts": lambda: texts(arguments.data), "speed": random_rows,
            "images": lambda: images(arguments.data, arguments.sets, arguments.rows)}[arguments.kind]()
    beside = () if arguments.only_ours else BESIDE[arguments.kind]
    measured: dict[str, Any] = {}
    for name, X, y in sets:
        k = len(np.unique(y))
        flat = X.reshape(len(X), -1).astype(np.float32)
        rows = StandardScaler().fit_transform(flat) if arguments.kind == "tables" else flat
        found = {f"Reclust, {effort}": ours(X, y, k, effort, arguments.repetitions) for effort in arguments.efforts}
        for method in beside:
            seeds = range(KMEANS_SEEDS if method == "k-means" and arguments.kind != "speed" else 1)
            try:
                found[method] = mean_of([timed(partial(METHODS[method], rows, k, seed), y) for seed in seeds])
            except (ImportError, ValueError, np.linalg.LinAlgError) as error:
                print(f"  {method}: left out. {error}")
        measured[name] = {"samples": len(X), "features": flat.shape[1], "classes": k, "methods": found}
        print(f"{name} ({len(X)} x {flat.shape[1]}, {k}): " + ", ".join(
            f"{method} {seen['acc']:.1f} ({seen['seconds']:.1f} s)" for method, seen in found.items()), flush=True)
    for method in dict.fromkeys(method for seen in measured.values() for method in seen["methods"]):
        rows = [seen["methods"][method] for seen in measured.values() if method in seen["methods"]]
        print(f"{method:20}" + "".join(f"{np.mean([row[name] for row in rows]):8.1f}" for name in (*MEASURES, "seconds")) +
              (f"   of {len(rows)} sets" if len(rows) < len(measured) else ""))
    settings = {"repetitions": arguments.repetitions, "rows": arguments.rows or (MAX_ROWS if arguments.kind == "tables" else None),
                "kmeans_seeds": KMEANS_SEEDS}
    print(f"record: {write_record(arguments.record or f'front_door_{arguments.kind}', settings, measured)}")


if __name__ == "__main__":
    main()
