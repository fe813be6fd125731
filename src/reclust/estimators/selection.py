"""Choosing among replicas without labels: scores, of which the highest wins, and a vote."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from .. import draws, metrics
from ..data.augmentation.affine import Augmentation, perturbation_of
from ..data.inputs import Inputs
from ..geometry import class_distances, squared_silhouette
from ..training.result import Model, Result
from ..utils.values import choice, integer, value

CHUNK = 4096


@dataclass(frozen=True)
class Candidates:
    """Trained replicas and their samples, of which the same m <= limit are used for each replica.

    Row numbers (m,), and embeddings (m, d) and labels (m,) of each replica that did not fail, are
    cached, so that several scores share them.
    """

    result: Result
    inputs: Inputs
    limit: int = 10_000

    @cached_property
    def rows(self) -> Tensor:
        key = draws.fold(draws.key(0, device=self.inputs.device), "selection")
        return draws.permutation(key, self.inputs.n_samples)[: self.limit]

    @cached_property
    def models(self) -> dict[int, Model]:
        """Replicas that did not fail, on the device and in the precision of the samples."""
        device, dtype = self.inputs.device, self.inputs.take(self.rows[:1]).dtype
        return {i: self.result.model(i).to(device, dtype) for i in self.result.living}

    @cached_property
    def embeddings(self) -> dict[int, Tensor]:
        return self._embed(self.inputs.take)

    @cached_property
    def labels(self) -> dict[int, Tensor]:
        return self._assign(self.embeddings)

    def perturbed(self, augment: Augmentation, key: Tensor, repeat: int) -> dict[int, Tensor]:
        """Return the labels (m,) of one random view of each sample for each replica."""
        return self._assign(self._embed(
            lambda rows: augment(self.inputs.take(rows), draws.fold(key, rows, repeat))))

    def scores(self, score: Callable[[int], Tensor | float]) -> Tensor:
        """Apply `score` to each replica; failed ones get minus infinity."""
        scores = torch.full((len(self.result),), -torch.inf)
        for replica in self.result.living:
            scores[replica] = score(replica)
        return scores

    def _embed(self, take: Callable[[Tensor], Tensor]) -> dict[int, Tensor]:
        parts: dict[int, list[Tensor]] = {replica: [] for replica in self.models}
        for rows in self.rows.split(CHUNK):
            x = self.inputs.normalize(take(rows))
            for replica, model in self.models.items():
                parts[replica].append(model.embed(x))
        return {replica: torch.cat(part) for replica, part in parts.items()}

    def _assign(self, embeddings: Mapping[int, Tensor]) -> dict[int, Tensor]:
        return {replica: self.models[replica].assign(z) for replica, z in embeddings.items()}


class Selector(Protocol):
    """A label-free score of replicas."""

    def __call__(self, candidates: Candidates) -> Tensor:
        """Return one score per replica, (r,); higher is better, minus infinity for failed ones."""
        ...


def choose_replica(result: Result, inputs: Inputs, select: Selector) -> tuple[list[float], int]:
    """Return the score of each replica, and the replica to keep."""
    if len(result) == 1:
        return [math.nan], 0
    without_labels = replace(result, history={})
    scores = torch.as_tensor(select(Candidates(without_labels, inputs)), dtype=torch.float64)
    listed = scores.masked_fill(scores.isnan(), -torch.inf).tolist()
    return listed, max(result.living, key=lambda replica: listed[replica])


@dataclass(frozen=True)
class _UnderPerturbation:
    """Compare samples with `repeats` random views of them.

    augment: None is the augmentation of training; without one, affine maps or noise.
    """

    augment: Augmentation | None = None
    repeats: int = integer(default=3, least=1)
    seed: int = 0

    def pairs(self, candidates: Candidates) -> dict[int, tuple[Tensor, Tensor]]:
        """Return the labels of samples and of their views, (repeats × m,), for each replica."""
        trained = candidates.result.settings[0].augment
        augment = self.augment or trained or perturbation_of(candidates.inputs.sample_shape)
        key = draws.fold(draws.key(self.seed, device=candidates.inputs.device), "consistency")
        views = [candidates.perturbed(augment, key, repeat) for repeat in range(self.repeats)]
        return {replica: (own.repeat(self.repeats), torch.cat([view[replica] for view in views]))
                for replica, own in candidates.labels.items()}


@value
class Consistency(_UnderPerturbation):
    """Share of samples whose cluster stays the same under a random augmentation.

    Augmented samples cross borders inside a class. But a single cluster that contains everything is
    consistent, too: see `SharedInformation`.
    """

    def __call__(self, candidates: Candidates) -> Tensor:
        pairs = self.pairs(candidates)
        return candidates.scores(
            lambda replica: (pairs[replica][0] == pairs[replica][1]).float().mean())


@value
class SharedInformation(_UnderPerturbation):
    """Mutual information of the clusters of samples and of their views, relative to log(k).

    1 for clusters of equal size that every view keeps, 0 for random labels and for one cluster that
    contains everything. Prefers equal sizes: for very unequal classes use `Consistency`.
    """

    def __call__(self, candidates: Candidates) -> Tensor:
        pairs, k = self.pairs(candidates), candidates.result.n_clusters

        def score(replica: int) -> float:
            own, view = pairs[replica]
            table = metrics.batched_contingency(own, view[None], k, k)[0]
            return metrics.information_of_table(table.cpu().numpy()) / math.log(max(k, 2))

        return candidates.scores(score)


@value
class Compactness:
    """One minus the share of the embeddings' variance that is within clusters."""

    def __call__(self, candidates: Candidates) -> Tensor:
        def score(replica: int) -> Tensor:
            z, centers = candidates.embeddings[replica], candidates.models[replica].state["centers"]
            within = (z - centers[candidates.labels[replica]]).pow(2).sum()
            return 1 - within / (z - z.mean(0)).pow(2).sum().clamp(min=torch.finfo(z.dtype).tiny)

        return candidates.scores(score)


@value
class Silhouette:
    """Mean silhouette in the embedding, by "squared" Euclidean or "cosine" distance."""

    distance: Literal["squared", "cosine"] = choice("squared", "cosine", default="squared")

    def __call__(self, candidates: Candidates) -> Tensor:
        def score(replica: int) -> Tensor:
            z, labels = candidates.embeddings[replica], candidates.labels[replica]
            each = (squared_silhouette(z, labels) if self.distance == "squared"
                    else class_distances(z, labels).silhouette)
            return each.mean().nan_to_num(0.0)

        return candidates.scores(score)


@value
class Agreement:
    """Mean NMI with the other replicas. It keeps a mistake that most replicas make."""

    def __call__(self, candidates: Candidates) -> Tensor:
        living, k = candidates.result.living, candidates.result.n_clusters
        labels = torch.stack([candidates.labels[replica] for replica in living])

        def score(replica: int) -> float:
            tables = metrics.batched_contingency(candidates.labels[replica], labels, k, k)
            others = [metrics.nmi_of_table(table.cpu().numpy())
                      for other, table in zip(living, tables, strict=True) if other != replica]
            return sum(others) / max(1, len(others))

        return candidates.scores(score)


@value
class SizeEntropy:
    """Entropy of the cluster sizes, relative to that of k equal ones."""

    def __call__(self, candidates: Candidates) -> Tensor:
        k = candidates.result.n_clusters

        def score(replica: int) -> Tensor:
            shares = metrics.cluster_sizes(candidates.labels[replica], k) / len(candidates.rows)
            return torch.special.entr(shares).sum() / math.log(max(k, 2))

        return candidates.scores(score)


def consensus(labels: np.ndarray, reference: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return a weighted vote of the replicas' labels (r, n) on each sample, (n,).

    The clusters of each replica are matched one to one with those of the reference (n,); unmatched
    clusters abstain, and the reference decides ties.
    """
    samples, n_clusters = np.arange(len(reference)), int(reference.max()) + 1
    votes = np.zeros((len(reference), n_clusters))
    for own, weight in zip(labels, weights, strict=True):
        if weight > 0:
            vote = metrics.matched(own, reference)
            votes[samples[vote >= 0], vote[vote >= 0]] += weight
    # The tolerance covers sums of equal weights in another order.
    leading = votes >= votes.max(1, keepdims=True) * (1 - 1e-12)
    return np.where(leading[samples, reference], reference, leading.argmax(1))


def vote_weights(scores: np.ndarray) -> np.ndarray:
    """Return the weight of each replica in the vote: 1 for the best, 0 from the median downwards.

    Otherwise a mistake that most replicas make would be voted in. Equal scores weigh the same.
    """
    known = scores[np.isfinite(scores)]
    if not len(known):
        return np.ones(len(scores))
    middle, best = float(np.median(known)), float(known.max())
    if middle == best:
        return (scores == best).astype(float)
    weights = np.clip((scores - middle) / (best - middle), 0.0, 1.0)
    return np.where(np.isfinite(scores), weights, 0.0)
