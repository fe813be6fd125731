"""Monitors of r replicas: n embeddings of size d, k centers, and weights, around each reset."""

from collections.abc import Collection, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ... import draws, geometry, metrics
from ...interventions import KMeans
from ...utils.values import check_int
from .base import Measured, PeriodicMonitor, Snapshot, evenly_spread
from .evaluation import Labels, TrueLabels, scores_of

CHUNK = 10**6  # embeddings, over all replicas, between which distances are computed at once


class Distances(PeriodicMonitor):
    """Mean cosine distances within and between known and predicted classes, and mean silhouette."""

    def __init__(self, y: Labels | None = None, *, every: int | None = 1) -> None:
        super().__init__(every=every)
        self._truth = None if y is None else TrueLabels(y)

    def measure(self, snapshot: Snapshot) -> Measured:
        z, labels = snapshot.embeddings, snapshot.labels
        measured = _distances(z, labels, "_predicted")
        if self._truth is not None:
            truth = self._truth.on(labels.device, labels.shape[-1])
            measured |= _distances(z, truth.expand(labels.shape), "")
        return measured


def _distances(z: Tensor, labels: Tensor, suffix: str) -> dict[str, Tensor]:
    some = max(1, CHUNK // labels[0].numel())
    parts = list(map(geometry.class_distances, z.split(some), labels.split(some)))
    names = ("intra_class_distance", "inter_class_distance", "silhouette")
    return {name + suffix: torch.cat([values.mean(-1) for values in column])
            for name, column in zip(names, zip(*parts, strict=True), strict=True)}


class DistanceRatios(PeriodicMonitor):
    """Distance ratios between the two nearest centers: histogram, (r, bins), mean and range."""

    def __init__(self, *, bins: int = 20, every: int | None = 1) -> None:
        super().__init__(every=every)
        self.bins = check_int("bins", bins, 1)

    def measure(self, snapshot: Snapshot) -> Measured:
        z, centers = snapshot.embeddings, _centers(snapshot)
        ratio = geometry.distance_ratio(z, centers)
        return {"distance_ratio_histogram": geometry.distance_ratio_histogram(
                    z, centers, bins=self.bins),
                "distance_ratio_mean": ratio.mean(-1), "distance_ratio_std": ratio.std(-1),
                "distance_ratio_min": ratio.amin(-1), "distance_ratio_max": ratio.amax(-1)}


class Purity(PeriodicMonitor):
    """Mean share of nearest neighbors with the same label, among at most `limit` samples.

    Beside it the share of the commonest label among 10 and 100 samples, the sample included.
    """

    def __init__(self, y: Labels, *, neighbors: int = 10, limit: int = 10_000,
                 every: int | None = 1) -> None:
        super().__init__(every=every)
        self._truth = TrueLabels(y)
        self.neighbors = check_int("neighbors", neighbors, 1)
        self.limit = check_int("limit", limit, 2)

    def measure(self, snapshot: Snapshot) -> Measured:
        z = snapshot.embeddings
        truth = self._truth.on(z.device, z.shape[1])
        rows = evenly_spread(len(truth), self.limit, z.device)
        majority = {f"majority_share_{samples}": partial(geometry.majority_share, samples=samples)
                    for samples in (10, 100)}
        purity = partial(geometry.local_purity, neighbors=self.neighbors)
        return {name: torch.stack([share(x, truth[rows]).mean() for x in z[:, rows]])
                for name, share in ({"local_purity": purity} | majority).items()}


class Norms(PeriodicMonitor):
    """Mean norms of embeddings and centers, and the norm of all weights."""

    def measure(self, snapshot: Snapshot) -> Measured:
        weights = [stacked.flatten(1).norm(dim=1) for stacked in snapshot.parameters.values()]
        return {"embedding_norm": snapshot.embeddings.norm(dim=-1).mean(-1),
                "center_norm": _centers(snapshot).norm(dim=-1).mean(-1),
                "parameter_norm": torch.stack(weights).norm(dim=0)}


class GradientNorms:
    """Make training record l0 and l1 norms of the network's gradients, mean over an epoch."""

    def __call__(self, snapshot: Snapshot) -> None:
        """Measure nothing: steps of training do."""


class ReconstructionLoss(PeriodicMonitor):
    """Representation loss of all clean samples."""

    def measure(self, snapshot: Snapshot) -> Measured:
        assert snapshot.representation_loss is not None
        return {"reconstruction_loss": snapshot.representation_loss()}


class Sizes(PeriodicMonitor):
    """Cluster sizes, (r, k), and number of empty clusters."""

    def measure(self, snapshot: Snapshot) -> Measured:
        sizes = metrics.cluster_sizes(snapshot.labels, _centers(snapshot).shape[-2])
        return {"cluster_sizes": sizes, "empty_clusters": (sizes == 0).sum(-1)}


class EmbeddingRows(PeriodicMonitor):
    """Embeddings of some rows, and centers, at `epochs` (-1: start) or around interventions."""

    def __init__(self, rows: Sequence[int] | np.ndarray | range, *,
                 epochs: Collection[int] | None = None) -> None:
        super().__init__(every=None)
        self._rows = torch.as_tensor(np.asarray(rows), dtype=torch.int64)
        self._epochs = None if epochs is None else frozenset(epochs)

    def due(self, snapshot: Snapshot) -> bool:
        return super().due(snapshot) if self._epochs is None else snapshot.epoch in self._epochs

    def measure(self, snapshot: Snapshot) -> Measured:
        chosen = snapshot.embeddings[:, self._rows.to(snapshot.embeddings.device)]
        return {"embedding": chosen.float(), "centers": _centers(snapshot).float()}


class AtEnd(PeriodicMonitor):
    """Base of monitors that measure once, after the last epoch."""

    def due(self, snapshot: Snapshot) -> bool:
        return snapshot.moment == "epoch" and snapshot.epoch == snapshot.epochs - 1


class FinalKMeans(AtEnd):
    """Scores of k-means on the embeddings at the end, beside those of the nearest center."""

    def __init__(self, y: Labels) -> None:
        super().__init__()
        self._truth = TrueLabels(y)

    def measure(self, snapshot: Snapshot) -> Measured:
        z, k = snapshot.embeddings.nan_to_num(), _centers(snapshot).shape[-2]
        labels = KMeans().fit(z, k, draws.key([0] * len(z), device=z.device)).labels
        scores = scores_of(self._truth.on(z.device, z.shape[1]), labels)
        return {f"kmeans_{name}": values for name, values in scores.items()}


class Extremes(AtEnd):
    """Rows nearest to and farthest from their center at the end, (r, k, 8), -1 for none."""

    def measure(self, snapshot: Snapshot) -> Measured:
        nearest, farthest = geometry.extremes(snapshot.embeddings, snapshot.labels,
                                              _centers(snapshot), count=8)
        return {"nearest": nearest, "farthest": farthest}


def _centers(snapshot: Snapshot) -> Tensor:
    assert snapshot.centers is not None  # only clustering is measured
    return snapshot.centers
