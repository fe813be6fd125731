"""Choosing among replicas without labels: scores of which the highest wins."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import torch
from torch import Tensor

from .. import draws, metrics
from ..data.augmentation.affine import Augmentation, perturbation_of
from ..data.inputs import Inputs
from ..geometry import class_distances, squared_silhouette
from ..training.result import Model, Result
from ..utils.values import NotStored, check_int, value

CHUNK = 4096


@dataclass(frozen=True)
class Candidates:
    """Trained replicas and the samples they were trained on; no labels of any kind but their own.

    Shapes: m samples looked at. What is computed of a replica is kept, so that several scores share it.
    """

    result: Result
    inputs: Inputs
    limit: int = 10_000
    """At most so many samples are looked at, the same for each replica."""

    @cached_property
    def rows(self) -> Tensor:
        """(m,)."""
        key = draws.fold(draws.key(0, device=self.inputs.device), "selection")
        return draws.permutation(key, self.inputs.n_samples)[: self.limit]

    @cached_property
    def models(self) -> dict[int, Model]:
        """The replicas that did not fail, on the device and in the precision of the samples."""
        dtype = self.inputs.take(self.rows[:1]).dtype
        return {replica: self.result.model(replica).to(self.inputs.device, dtype) for replica in self.result.living}

    @cached_property
    def embeddings(self) -> dict[int, Tensor]:
        """Of the samples as they are, (m, d) for each living replica."""
        return self._embed(self.inputs.take)

    @cached_property
    def labels(self) -> dict[int, Tensor]:
        """Of the samples as they are, (m,) for each living replica."""
        return self._assign(self.embeddings)

    def perturbed(self, augment: Augmentation, key: Tensor, again: int) -> dict[int, Tensor]:
        """The labels of one random view of each sample, (m,) for each living replica."""
        return self._assign(self._embed(lambda rows: augment(self.inputs.take(rows), draws.fold(key, rows, again))))

    def scores(self, score: Callable[[int], Tensor | float]) -> Tensor:
        """A score for each living replica, as a selector gives it."""
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
    def __call__(self, candidates: Candidates) -> Tensor:
        """One score for each replica, (r,), the higher the better; failed replicas get minus infinity."""
        ...


@dataclass(frozen=True)
class _UnderPerturbation:
    """augment: None takes the augmentation of training; where there was none, an affine map of images, and noise and feature
    dropout for tables. repeats: views of each sample."""

    augment: Augmentation | None = None
    repeats: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        check_int("repeats", self.repeats, 1)

    def pairs(self, candidates: Candidates) -> dict[int, tuple[Tensor, Tensor]]:
        """Labels of samples as they are and of their views, (repeats × m,) each, for each living replica."""
        augment = self.augment or candidates.result.settings[0].augment or perturbation_of(candidates.inputs.sample_shape)
        if isinstance(augment, NotStored):
            raise ValueError("The augmentation of training was its user's own and is in no file: "
                             f"pass {type(self).__name__}(augment=…).")
        key = draws.fold(draws.key(self.seed, device=candidates.inputs.device), "consistency")
        views = [candidates.perturbed(augment, key, again) for again in range(self.repeats)]
        return {replica: (own.repeat(self.repeats), torch.cat([view[replica] for view in views]))
                for replica, own in candidates.labels.items()}


@value
class Consistency(_UnderPerturbation):
    """The share of samples whose cluster stays the same under a fresh random augmentation.

    A replica that merged two classes and split a third has a border inside that third, which augmented samples cross. But a
    single cluster that holds everything is consistent, too: see `SharedInformation`.
    """

    def __call__(self, candidates: Candidates) -> Tensor:
        pairs = self.pairs(candidates)
        return candidates.scores(lambda replica: (pairs[replica][0] == pairs[replica][1]).float().mean())


@value
class SharedInformation(_UnderPerturbation):
    """How much the cluster of an augmented sample tells about that of the sample itself, as a share of all that k clusters
    can tell: 1 for even clusters that every view keeps, 0 for what chance does and for one cluster that holds everything.

    Prefers even sizes: where classes are known to differ much in size, `Consistency` is the fairer judge.
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
    """One minus the share of the embeddings' spread that is left within clusters."""

    def __call__(self, candidates: Candidates) -> Tensor:
        def score(replica: int) -> Tensor:
            z, centers = candidates.embeddings[replica], candidates.models[replica].state["centers"]
            within = (z - centers[candidates.labels[replica]]).pow(2).sum()
            return 1 - within / (z - z.mean(0)).pow(2).sum().clamp(min=torch.finfo(z.dtype).tiny)

        return candidates.scores(score)


@value
class Silhouette:
    """How much nearer samples are to their own cluster than to the next one, from -1 to 1; 0 where there is one cluster only.

    distance: "squared" Euclidean or "cosine", both from sums over clusters.
    """

    distance: Literal["squared", "cosine"] = "squared"

    def __post_init__(self) -> None:
        if self.distance not in ("squared", "cosine"):
            raise ValueError(f"distance must be 'squared' or 'cosine', got {self.distance!r}.")

    def __call__(self, candidates: Candidates) -> Tensor:
        def score(replica: int) -> Tensor:
            z, labels = candidates.embeddings[replica], candidates.labels[replica]
            each = squared_silhouette(z, labels) if self.distance == "squared" else class_distances(z, labels).silhouette
            return each.mean().nan_to_num(0.0)

        return candidates.scores(score)


@value
class Agreement:
    """The mean NMI with the labels of the other replicas. Where most replicas made the same mistake, it keeps that."""

    def __call__(self, candidates: Candidates) -> Tensor:
        living, k = candidates.result.living, candidates.result.n_clusters
        labels = torch.stack([candidates.labels[replica] for replica in living])

        def score(replica: int) -> float:
            tables = metrics.batched_contingency(candidates.labels[replica], labels, k, k).cpu().numpy()
            others = [metrics.nmi_of_table(table) for other, table in zip(living, tables, strict=True) if other != replica]
            return sum(others) / max(1, len(others))

        return candidates.scores(score)


@value
class SizeEntropy:
    """How even the clusters' sizes are: their entropy, over that of k equal ones."""

    def __call__(self, candidates: Candidates) -> Tensor:
        k = candidates.result.n_clusters

        def score(replica: int) -> Tensor:
            shares = metrics.cluster_sizes(candidates.labels[replica], k) / len(candidates.rows)
            return torch.special.entr(shares).sum() / math.log(max(k, 2))

        return candidates.scores(score)


@dataclass(frozen=True)
class _OfSeveral:
    selectors: tuple[Selector, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "selectors", tuple(self.selectors))
        if not self.selectors:
            raise ValueError(f"{type(self).__name__} needs at least one selector.")

    def all_scores(self, candidates: Candidates) -> Tensor:
        """(selectors, r) in float64; what is not a number is minus infinity."""
        given = torch.stack([torch.as_tensor(select(candidates), dtype=torch.float64) for select in self.selectors])
        return given.masked_fill(given.isnan(), -torch.inf)


@value
class MeanRank(_OfSeveral):
    """The mean place of a replica under several selectors, as the share of living replicas that score lower; equal scores
    share a place. It asks for no common scale."""

    def __call__(self, candidates: Candidates) -> Tensor:
        scores = self.all_scores(candidates)[:, candidates.result.living]
        below = (scores[:, None] < scores[:, :, None]).double().mean(-1)
        ties = (scores[:, None] == scores[:, :, None]).double().mean(-1)
        places = iter((below + ties / 2).mean(0))
        return candidates.scores(lambda replica: next(places))


@value
class Product(_OfSeveral):
    """The product of several scores, each of which must be positive to count."""

    def __call__(self, candidates: Candidates) -> Tensor:
        product = self.all_scores(candidates).clamp(min=0).prod(0)
        return candidates.scores(lambda replica: product[replica])
