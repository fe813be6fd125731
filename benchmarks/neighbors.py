"""Ten nearest neighbors of every row: exact, as `Neighbors` finds them, beside the approximate indexes of faiss and usearch.

    python benchmarks/neighbors.py mnist.npz fmnist.npz [--rows 10000 40000 140000]     needs faiss-cpu and usearch

The rows are leading principal components of images, shuffled.
Seconds include building the index. Recall is the share of the exact neighbors that an index finds, over 5,000 rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch
from _records import write_record
from usearch.index import Index

from reclust import geometry
from reclust.geometry import indexed_neighbors, nearest_neighbors

K, COMPONENTS, COMPARED = 10, 64, 5000


def exact(x: np.ndarray) -> np.ndarray:
    return nearest_neighbors(torch.from_numpy(x), K).numpy()


def hnsw(x: np.ndarray) -> np.ndarray:
    index = faiss.IndexHNSWFlat(x.shape[1], 16)
    index.hnsw.efConstruction, index.hnsw.efSearch = 60, 60
    index.add(x)
    return without_itself(index.search(x, K + 1)[1])


def ivf(x: np.ndarray) -> np.ndarray:
    return indexed_neighbors(torch.from_numpy(x), K).numpy()


def usearch(x: np.ndarray) -> np.ndarray:
    index = Index(ndim=x.shape[1], metric="l2sq", connectivity=16, expansion_add=60, expansion_search=60)
    index.add(np.arange(len(x)), x)
    return without_itself(index.search(x, K + 1).keys.astype(np.int64))


def without_itself(found: np.ndarray) -> np.ndarray:
    """Drop the row itself from the neighbors of each row, or the last one if it is not among them."""
    other = found != np.arange(len(found))[:, None]
    return np.stack([row[keep][:K] for row, keep in zip(found, other, strict=True)])


WAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exact": exact, "faiss HNSW": hnsw, "faiss IVF": ivf, "usearch HNSW": usearch}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, nargs="+")
    options.add_argument("--rows", type=int, nargs="+", default=[10_000, 40_000, 140_000])
    arguments = options.parse_args()
    faiss.omp_set_num_threads(torch.get_num_threads())
    geometry.INDEXED_ROWS = 10**9  # so that "exact" is exact
    parts = []
    for path in arguments.data:
        with np.load(path) as file:
            parts.append(file["images"].reshape(len(file["images"]), -1).astype(np.float32) / 255)
    x = np.random.default_rng(0).permutation(np.concatenate(parts))
    x = x @ np.linalg.eigh(np.cov(x[:5000], rowvar=False))[1][:, -COMPONENTS:].astype(np.float32)
    measured: dict[str, Any] = {}
    for n in arguments.rows:
        rows, truth = np.ascontiguousarray(x[:n]), None
        for name, find in WAYS.items():
            started = time.perf_counter()
            found = find(rows)
            seconds = time.perf_counter() - started
            truth = found[:COMPARED] if truth is None else truth
            recall = np.mean([len(np.intersect1d(*both)) for both in zip(found[:COMPARED], truth, strict=True)]) / K
            measured[f"{n} rows, {name}"] = {"seconds": seconds, "recall": float(recall)}
            print(f"{n} rows, {name}: {seconds:.1f} s, recall {recall:.3f}", flush=True)
    print(f"record: {write_record('neighbors', {'rows': arguments.rows, 'neighbors': K, 'components': COMPONENTS}, measured)}")


if __name__ == "__main__":
    main()
