"""What a study's numbers are held against: shallow clusterings of the same samples, kept in the store as runs.

`run_baselines(baselines_of(study), store, …)` computes them; tables put the runs of the study "baselines" above all others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from .. import draws, metrics
from ..data.errors import require
from ..data.inputs import as_inputs
from ..kmeans import kmeans
from ..result import provenance
from ..training import choose_device
from ..values import value
from .execute import Conditions, commit, pretrained
from .protocols import Protocol as StudyProtocol
from .protocols import Sample
from .spec import Precision, Pretraining, Study, _digest
from .store import Outcome, PlannedRun, Store

CHUNK = 4096


@dataclass(frozen=True)
class Material:
    """What a baseline may look at: the samples as networks see them, and the encoders that the studies start from."""

    sample: Sample
    pretraining: Pretraining
    conditions: Conditions
    n_clusters: int

    @cached_property
    def device(self) -> torch.device:
        return choose_device(self.conditions.device)

    @cached_property
    def pixels(self) -> Tensor:
        """(n, features)."""
        inputs = as_inputs(self.sample.inputs)
        rows = torch.arange(inputs.n_samples, device=inputs.device).split(CHUNK)
        return torch.cat([inputs.normalize(inputs.take(some)).flatten(1).float() for some in rows]).to(self.device)

    @cached_property
    def encoders(self) -> Any:
        return pretrained(self.pretraining, self.conditions)

    def embedding(self, seed: int) -> Tensor:
        """(n, d), by the encoder that was pretrained with this seed."""
        model = self.encoders.model(self.encoders.seeds.index(seed)).to(self.device, torch.float32)
        shape = self.encoders.sample_shape
        return torch.cat([model.embed(some.reshape(-1, *shape)) for some in self.pixels.split(CHUNK)])


class Baseline(Protocol):
    """A frozen value. algorithm: its name in tables; pretrained: whether it stands on the pretrained encoders."""

    algorithm: ClassVar[str]
    pretrained: ClassVar[bool]

    def labels(self, material: Material, seed: int) -> np.ndarray:
        """(n,)."""
        ...


@value
class PixelKMeans:
    """K-means on the raw pixels."""

    n_init: int = 10
    algorithm: ClassVar[str] = "k-means on pixels"
    pretrained: ClassVar[bool] = False

    def labels(self, material: Material, seed: int) -> np.ndarray:
        return _kmeans(material.pixels, material.n_clusters, seed, self.n_init)


@value
class EncodedKMeans:
    """K-means on the embeddings of the pretrained autoencoder: where every pretrained run begins."""

    n_init: int = 10
    algorithm: ClassVar[str] = "autoencoder + k-means"
    pretrained: ClassVar[bool] = True

    def labels(self, material: Material, seed: int) -> np.ndarray:
        return _kmeans(material.embedding(seed), material.n_clusters, seed, self.n_init)


@value
class UmapMixture:
    """UMAP of the raw pixels, then a Gaussian mixture; needs umap-learn."""

    neighbors: int = 20
    dimensions: int = 10
    algorithm: ClassVar[str] = "UMAP + mixture"
    pretrained: ClassVar[bool] = False

    def labels(self, material: Material, seed: int) -> np.ndarray:
        from sklearn.mixture import GaussianMixture

        umap = require("umap", purpose="The baseline UMAP + mixture", extra="umap")
        reducer = umap.UMAP(n_neighbors=self.neighbors, n_components=self.dimensions, min_dist=0.0, random_state=seed, n_jobs=1)
        reduced = reducer.fit_transform(material.pixels.cpu().numpy())
        return GaussianMixture(material.n_clusters, n_init=5, reg_covar=1e-5, random_state=seed).fit_predict(reduced)


ALWAYS: tuple[Baseline, ...] = (PixelKMeans(), EncodedKMeans())


@value
class Baselines:
    """Every data set × method × seed; the rest as in `Study`, so that encoders are shared with studies."""

    name: str
    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    pretraining_seeds: tuple[int, ...]
    protocol: StudyProtocol
    precision: Precision = "float32"
    methods: tuple[Baseline, ...] = ALWAYS

    def groups(self) -> list[tuple[str, Baseline, Pretraining, list[PlannedRun]]]:
        """One for each data set and method, with the pretraining that it may use."""
        made = []
        for dataset in self.datasets:
            settings = self.protocol.settings(dataset, "idec", pretrained=True)
            pretraining = Pretraining.of(dataset, self.protocol, settings, self.pretraining_seeds or self.seeds, self.precision)
            for method in self.methods:
                key = _digest("baseline", dataset, self.protocol.preparation, method, self.seeds,
                              pretraining.key if method.pretrained else None)
                made.append((dataset, method, pretraining, [
                    PlannedRun(_digest(key, seed), key, dataset, method.algorithm, "none", method.pretrained, seed)
                    for seed in self.seeds]))
        return made


def baselines_of(study: Study, methods: Sequence[Baseline] = ALWAYS) -> Baselines:
    """The baselines of a study's data sets, under the name where the tables of that study look for them."""
    name = "baselines-mini" if study.name.endswith("-mini") else "baselines"
    return Baselines(name, study.datasets, study.seeds, study.pretraining_seeds, study.protocol, study.precision,
                     tuple(methods))


def run_baselines(baselines: Baselines, store: Store, conditions: Conditions) -> int:
    """Compute what is not in the store yet, one data set and method after the other; how many runs finished."""
    groups = baselines.groups()
    store.plan(baselines.name, baselines, [run for *_, runs in groups for run in runs])
    waiting, finished = store.waiting(baselines.name), 0
    for dataset, method, pretraining, runs in groups:
        if runs[0].group in waiting:
            sample = baselines.protocol.sample(dataset, conditions.data)
            material = Material(sample, pretraining, conditions, pretraining.settings.n_clusters)
            store.add(_outcome(method, runs, material))
            finished += len(runs)
    return finished


def _outcome(method: Baseline, runs: Sequence[PlannedRun], material: Material) -> Outcome:
    if method.pretrained:
        material.encoders  # noqa: B018 - trained or read now, so that its time is not taken for the method's
    start = time.perf_counter()
    labels = np.stack([method.labels(material, run.seed) for run in runs])
    spent = time.perf_counter() - start
    scored = [metrics.scores(material.sample.classes, own) for own in labels]
    names = {"acc": "accuracy", "nmi": "nmi", "ari": "ari"}
    return Outcome(
        group=runs[0].group, runs=[run.key for run in runs], settings=[cast(Any, method)] * len(runs),
        scores={short: np.array([one[name] for one in scored]) for short, name in names.items()},
        history={}, arrays={"labels": labels}, seconds={"baseline": spent},
        provenance={**provenance(material.device), "commit": commit(),
                    "data": {"name": runs[0].dataset, "samples": len(labels[0])}})


def _kmeans(z: Tensor, k: int, seed: int, n_init: int) -> np.ndarray:
    key = draws.fold(draws.key(seed, device=z.device), "baseline")
    return kmeans(z, k, key=key, n_init=n_init).labels.cpu().numpy()
