"""Protocols: how a study prepares its data and the settings that its variants change."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from ..data import Dataset, Lens, Prepared, load, prepare
from ..data.sets.load import SETS, custom_file
from ..estimators import presets
from ..estimators.presets import CONTRASTIVE_OBJECTIVES, contrastive_protocol, paper_data
from ..objectives import Objective
from ..representations import Autoencoder, Representation, ResNet, SimCLR
from ..training.self_label import SelfLabel
from ..training.settings import Schedule, Settings
from ..utils.values import change, choice, integer, integers, value

Folder = str | Path | None
ALL_CLUSTERS = {**presets.CLUSTERS, **presets.CONTRASTIVE_CLUSTERS}


@dataclass(frozen=True, eq=False)
class Sample:
    """Samples to train on, their classes (n,), and a test part if runs are scored on one."""

    inputs: Prepared
    classes: np.ndarray
    held_out: "Sample | None" = None


@runtime_checkable
class StudyProtocol(Protocol):
    """Interface of protocols, which are frozen values."""

    keeps_clusterings: ClassVar[bool] = False  # in the work folder, for others to continue from

    @property
    def preparation(self) -> str:
        """How samples are prepared, as part of the key of every run."""

    def settings(self, dataset: str, algorithm: str, *, pretrained: bool) -> Settings:
        """Return complete settings without an intervention."""

    def sample(self, dataset: str, folder: Folder) -> Sample:
        """Load and prepare a data set."""

    def size(self, dataset: str) -> int:
        """Estimate the number of samples without reading them, to order runs by cost."""

    def pretrained_as(self, representation: Representation) -> Representation:
        """Drop what only matters after pretraining, so that algorithms share it."""
        return representation

    def labeling(self, dataset: str, algorithm: str) -> SelfLabel | None:
        """Return the self-labeling that follows the clustering, if any."""
        return None

    def mini(self) -> "StudyProtocol":
        """Return a protocol for the bundled digits that takes minutes on two cores."""


@value
class AutoencoderProtocol(StudyProtocol):
    """The paper's protocol for the autoencoder runs, including quirks of the authors' program.

    Parameters
    ----------
    pretraining_epochs, epochs, batch_size, hidden, n_clusters
        Schedules and layer sizes; n_clusters for data sets that are not in the paper.
    side, rows, classes
        Resize images to this many pixels instead of the paper's size; use only the first samples,
        or only those of some classes.
    light, least_side
        See `Lens`. With either, images are prepared as the estimators do, not as in the paper.
    reading, images
        See `presets.paper` and `presets.paper_data`.
    """

    pretraining_epochs: int = integer(default=250)
    epochs: int = integer(default=400)
    batch_size: int = integer(default=256, least=1)
    hidden: tuple[int, ...] = integers(default=(1024, 512, 256), least=1)
    side: int | None = integer(default=None, least=1, optional=True)
    rows: int | None = integer(default=None, least=1, optional=True)
    n_clusters: int | None = integer(default=None, least=1, optional=True)
    classes: tuple[int, ...] = integers(default=())
    light: Literal["kept", "removed"] = choice("kept", "removed", default="kept")
    least_side: int | None = integer(default=None, least=1, optional=True)
    reading: presets.Reading = choice("text", "program", default="text")
    images: Literal["resized", "native"] = choice("resized", "native", default="resized")

    @property
    def preparation(self) -> str:
        kind = "paper" if self.light == "kept" else "light removed"
        classes = f", classes={self.classes}" if self.classes else ""
        enlarged = f", least_side={self.least_side}" if self.least_side else ""
        native = ", native" if self.images == "native" else ""
        return f"{kind}, side={self.side}, rows={self.rows}{classes}{enlarged}{native}"

    def settings(self, dataset: str, algorithm: str, *, pretrained: bool) -> Settings:
        objective, family = _objective(algorithm, presets.OBJECTIVES), family_of(dataset)
        n_clusters = self.n_clusters or len(self.classes) or _n_clusters(dataset, presets.CLUSTERS)
        channels = None if family is None else SETS[family].image_shape[0]
        base = presets.paper_protocol(n_clusters, objective, channels=channels)
        pretraining = {"epochs": self.pretraining_epochs, "batch_size": self.batch_size}
        settings = change(base, {
            "representation": Autoencoder(hidden=self.hidden), "intervention": None,
            "pretraining": pretraining if pretrained else None,
            "clustering": {"epochs": self.epochs, "batch_size": self.batch_size}})
        return settings if self.reading == "text" else presets.as_program(settings)

    def sample(self, dataset: str, folder: Folder) -> Sample:
        return _sample(self, dataset, folder, _modified_at(dataset, folder))

    def _prepared(self, data: Dataset) -> Sample:
        data = data.take(slice(self.rows))
        if self.classes:
            data = data.take(np.isin(np.asarray(data.labels), self.classes))
        lens = Lens(self.least_side, self.light)
        if lens.least_side is not None and self.side is None:
            data = replace(data, resize_to=None)  # the lens resizes
        inputs = (paper_data(data, images=self.images) if lens == Lens()
                  else prepare(data, equalized=False, lens=lens))
        return Sample(inputs, np.asarray(data.labels))

    def size(self, dataset: str) -> int:
        return self.rows or (sum(SETS[dataset].counts) if dataset in SETS else 10_000)

    def mini(self) -> "AutoencoderProtocol":
        return replace(self, pretraining_epochs=10, epochs=20, batch_size=64, hidden=(64, 64, 32),
                       side=8, n_clusters=None, light="kept", least_side=None)


@value
class ContrastiveProtocol(StudyProtocol):
    """The paper's protocol for the contrastive runs: train on one part, score on the test part.

    Parameters
    ----------
    pretraining_epochs, epochs, batch_size, representation, labeling_epochs
        Schedules and network. Self-labeling takes 200 epochs in the paper; 0 skips it.
    side, rows, n_clusters, reading
        As in `AutoencoderProtocol`; `rows` of each part. The program scales test images by their
        own mean and deviation.
    """

    pretraining_epochs: int = integer(default=1000)
    epochs: int = integer(default=1000)
    batch_size: int = integer(default=512, least=1)
    labeling_epochs: int = integer(default=0)
    representation: SimCLR = SimCLR(reduction="sum")
    side: int | None = integer(default=None, least=1, optional=True)
    rows: int | None = integer(default=None, least=1, optional=True)
    n_clusters: int | None = integer(default=None, least=1, optional=True)
    reading: presets.Reading = choice("text", "program", default="text")
    keeps_clusterings: ClassVar[bool] = True

    @property
    def preparation(self) -> str:
        apart = ", scaled apart" if self.reading == "program" else ""
        return f"paper, train and test, side={self.side}, rows={self.rows}{apart}"

    def settings(self, dataset: str, algorithm: str, *, pretrained: bool) -> Settings:
        objective, family = _objective(algorithm, CONTRASTIVE_OBJECTIVES), family_of(dataset)
        n_clusters = self.n_clusters or _n_clusters(dataset, ALL_CLUSTERS)
        representation = self.representation
        if algorithm == "dec":
            representation = replace(representation, encoding="apart and again")
        channels = 3 if family is None else SETS[family].image_shape[0]
        base = contrastive_protocol(n_clusters, objective, representation, channels=channels)
        assert base.pretraining is not None and base.clustering is not None
        pretraining = self._schedule(base.pretraining, self.pretraining_epochs)
        settings = replace(base, intervention=None, pretraining=pretraining if pretrained else None,
                           clustering=self._schedule(base.clustering, self.epochs))
        return settings if self.reading == "text" else presets.as_program(settings)

    def _schedule(self, base: Schedule, epochs: int) -> Schedule:
        return replace(base, epochs=epochs, batch_size=self.batch_size,
                       warmup_epochs=min(base.warmup_epochs, epochs // 10))

    def pretrained_as(self, representation: Representation) -> Representation:
        if not isinstance(representation, SimCLR):
            return representation
        return replace(representation, encoding=self.representation.encoding)

    def labeling(self, dataset: str, algorithm: str) -> SelfLabel | None:
        if not self.labeling_epochs:
            return None
        family = family_of(dataset)
        if family in presets.CONTRASTIVE_CLUSTERS:
            published = presets.paper_self_labeling(family, algorithm)  # type: ignore[arg-type]
        else:
            published = change(presets.PAPER_SELF_LABELING,
                               {"training": {"views": ("clean", "augmented")}})
        shorter = self.labeling_epochs / published.training.epochs
        warmup, training = (
            replace(stage, epochs=max(1, round(shorter * stage.epochs)),
                    batch_size=min(stage.batch_size, 2 * self.batch_size))
            for stage in (published.warmup, published.training))
        return replace(published, warmup=warmup, training=training)

    def sample(self, dataset: str, folder: Folder) -> Sample:
        return _sample(self, dataset, folder, _modified_at(dataset, folder))

    def _prepared(self, data: Dataset) -> Sample:
        if data.split is None:
            data = data.take(slice(self.rows))
            return Sample(paper_data(data), np.asarray(data.labels))
        train, test = data.train.take(slice(self.rows)), data.test.take(slice(self.rows))
        inputs, test_inputs = paper_data(train), paper_data(test)
        if self.reading == "text":
            test_inputs = replace(test_inputs, mean=inputs.mean, std=inputs.std)
        held_out = Sample(test_inputs, np.asarray(test.labels))
        return Sample(inputs, np.asarray(train.labels), held_out)

    def size(self, dataset: str) -> int:
        return self.rows or (SETS[dataset].counts[0] if dataset in SETS else 10_000)

    def mini(self) -> "ContrastiveProtocol":
        small = replace(self.representation, backbone=ResNet(width=4), hidden=(32, 16),
                        embedding=16, projector=(32, 16))
        return replace(self, pretraining_epochs=4, epochs=8, batch_size=64, representation=small,
                       labeling_epochs=min(self.labeling_epochs, 4), side=8, rows=600,
                       n_clusters=None)


def family_of(dataset: str) -> str | None:
    """Return the paper's data set that this one is or is a part of: kmnist for kmnist_test."""
    known = (name for name in ALL_CLUSTERS if dataset == name or dataset.startswith(name + "_"))
    return max(known, key=len, default=None)


def _objective(algorithm: str, known: Mapping[str, Any]) -> Objective:
    if algorithm not in known:
        raise ValueError(f"There is no algorithm {algorithm!r}: choose from {', '.join(known)}.")
    return known[algorithm]


def _n_clusters(dataset: str, known: Mapping[str, int]) -> int:
    family = family_of(dataset) or ""
    if family not in known:
        raise ValueError(f"{dataset!r} is none of {', '.join(known)}: set its number of clusters, "
                         "n_clusters, in the protocol.")
    return known[family]


def _modified_at(dataset: str, folder: Folder) -> float | None:
    """Modification time of a user's file, so that a changed one is read again."""
    file = custom_file(dataset, folder=folder)
    return None if file is None else file.stat().st_mtime


@lru_cache(maxsize=1)  # groups of one data set usually follow each other
def _sample(protocol: AutoencoderProtocol | ContrastiveProtocol, dataset: str, folder: Folder,
            modified_at: float | None) -> Sample:
    data = load(dataset, folder=folder)
    if data.labels is None:
        raise ValueError(f"{dataset} has no labels to score runs against.")
    side = protocol.side
    return protocol._prepared(data if side is None else replace(data, resize_to=(side, side)))
