"""What a study's numbers are held against: shallow clusterings of the same samples, kept in the store as runs.

`run_baselines(baselines_of(study), store, …)` computes them, `reclust study baselines` those of the best preset's table; tables
put the runs of the study "baselines" above all others.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from .. import draws, metrics
from ..data.inputs import as_inputs
from ..interventions.reclustering.kmeans import kmeans
from ..training.result import provenance
from ..utils import choices
from ..utils.choices import Precision
from ..utils.device import choose_device
from ..utils.exceptions import StopTraining
from ..utils.lazy import require
from ..utils.values import value
from .catalog import named
from .execute import Conditions, _version, commit, over, pretrained
from .protocols import Sample, StudyProtocol
from .store.store import Outcome, PlannedRun, Store
from .study import Pretraining, Study, _digest
from .tables.scores import BASELINES, OF_COLOURS

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
METHODS: Mapping[str, Baseline] = MappingProxyType(
    dict(zip(choices.BASELINES, (PixelKMeans(), UmapMixture(), EncodedKMeans()), strict=True)))


@value
class Part:
    """Every data set × method × seed. pretraining_seeds: as in `Study`."""

    methods: tuple[Baseline, ...]
    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    pretraining_seeds: tuple[int, ...] = ()


@value
class Baselines:
    """Parts that together are one study; the rest as in `Study`, so that encoders are shared with studies."""

    name: str
    parts: tuple[Part, ...]
    protocol: StudyProtocol
    precision: Precision = "float32"

    def runs(self) -> list[tuple[Baseline, Pretraining, PlannedRun]]:
        """Each with the pretraining that its method may use, a group of its own: seeds may be added one by one."""
        made = []
        for part in self.parts:
            for dataset in part.datasets:
                settings = self.protocol.settings(dataset, "idec", pretrained=True)
                seeds = part.pretraining_seeds or part.seeds
                pretraining = Pretraining.of(dataset, self.protocol, settings, seeds, self.precision)
                for method, seed in product(part.methods, part.seeds):
                    key = _digest("baseline", dataset, self.protocol.preparation, method, seed,
                                  pretraining.key if method.pretrained else None)
                    made.append((method, pretraining, PlannedRun(
                        key, key, dataset, method.algorithm, "none", method.pretrained, seed)))
        return made


def baselines_of(study: Study, methods: Sequence[Baseline] = ALWAYS) -> Baselines:
    """The baselines of a study's data sets, under the name where the tables of that study look for them."""
    name = f"{BASELINES}-mini" if study.name.endswith("-mini") else BASELINES
    part = Part(tuple(methods), study.datasets, study.seeds, study.pretraining_seeds)
    return Baselines(name, (part,), study.protocol, study.precision)


def best_baselines() -> tuple[Baselines, ...]:
    """Those that `preset="best"` is held against; encoders are those of the main table. For colour images without their light
    there are others that see the same. UMAP of 70,000 samples takes minutes on one core and gets fewer seeds."""
    main, colours, large = named("acc-table"), named("best-of-colours"), named("best-of-many-samples").datasets
    small = (*named("best").datasets, *named("best-of-few-samples").datasets)

    def parts(datasets: tuple[str, ...], umap_seeds: int) -> tuple[Part, Part]:
        return (Part(ALWAYS, datasets, main.seeds, main.pretraining_seeds),
                Part((UmapMixture(),), datasets, main.seeds[:umap_seeds]))

    return (Baselines(BASELINES, (*parts(small, 5), *parts(large, 2)), main.protocol, main.precision),
            Baselines(OF_COLOURS, parts(colours.datasets, 5), colours.protocol, main.precision))


def run_baselines(baselines: Baselines, store: Store, conditions: Conditions, *, datasets: Collection[str] | None = None,
                  methods: Collection[Baseline] | None = None) -> tuple[int, int]:
    """Compute what is not in the store yet, one run after the other; how many finished, and how many still wait because time
    was over. datasets, methods: only these. What other studies that share them asked for stays."""
    runs = baselines.runs()
    store.plan_more(baselines.name, baselines, [run for *_, run in runs])
    waiting = store.waiting(baselines.name)
    asked = [(method, pretraining, run) for method, pretraining, run in runs if run.group in waiting
             and (datasets is None or run.dataset in datasets) and (methods is None or method in methods)]
    finished, material = 0, None  # type: int, Material | None
    for method, pretraining, run in asked:
        if over(conditions):
            break
        if material is None or material.pretraining is not pretraining:
            sample = baselines.protocol.sample(run.dataset, conditions.data)
            if sample.held_out is not None:
                raise ValueError(f"Runs on {run.dataset} are scored on its test part, of which baselines see nothing: there "
                                 "are none for this study.")
            material = Material(sample, pretraining, conditions, pretraining.settings.n_clusters)
        try:
            store.add(_outcome(method, run, material))
        except StopTraining:
            break  # time ran out while an encoder was pretrained: its checkpoint waits for the next call
        finished += 1
    return finished, len(asked) - finished


def _outcome(method: Baseline, run: PlannedRun, material: Material) -> Outcome:
    if method.pretrained:
        material.encoders  # noqa: B018 - trained or read now, so that its time is not taken for the method's
    start = time.perf_counter()
    labels = method.labels(material, run.seed)
    spent = time.perf_counter() - start
    scored = metrics.scores(material.sample.classes, labels)
    names = {"acc": "accuracy", "nmi": "nmi", "ari": "ari"}
    return Outcome(
        group=run.group, runs=[run.key], settings=[cast(Any, method)],
        scores={short: np.array([scored[name]]) for short, name in names.items()},
        history={}, arrays={"labels": labels[None]}, seconds={"baseline": spent},
        provenance={**provenance(material.device), "commit": commit(),
                    "precision": material.encoders.provenance.get("precision", "?") if method.pretrained else "float32",
                    **{name: _version(name) for name in ("scikit-learn", "umap-learn")},
                    "data": {"name": run.dataset, "samples": len(labels)}})


def _kmeans(z: Tensor, k: int, seed: int, n_init: int) -> np.ndarray:
    key = draws.fold(draws.key(seed, device=z.device), "baseline")
    return kmeans(z, k, key=key, n_init=n_init).labels.cpu().numpy()
