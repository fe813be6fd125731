"""What measuring costs: distances, neighbors, agreement and norms of embeddings, beside scikit-learn on a part of them.

    python benchmarks/measures.py [--device cpu] [--rows 70000] [--dims 10]

70,000 × 10 embeddings should take less than a second and 1 GB on a GPU, all measures together. scikit-learn compares every
pair of samples for a silhouette and runs on the CPU; the part is small enough for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _records import best_times, status_gb, write_record
from sklearn.metrics import normalized_mutual_info_score, silhouette_samples
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from reclust import draws, geometry, metrics

CLASSES, NEIGHBORS, PART = 10, 10, 5_000
Measures = dict[str, Callable[[], object]]


def embedded(rows: int, dims: int, device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Samples of overlapping classes, the classes, their means, and the nearest mean of each sample."""
    key = draws.key(0)
    classes = draws.integers(draws.fold(key, "classes"), CLASSES, (rows,))
    means = 2 * draws.normal(draws.fold(key, "means"), (CLASSES, dims))
    z = means[classes] + draws.normal(draws.fold(key, "samples"), (rows, dims))
    found = torch.cat([torch.cdist(part, means).argmin(1) for part in z.split(10_000)])
    return z.to(device), classes.to(device), means.to(device), found.to(device)


def counted(one: Tensor, other: Tensor) -> np.ndarray:
    """How often labels occur together: counted on the device, as monitors do, with a score of the small table on the host."""
    return metrics.batched_contingency(one, other[None])[0].cpu().numpy()


def own_measures(z: Tensor, classes: Tensor, means: Tensor, found: Tensor) -> Measures:
    return {
        "class distances and silhouette, true labels": lambda: geometry.class_distances(z, classes),
        "class distances and silhouette, predicted labels": lambda: geometry.class_distances(z, found),
        "silhouette of squared distances": lambda: geometry.squared_silhouette(z, found),
        "distance ratios to centres": lambda: geometry.distance_ratio_histogram(z, means),
        "local purity": lambda: geometry.local_purity(z, classes, neighbors=NEIGHBORS),
        "ACC, NMI and ARI": lambda: metrics.scores_of_table(counted(classes, found)),
        "label change": lambda: 100 * (1 - metrics.nmi_of_table(counted(found, classes))),
        "cluster sizes": lambda: metrics.cluster_sizes(found, CLASSES),
        "norm of embeddings": lambda: z.norm(dim=-1).mean(-1),
    }


def peers(z: Tensor, classes: Tensor, means: Tensor, found: Tensor) -> Measures:
    """scikit-learn's way to some of the measures."""
    x, true, predicted = (part.cpu().numpy() for part in (z, classes, found))

    def purity() -> object:
        near = NearestNeighbors(n_neighbors=NEIGHBORS).fit(x).kneighbors(return_distance=False)
        return (true[near] == true[:, None]).mean(1)

    return {
        "class distances and silhouette, true labels": lambda: silhouette_samples(x, true, metric="cosine"),
        "class distances and silhouette, predicted labels": lambda: silhouette_samples(x, predicted, metric="cosine"),
        "silhouette of squared distances": lambda: silhouette_samples(x, predicted, metric="sqeuclidean"),
        "local purity": purity,
        "label change": lambda: normalized_mutual_info_score(predicted, true),
    }


def extra_gb(measure: Callable[[], object]) -> float:
    """What it takes of a GPU's memory at most, beyond what is held before it."""
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    measure()
    return (torch.cuda.max_memory_allocated() - held) / 1e9


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    options.add_argument("--rows", type=int, default=70_000)
    options.add_argument("--dims", type=int, default=10)
    arguments = options.parse_args()
    data = embedded(arguments.rows, arguments.dims, arguments.device)
    some = tuple(values if values is data[2] else values[:PART] for values in data)
    on_part, by_peer = own_measures(*some), peers(*some)
    measured: dict[str, Any] = {}
    for name, measure in own_measures(*data).items():
        measured[name] = seen = {"seconds": best_times(measure, repeats=5)[0]}
        if arguments.device == "cuda":
            seen["extra_gb"] = extra_gb(measure)
        print(name, seen, flush=True)
    peak = status_gb("VmHWM")
    for name, peer in by_peer.items():
        own, other = best_times(on_part[name], peer, repeats=5)
        measured[name] |= {"part_seconds": own, "part_scikit_learn_seconds": other}
    everything = {"rows": arguments.rows, "dims": arguments.dims, "part": PART, "process_peak_gb": peak, "measures": measured}
    print(f"record: {write_record(f'measures_{arguments.device}', {'classes': CLASSES, 'neighbors': NEIGHBORS}, everything)}")


if __name__ == "__main__":
    main()
