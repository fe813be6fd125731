"""Members of an ensemble: clusterings of the same samples by different methods and seeds."""

import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, nan
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from .. import draws
from ..data.augmentation.affine import Augmentation
from ..data.encoding import Feature
from ..data.inputs import Inputs, ResidentInputs
from ..interventions import Recluster
from ..interventions.reclustering.kmeans import KMeans
from ..interventions.reclustering.mixture import GaussianMixture
from ..objectives import DECObjective
from ..representations import Neighbors
from ..training.checkpoint import Checkpoint
from ..training.monitors.base import Monitor
from ..training.result import Result
from ..training.settings import Execution, Schedule, Settings, View
from ..training.train import train
from .merging import even_or_merged
from .selection import Candidates, Selector, better_half
from .views import principal_components, scaled_views

MAX_ITER = 60  # of mixtures of numbers and categories
REGULARIZATION = 0.2  # added to variances, since many columns hold few distinct numbers
PRIOR = 2.0  # rows like the whole table that are added to each cluster's categories
COLUMNS, MIXED_COLUMNS = 20, 30  # principal components, for covariances or variances alone
MIXTURE = GaussianMixture(1, regularization=1e-2, max_iter=60)


@dataclass(frozen=True)
class Member:
    """Labels (n,) by one method with one seed.

    score: adjusted Rand index with the consensus, once there is one; before, label-free or NaN.
    """

    method: str
    view: str
    seed: int
    labels: np.ndarray
    score: float = nan
    failed: ClassVar[None] = None

    @property
    def name(self) -> str:
        return f"{self.method}, {self.view}"


@dataclass(frozen=True)
class MemberTraining:
    """How the networks of an ensemble train; they share its time budget, which starts now."""

    n_clusters: int
    execution: Execution
    device: torch.device
    checkpoint: Checkpoint | None = None
    monitors: Sequence[Monitor] = ()
    started: float = field(default_factory=time.monotonic)


def kmeans_members(x: Tensor, view: str, k: int, seeds: Sequence[int]) -> Iterator[Member]:
    """Cluster rows (n, d) with k-means."""
    for seed in seeds:
        labels = KMeans().fit(x, k, draws.key(seed, device=x.device)).labels
        yield Member("k-means", view, seed, labels.cpu().numpy())


def mixture_members(views: Mapping[str, np.ndarray], k: int, seeds: Sequence[int],
                    device: torch.device, starts: int = 1) -> Iterator[Member]:
    """Cluster every view (n, d) with Gaussian mixtures."""
    x = torch.from_numpy(np.stack([principal_components(view, COLUMNS)
                                   for view in views.values()])).to(device)
    mixture = replace(MIXTURE, starts=starts)
    for seed in seeds:
        found = mixture.labels(x, k, draws.key([seed] * len(x), device=device))
        labels, likelihood = (tensor[:, 0].cpu().numpy() for tensor in found)
        for name, own, score in zip(views, labels, likelihood.tolist(), strict=True):
            yield Member("mixture", name, seed, own, score)


def mixed_type_members(rows: np.ndarray, features: Sequence[Feature], views: Mapping[str, Tensor],
                       k: int, seeds: Sequence[int]) -> Iterator[Member]:
    """Cluster numbers and categories (n, d) with mixtures that start from k-means in each view."""
    kinds = np.array([feature.kind for feature in features])
    flags, discrete = rows[:, kinds == "flag"], np.isin(kinds, ("flag", "level"))
    levels = np.concatenate([rows[:, discrete], 1 - flags], 1)
    scales = np.array([feature.scale for feature in features])[~discrete]
    numbers = scaled_views(rows[:, ~discrete], scales)
    for name, view in views.items():
        z = principal_components(numbers[name], MIXED_COLUMNS)
        for seed in seeds:
            start = KMeans().fit(view, k, draws.key(seed, device=view.device)).labels.cpu().numpy()
            labels = mixed_type_mixture(z, levels, start, k)
            yield Member("mixture of numbers and categories", name, seed, labels)


def mixed_type_mixture(z: np.ndarray, levels: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Refine labels (n,) by EM: Gaussians of diagonal covariance times independent categories.

    z (n, p): scaled numbers; levels (n, q): 0/1 columns, which sum to 1 in each category.
    """
    n, share = len(labels), np.eye(k)[labels] * 0.9 + 0.1 / k
    typical = levels.mean(0)
    for _ in range(MAX_ITER):
        size = share.sum(0)[:, None]
        mean = share.T @ z / size
        variance = np.maximum(share.T @ np.square(z) / size - mean**2, 0) + REGULARIZATION
        probability = (share.T @ levels + PRIOR * typical) / (size + PRIOR) + 1e-9
        # Of log((z - mean)² / variance) only sums over columns are needed, as products of matrices.
        distance = (np.square(z) @ (1 / variance).T - 2 * z @ (mean / variance).T
                    + (mean**2 / variance).sum(1))
        logits = (np.log(size[:, 0] / n) - (distance + np.log(variance).sum(1)) / 2
                  + levels @ np.log(probability).T)
        before, share = share, np.exp(logits - logits.max(1, keepdims=True))
        share /= share.sum(1, keepdims=True)
        if np.abs(share - before).max() < 1e-3:
            break
    return share.argmax(1)


def trained_members(inputs: Inputs, settings: Settings, seeds: Sequence[int], method: str,
                    view: str, training: MemberTraining, select: Selector | None = None, *,
                    uneven: bool = False) -> Iterator[Member]:
    """Train replicas side by side; those that fail are left out.

    With `uneven`, parts of the embeddings are merged where k-means divides a large group.
    """
    result = _train(inputs, settings, seeds, f"{method}, {view}", training)
    assert result.labels is not None
    living = result.living
    labels = result.labels[living]
    if uneven:
        found = Candidates(result, inputs, limit=inputs.n_samples)
        order = found.rows.argsort()
        labels = even_or_merged(labels, [z[order] for z in found.embeddings.values()],
                                settings.n_clusters, [seeds[replica] for replica in living])
    scores = [nan] * len(seeds) if select is None else select(Candidates(result, inputs)).tolist()
    for replica, own in zip(living, labels, strict=True):
        yield Member(method, view, seeds[replica], own, scores[replica])


def embedding_members(x: Tensor, neighbors: Tensor, settings: Settings, seeds: Sequence[int],
                      view: str, training: MemberTraining) -> Iterator[Member]:
    """Cluster the embeddings of neighbor networks, averaged with the neighbors (n, m) in x."""
    method = "neighbor network, cosine kernel"
    result = _train(ResidentInputs(x), replace(settings, clustering=None), seeds,
                    f"{method}, {view}", training)
    for replica in result.living:
        key = draws.key(seeds[replica], device=x.device)
        z = averaged_embedding(result, replica, x, neighbors)
        labels = KMeans(n_init=3).fit(z, settings.n_clusters, key).labels
        yield Member(method, view, seeds[replica], labels.cpu().numpy())


def averaged_embedding(result: Result, replica: int, x: Tensor, neighbors: Tensor) -> Tensor:
    """Embed samples on the unit sphere, averaged with their neighbors (n, m)."""
    model = result.model(replica).to(x.device, x.dtype)
    return averaged(normalize(model.embed(x), dim=1), neighbors)


def averaged(x: Tensor, neighbors: Tensor) -> Tensor:
    """Average rows (n, d) with their neighbors (n, m), twice, and give them length 1."""
    for _ in range(2):
        x = torch.cat([x.unsqueeze(1), x[neighbors]], 1).mean(1)
    return normalize(x, dim=1)


def _train(inputs: Inputs, settings: Settings, seeds: Sequence[int], name: str,
           training: MemberTraining) -> Result:
    checkpoint = training.checkpoint and training.checkpoint.named(
        f"member{zlib.crc32(name.encode())}")
    return train(inputs, settings, seeds=seeds, checkpoint=checkpoint,
                 execution=training.execution.with_time_left(training.started),
                 monitors=training.monitors)


def voters(members: Iterable[Member]) -> list[Member]:
    """Return the better half of each method's members, or all of them if they have no scores."""
    methods: dict[str, list[Member]] = {}
    for member in members:
        methods.setdefault(member.name, []).append(member)
    return [member for group in methods.values() for member in better_half(group)]


def neighbor_settings(network: Neighbors, n_clusters: int, n_samples: int, *, steps: int,
                      batch_size: int = 256, neighbors: int = 10, lr: float = 2e-3,
                      augment: Augmentation | None = None) -> Settings:
    """Train a neighbor network for about `steps` steps, then cluster its embedding by k-means."""
    batch_size = min(batch_size, n_samples)
    first: View = "clean" if augment is None else "augmented"
    training = Schedule(epochs=ceil(steps / (n_samples // batch_size)), lr=lr,
                        batch_size=batch_size, views=(first, "neighbor"), clip_norm=None,
                        weight_decay=1e-4, decay="cosine", neighbors=neighbors)
    return Settings(n_clusters, DECObjective(), network, pretraining=training,
                    clustering=Schedule(epochs=0, views=("clean",)), augment=augment,
                    first_centers=Recluster(KMeans(n_init=3), subsample=None))
