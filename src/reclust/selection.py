"""Choosing among replicas without labels: scores of which the highest wins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from . import draws
from .data.augment import Affine, Augmentation, Noise
from .data.inputs import Inputs
from .result import Model, Result
from .values import NotStored, value, whole

CHUNK = 4096


@dataclass(frozen=True)
class Candidates:
    """Trained replicas and the samples they were trained on; no labels of any kind but their own."""

    result: Result
    inputs: Inputs
    limit: int = 10_000
    """At most so many samples are looked at, the same for each replica."""

    def models(self) -> Iterator[tuple[int, Model]]:
        """The replicas that did not fail, on the device and in the precision of the samples."""
        dtype = self.inputs.take(self.rows[:1]).dtype
        return ((replica, self.result.model(replica).to(self.inputs.device, dtype)) for replica in self.result.living)

    @cached_property
    def rows(self) -> Tensor:
        key = draws.fold(draws.key(0, device=self.inputs.device), "selection")
        return draws.permutation(key, self.inputs.n_samples)[: self.limit]


class Selector(Protocol):
    def __call__(self, candidates: Candidates) -> Tensor:
        """One score for each replica, (r,), the higher the better; failed replicas get minus infinity."""
        ...


@value
class Consistency:
    """The share of samples whose cluster stays the same under a fresh random augmentation.

    A replica that merged two classes and split a third has a border inside that third, which augmented samples cross.
    augment: None takes the augmentation of training; where there was none, an affine map of images, and noise and feature
        dropout for tables.
    """

    augment: Augmentation | None = None
    repeats: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        whole("repeats", self.repeats, 1)

    def __call__(self, candidates: Candidates) -> Tensor:
        augment = self.augment or candidates.result.settings[0].augment or _default_perturbation(candidates.inputs)
        if isinstance(augment, NotStored):
            raise ValueError("The augmentation of training was its user's own and is in no file: pass Consistency(augment=…).")
        key = draws.fold(draws.key(self.seed, device=candidates.inputs.device), "consistency")
        scores = torch.full((len(candidates.result),), -torch.inf)
        for replica, model in candidates.models():
            kept = [self._kept(model, candidates.inputs, augment, rows, key) for rows in candidates.rows.split(CHUNK)]
            scores[replica] = torch.cat(kept).float().mean().cpu()
        return scores

    def _kept(self, model: Model, inputs: Inputs, augment: Augmentation, rows: Tensor, key: Tensor) -> Tensor:
        """Whether each of these samples kept its label, (repeats × B,)."""
        def labels(x: Tensor) -> Tensor:
            return model.assign(model.embed(inputs.normalize(x)))

        x = inputs.take(rows)
        clean = labels(x)
        return torch.cat([labels(augment(x, draws.fold(key, rows, again))) == clean for again in range(self.repeats)])


def _default_perturbation(inputs: Inputs) -> Augmentation:
    return Noise() if len(inputs.sample_shape) == 1 else Affine()


@value
class Compactness:
    """One minus the share of the embeddings' spread that is left within clusters."""

    def __call__(self, candidates: Candidates) -> Tensor:
        inputs, scores = candidates.inputs, torch.full((len(candidates.result),), -torch.inf)
        for replica, model in candidates.models():
            z = torch.cat([model.embed(inputs.normalize(inputs.take(rows))) for rows in candidates.rows.split(CHUNK)])
            within = (z - model.state["centers"][model.assign(z)]).pow(2).sum()
            total = (z - z.mean(0)).pow(2).sum().clamp(min=torch.finfo(z.dtype).tiny)
            scores[replica] = (1 - within / total).cpu()
        return scores
