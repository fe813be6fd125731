"""Label-free scores of replicas, and the choice of the best one or of the better half."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from scipy.special import entr
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
    """Trained replicas, and the rows (m,) of the at most `limit` samples that score them.

    Embeddings (m, d) and labels (m,) of replicas that did not fail are shared by all scores.
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


# A label-free score of replicas, (r,); higher is better, minus infinity for failed ones.
Selector = Callable[[Candidates], Tensor]


def choose_replica(result: Result, inputs: Inputs, select: Selector) -> tuple[list[float], int]:
    """Choose the replica to keep; return the score of each one, and the chosen one."""
    if len(result) == 1:
        return [math.nan], 0
    without_labels = replace(result, history={})
    scores = torch.as_tensor(select(Candidates(without_labels, inputs)), dtype=torch.float64)
    listed = scores.masked_fill(scores.isnan(), -torch.inf).tolist()
    return listed, max(result.living, key=lambda replica: listed[replica])


@dataclass(frozen=True)
class _UnderPerturbation:
    """Compare samples with `repeats` random views of them."""

    augment: Augmentation | None = None  # None: that of training, or an affine map or noise
    repeats: int = integer(default=3, least=1)
    seed: int = 0

    def pairs(self, candidates: Candidates) -> dict[int, tuple[Tensor, Tensor]]:
        """Return the labels of samples and of their views, (repeats × m,), for each replica."""
        trained = candidates.result.settings[0].augment
        augment = self.augment or trained or perturbation_of(candidates.inputs.sample_shape)
        key = draws.fold(draws.key(self.seed, device=candidates.inputs.device), "consistency")
        views = [candidates.perturbed(augment, key, repeat) for repeat in range(self.repeats)]
        return {replica: (labels.repeat(self.repeats), torch.cat([view[replica] for view in views]))
                for replica, labels in candidates.labels.items()}


@value
class Consistency(_UnderPerturbation):
    """Share of samples whose cluster stays the same under augmentation; 1 for a single cluster."""

    def __call__(self, candidates: Candidates) -> Tensor:
        pairs = self.pairs(candidates)
        return candidates.scores(
            lambda replica: (pairs[replica][0] == pairs[replica][1]).float().mean())


@value
class SharedInformation(_UnderPerturbation):
    """Mutual information of the clusters of samples and of their views, relative to log(k).

    It prefers clusters of equal size, `NormalizedInformation` does not.
    """

    def __call__(self, candidates: Candidates) -> Tensor:
        most = math.log(max(candidates.result.n_clusters, 2))
        information = self.information(candidates)
        return candidates.scores(lambda replica: information[replica][0] / most)

    def information(self, candidates: Candidates) -> dict[int, tuple[float, np.ndarray]]:
        """Return the mutual information and the cluster sizes of each replica."""
        k, found = candidates.result.n_clusters, {}
        for replica, (labels, view) in self.pairs(candidates).items():
            table = metrics.batched_contingency(labels, view[None], k, k)[0].cpu().numpy()
            found[replica] = metrics.information_of_table(table), table.sum(1)
        return found


@value
class NormalizedInformation(SharedInformation):
    """Mutual information of the clusters of samples and of their views, relative to its maximum.

    The maximum is the entropy of the cluster sizes. Empty clusters lower the score in proportion.
    """

    def __call__(self, candidates: Candidates) -> Tensor:
        def score(replica: int) -> float:
            shared, sizes = information[replica]
            possible = float(entr(sizes / sizes.sum()).sum())
            return shared / possible * float((sizes > 0).mean()) if possible else 0.0

        information = self.information(candidates)
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
            values = (squared_silhouette(z, labels) if self.distance == "squared"
                      else class_distances(z, labels).silhouette)
            return values.mean().nan_to_num(0.0)

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


def better_half(candidates: Sequence[Any]) -> list[Any]:
    """Return the candidates with at least the median score, or all if scores are unknown."""
    scores = np.array([candidate.score for candidate in candidates])
    known = scores[np.isfinite(scores)]
    middle = np.median(known) if len(known) else -np.inf
    return [candidate for candidate, score in zip(candidates, scores, strict=True)
            if not score < middle]
