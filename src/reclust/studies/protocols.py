"""How a study prepares its data and its settings, before its variants change anything."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol as Interface
from typing import runtime_checkable

import numpy as np

from ..data import Prepared, load
from ..data.named import SETS
from ..presets import CLUSTERS, OBJECTIVES, paper_data, paper_protocol
from ..representations import Autoencoder
from ..settings import Settings
from ..values import value


@dataclass(frozen=True, eq=False)
class Sample:
    """What runs train on and are scored against: n samples as training takes them, and their classes (n,)."""

    inputs: Prepared
    classes: np.ndarray


@runtime_checkable
class Protocol(Interface):
    """A frozen value."""

    @property
    def preparation(self) -> str:
        """What decides the samples beside the name of their set: part of the identity of every run."""
        ...

    def settings(self, dataset: str, algorithm: str, *, pretrained: bool) -> Settings:
        """Complete settings without an intervention."""
        ...

    def sample(self, dataset: str, folder: str | os.PathLike[str] | None) -> Sample: ...

    def size(self, dataset: str) -> int:
        """How many samples there are, as far as can be said without reading them: only the order of runs depends on it."""
        ...

    def mini(self) -> Protocol:
        """The same for the embedded digits on two cores within minutes."""
        ...


@value
class AutoencoderProtocol:
    """The published protocol of the autoencoder sets, the quirks of the authors' program included.

    side: images are resized to so many pixels, None for the size the paper gives each set. rows: only the first so many
    samples. n_clusters: for sets that are not the paper's.
    """

    pretraining_epochs: int = 250
    epochs: int = 400
    batch_size: int = 256
    hidden: tuple[int, ...] = (1024, 512, 256)
    side: int | None = None
    rows: int | None = None
    n_clusters: int | None = None

    @property
    def preparation(self) -> str:
        return f"paper, side={self.side}, rows={self.rows}"

    def settings(self, dataset: str, algorithm: str, *, pretrained: bool) -> Settings:
        if algorithm not in OBJECTIVES:
            raise ValueError(f"There is no algorithm {algorithm!r}: choose among {', '.join(OBJECTIVES)}.")
        family = family_of(dataset)
        n_clusters = self.n_clusters if family is None else CLUSTERS[family]
        if n_clusters is None:
            raise ValueError(f"{dataset!r} is none of {', '.join(CLUSTERS)}: say how many clusters to look for, n_clusters = … "
                             "under [protocol].")
        channels = None if family is None else SETS[family].image_shape[0]
        base = paper_protocol(n_clusters, OBJECTIVES[algorithm], channels=channels)
        assert base.pretraining is not None and base.clustering is not None
        return replace(
            base,
            representation=Autoencoder(hidden=self.hidden),
            intervention=None,
            pretraining=replace(base.pretraining, epochs=self.pretraining_epochs, batch_size=self.batch_size)
            if pretrained else None,
            clustering=replace(base.clustering, epochs=self.epochs, batch_size=self.batch_size),
        )

    def sample(self, dataset: str, folder: str | os.PathLike[str] | None) -> Sample:
        return _autoencoder_sample(dataset, self.side, self.rows, None if folder is None else os.fspath(folder))

    def size(self, dataset: str) -> int:
        return self.rows or (sum(SETS[dataset].counts) if dataset in SETS else 10_000)

    def mini(self) -> AutoencoderProtocol:
        return replace(self, pretraining_epochs=10, epochs=20, batch_size=64, hidden=(64, 64, 32), side=8)


def family_of(dataset: str) -> str | None:
    """The set of the paper that this one is, or is a part of as kmnist_test is of kmnist."""
    return max((known for known in CLUSTERS if dataset == known or dataset.startswith(known + "_")), key=len, default=None)


@lru_cache(maxsize=1)  # groups of one set usually follow each other
def _autoencoder_sample(dataset: str, side: int | None, rows: int | None, folder: str | None) -> Sample:
    found = load(dataset, folder=folder)
    if side is not None:
        found = replace(found, resize_to=(side, side))
    if rows is not None:
        found = found.take(slice(rows))
    if found.labels is None:
        raise ValueError(f"{dataset} has no labels to score runs against.")
    return Sample(paper_data(found), found.labels)
