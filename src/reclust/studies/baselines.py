"""Simpler clusterings of the same samples, stored as runs that tables show above other studies."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from .. import draws
from ..data.inputs import as_inputs
from ..interventions.reclustering.kmeans import KMeans
from ..training.result import Result, provenance
from ..utils.choices import PrecisionName
from ..utils.device import choose_device
from ..utils.exceptions import StopTraining
from ..utils.values import read_as, value
from .execute import Conditions, pretrained
from .outcome import commit, score_labels, versions
from .protocols import Sample, StudyProtocol
from .store.store import Outcome, PlannedRun, Store
from .study import Pretraining, Study, digest
from .tables.scores import BASELINES

CHUNK = 4096


@dataclass(frozen=True)
class BaselineInput:
    """Samples as networks see them, and the encoders that studies start from."""

    sample: Sample
    pretraining: Pretraining
    conditions: Conditions

    @cached_property
    def device(self) -> torch.device:
        return choose_device(self.conditions.device)

    @cached_property
    def pixels(self) -> Tensor:
        inputs = as_inputs(self.sample.inputs)
        chunks = torch.arange(inputs.n_samples, device=inputs.device).split(CHUNK)
        images = (inputs.normalize(inputs.take(rows)) for rows in chunks)
        return torch.cat([some.flatten(1).float() for some in images]).to(self.device)

    @cached_property
    def encoders(self) -> Result:
        return pretrained(self.pretraining, self.conditions)

    def embedding(self, seed: int) -> Tensor:
        model = self.encoders.model(self.encoders.seeds.index(seed)).to(self.device, torch.float32)
        shape = self.encoders.sample_shape
        return torch.cat([model.embed(x.reshape(-1, *shape)) for x in self.pixels.split(CHUNK)])


class BaselineMethod(Protocol):
    """A frozen value with its name in tables, and whether it needs pretrained encoders."""

    algorithm: ClassVar[str]
    pretrained: ClassVar[bool]

    def labels(self, inputs: BaselineInput, seed: int) -> np.ndarray: ...


@value
class PixelKMeans:
    """K-means on the raw pixels."""

    n_init: int = 10
    algorithm: ClassVar[str] = "k-means on pixels"
    pretrained: ClassVar[bool] = False

    def labels(self, inputs: BaselineInput, seed: int) -> np.ndarray:
        points = inputs.embedding(seed) if self.pretrained else inputs.pixels
        key = draws.fold(draws.key(seed, device=points.device), "baseline")
        n_clusters = inputs.pretraining.settings.n_clusters
        return KMeans(n_init=self.n_init).fit(points, n_clusters, key).labels.cpu().numpy()


@value
class EncodedKMeans(PixelKMeans):
    """K-means on the embeddings of the pretrained autoencoder, where pretrained runs start."""

    algorithm: ClassVar[str] = "autoencoder + k-means"
    pretrained: ClassVar[bool] = True


ALWAYS: tuple[BaselineMethod, ...] = (PixelKMeans(), EncodedKMeans())


@value
class BaselinePart:
    """Every combination of data set, method and seed; pretraining_seeds as in `Study`."""

    methods: tuple[BaselineMethod, ...]
    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    pretraining_seeds: tuple[int, ...] = ()


read_as("Part", BaselinePart)


@value
class Baselines:
    """Parts of one study, with a protocol as in `Study`, so that both share encoders."""

    name: str
    parts: tuple[BaselinePart, ...]
    protocol: StudyProtocol
    precision: PrecisionName = "float32"

    def runs(self) -> list[tuple[BaselineMethod, Pretraining, PlannedRun]]:
        """List all runs with their method and its encoders; each run is a group."""
        runs = []
        cells = [(part, dataset) for part in self.parts for dataset in part.datasets]
        for part, dataset in cells:
            settings = self.protocol.settings(dataset, "idec", pretrained=True)
            pretraining = Pretraining.of(dataset, self.protocol, settings,
                                         part.pretraining_seeds or part.seeds, self.precision)
            for method, seed in product(part.methods, part.seeds):
                key = digest("baseline", dataset, self.protocol.preparation, method, seed,
                             pretraining.key if method.pretrained else None)
                runs.append((method, pretraining, PlannedRun(
                    key, key, dataset, method.algorithm, "none", method.pretrained, seed)))
        return runs


def baselines_of(study: Study, methods: Sequence[BaselineMethod] = ALWAYS) -> Baselines:
    """Plan baselines for the data sets of a study, under the name that its tables look for."""
    name = f"{BASELINES}-mini" if study.name.endswith("-mini") else BASELINES
    part = BaselinePart(tuple(methods), study.datasets, study.seeds, study.pretraining_seeds)
    return Baselines(name, (part,), study.protocol, study.precision)


def run_baselines(baselines: Baselines, store: Store, conditions: Conditions, *,
                  datasets: Collection[str] | None = None,
                  methods: Collection[BaselineMethod] | None = None) -> tuple[int, int]:
    """Compute the waiting runs; return how many finished, and how many are left without time."""
    runs = baselines.runs()
    store.plan_more(baselines.name, baselines, [run for *_, run in runs])
    waiting = store.waiting(baselines.name)
    chosen = [(method, pretraining, run) for method, pretraining, run in runs
              if run.group in waiting and (datasets is None or run.dataset in datasets)
              and (methods is None or method in methods)]
    inputs: BaselineInput | None = None
    for finished, (method, pretraining, run) in enumerate(chosen):
        if conditions.out_of_time:
            return finished, len(chosen) - finished
        if inputs is None or inputs.pretraining is not pretraining:
            sample = baselines.protocol.sample(run.dataset, conditions.data)
            if sample.held_out is not None:
                raise ValueError(f"Runs on {run.dataset} are scored on a test part, which "
                                 "baselines do not have.")
            inputs = BaselineInput(sample, pretraining, conditions)
        try:
            store.add(_outcome(method, run, inputs))
        except StopTraining:  # no time left while pretraining, which wrote a checkpoint
            return finished, len(chosen) - finished
    return len(chosen), 0


def _outcome(method: BaselineMethod, run: PlannedRun, inputs: BaselineInput) -> Outcome:
    precision = (inputs.encoders.provenance.get("precision", "?") if method.pretrained
                 else "float32")  # before measuring time, since this may train the encoders
    start = time.perf_counter()
    labels = method.labels(inputs, run.seed)[None]
    return Outcome(
        group=run.group, runs=[run.key], settings=[cast(Any, method)],
        scores=score_labels(inputs.sample.classes, labels), history={}, arrays={"labels": labels},
        seconds={"baseline": time.perf_counter() - start},
        provenance={**provenance(inputs.device), "commit": commit(), "precision": precision,
                    **versions("scikit-learn", "umap-learn"),
                    "data": {"name": run.dataset, "samples": labels.shape[1]}})
