"""Simulated cells of eight types, 50 to 900 of each: counts of genes, log-normalized, 50 principal components; ARI and seconds.

    python benchmarks/cells.py [--draws 4]

Leiden (igraph) runs beside it on the graph of 15 nearest neighbors if igraph is installed, with its default resolution.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _records import write_record
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.neighbors import kneighbors_graph

from reclust import IDEC, Reclust, metrics, suggest_k

SIZES = (50, 100, 150, 250, 400, 500, 650, 900)
GENES, MARKERS, READS = 2_000, 60, 3_000


def draw(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Components and types of cells: each type has genes that it reads more or less often."""
    rng = np.random.default_rng(seed)
    types = rng.permutation(np.repeat(range(len(SIZES)), SIZES))
    change = np.ones((len(SIZES), GENES))
    for own in change:
        own[rng.choice(GENES, MARKERS, replace=False)] = rng.lognormal(1.2, 0.5, MARKERS)
    shares = rng.gamma(0.5, size=GENES) * change
    shares /= shares.sum(1, keepdims=True)
    counts = rng.poisson(shares[types] * READS * rng.lognormal(0, 0.3, (len(types), 1)))
    logs = np.log1p(counts / counts.sum(1, keepdims=True) * 1e4)
    return PCA(50, random_state=0).fit_transform(logs).astype(np.float32), types


def leiden(x: np.ndarray) -> np.ndarray:
    import igraph

    pairs = np.stack(kneighbors_graph(x, 15).nonzero(), 1)
    graph = igraph.Graph(len(x), pairs.tolist()).simplify()
    return np.array(graph.community_leiden("modularity", n_iterations=-1).membership)


METHODS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "k-means": lambda x, k: KMeans(k, n_init=10, random_state=0).fit_predict(x),
    "Leiden": lambda x, k: leiden(x),
    "Reclust": lambda x, k: Reclust(k, random_state=0).fit_predict(x),
    "Reclust, auto": lambda x, k: Reclust("auto", random_state=0).fit_predict(x),
    "IDEC": lambda x, k: IDEC(k, random_state=0).fit_predict(x),
    "IDEC, n_init=8": lambda x, k: IDEC(k, n_init=8, random_state=0).fit_predict(x),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4)
    measured: dict[str, Any] = {}
    for seed in range(draws := parser.parse_args().draws):
        x, types = draw(seed)
        found: dict[str, Any] = {}
        for name, method in METHODS.items():
            started = time.perf_counter()
            try:
                labels = method(x, len(SIZES))
            except ImportError as error:
                print(f"{name}: left out. {error}")
                continue
            found[name] = {"ari": 100 * metrics.ari(types, labels), "clusters": len(np.unique(labels)),
                           "seconds": time.perf_counter() - started}
        measured[f"draw {seed}"] = {"methods": found, "suggest_k": suggest_k(x).k}
        print(f"draw {seed}: suggest_k {measured[f'draw {seed}']['suggest_k']}, " + ", ".join(
            f"{name} {own['ari']:.1f} ({own['clusters']} clusters, {own['seconds']:.0f} s)" for name, own in found.items()), flush=True)
    settings = {"draws": draws, "sizes": SIZES, "genes": GENES, "markers": MARKERS, "reads": READS}
    print(f"record: {write_record('cells', settings, measured)}")


if __name__ == "__main__":
    main()
