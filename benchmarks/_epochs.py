"""Seconds of single epochs, on data of MNIST's shape."""

from __future__ import annotations

import time
from dataclasses import replace

import torch

from reclust import Execution, KMeans, Recluster, Schedule, Settings, train
from reclust.data.inputs import Inputs, ResidentInputs
from reclust.estimators import presets
from reclust.training.monitors.base import Snapshot


def mnist_shaped(rows: int = 70_000) -> Inputs:
    """Ten random images and noise: what is in them does not change how long a step takes, but k-means needs groups to find."""
    generator = torch.Generator().manual_seed(0)
    prototypes = torch.rand(10, 1, 28, 28, generator=generator)
    images = (prototypes[torch.arange(rows) % 10] + 0.3 * torch.randn(rows, 1, 28, 28, generator=generator)).clamp_(0, 1)
    return ResidentInputs(images, images.mean(), images.std())


def clustering_only(algorithm: str, epochs: int) -> Settings:
    """The published clustering phase from scratch, without interventions and with quick first centers."""
    return replace(
        presets.paper("mnist", algorithm), pretraining=None, intervention=None, clustering=Schedule(epochs),
        first_centers=Recluster(KMeans(n_init=1, max_iter=5)),
    )


class Stopwatch:
    """A monitor that notes when each epoch ended."""

    def __init__(self) -> None:
        self.ended: list[float] = []

    def __call__(self, snapshot: Snapshot) -> None:
        if snapshot.moment in ("start", "epoch"):
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.ended.append(time.perf_counter())

    @property
    def epochs(self) -> list[float]:
        return [end - start for start, end in zip(self.ended, self.ended[1:], strict=False)]


def epoch_seconds(data: Inputs, settings: Settings, *, replicas: int, execution: Execution) -> float:
    """The fastest epoch after the first, in which graphs are captured and libraries loaded."""
    watch = Stopwatch()
    train(data, settings, seeds=range(replicas), monitors=[watch], execution=execution)
    return min(watch.epochs[1:])
