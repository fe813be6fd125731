"""How a study prepares its data and its settings, before its variants change anything."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from ..data import Dataset, Lens, Prepared, load, prepare
from ..data.sets.load import SETS, own_file
from ..estimators.presets import (
    CLUSTERS,
    CONTRASTIVE_CLUSTERS,
    CONTRASTIVE_OBJECTIVES,
    OBJECTIVES,
    contrastive_protocol,
    paper_data,
    paper_protocol,
    paper_self_labeling,
)
from ..representations import Autoencoder, Representation, ResNet, SimCLR
from ..training.self_label import SelfLabel
from ..training.settings import Schedule, Settings
from ..utils.values import check_int, value
from .checks import distinct, wholes


@dataclass(frozen=True, eq=False)
class Sample:
    """What runs train on: n samples as training takes them, and their classes (n,). held_out: what they are scored on, where
    that is something else."""

    inputs: Prepared
    classes: np.ndarray
    held_out: Sample | None = None


@runtime_checkable
class StudyProtocol(Protocol):
    """A frozen value."""

    keeps_clusterings: ClassVar[bool]
    """Whether trained clusterings stay in the work folder: where they are dear, and another study may go on from them."""

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

    def pretrained_as(self, representation: Representation) -> Representation:
        """How a representation is pretrained: what only matters afterwards should not keep algorithms from sharing."""
        ...

    def labeling(self, dataset: str, algorithm: str) -> SelfLabel | None:
        """The third stage, where there is one."""
        ...

    def mini(self) -> StudyProtocol:
        """The same for the embedded digits on two cores within minutes."""
        ...


@value
class AutoencoderProtocol:
    """The published protocol of the autoencoder sets, the quirks of the authors' program included.

    side: images are resized to so many pixels, None for the size the paper gives each set. rows: only the first so many
    samples. classes: only samples of these, all where empty. n_clusters: of every set, None for as many as there are classes,
    which is known of the paper's sets. least_side, light: of a `Lens` through which images are seen as they were distributed
    and not equalised, as estimators see them, in place of the published preparation.
    """

    pretraining_epochs: int = 250
    epochs: int = 400
    batch_size: int = 256
    hidden: tuple[int, ...] = (1024, 512, 256)
    side: int | None = None
    rows: int | None = None
    n_clusters: int | None = None
    classes: tuple[int, ...] = ()
    light: Literal["kept", "removed"] = "kept"
    least_side: int | None = None
    keeps_clusterings: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_numbers(self, {"pretraining_epochs": 0, "epochs": 0, "batch_size": 1})
        object.__setattr__(self, "hidden", wholes("hidden", self.hidden, 1))
        object.__setattr__(self, "classes", wholes("classes", self.classes, 0))
        distinct("classes", self.classes)
        Lens(self.least_side, self.light)  # raises where it cannot be

    @property
    def preparation(self) -> str:
        some = f", classes={self.classes}" if self.classes else ""
        enlarged = f", least_side={self.least_side}" if self.least_side else ""
        return f"{'paper' if self.light == 'kept' else 'light removed'}, side={self.side}, rows={self.rows}{some}{enlarged}"

    def settings(self, dataset: str, algorithm: str, *, pretrained: bool) -> Settings:
        if algorithm not in OBJECTIVES:
            raise ValueError(f"There is no algorithm {algorithm!r}: choose among {', '.join(OBJECTIVES)}.")
        family = family_of(dataset)
        n_clusters = self.n_clusters or len(self.classes) or CLUSTERS.get(family or "")
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
        return _autoencoder_sample(dataset, self.side, self.rows, self.classes, Lens(self.least_side, self.light),
                                   None if folder is None else os.fspath(folder), _changed_at(dataset, folder))

    def size(self, dataset: str) -> int:
        return self.rows or (sum(SETS[dataset].counts) if dataset in SETS else 10_000)

    def pretrained_as(self, representation: Representation) -> Representation:
        return representation

    def labeling(self, dataset: str, algorithm: str) -> SelfLabel | None:
        return None

    def mini(self) -> AutoencoderProtocol:
        return replace(self, pretraining_epochs=10, epochs=20, batch_size=64, hidden=(64, 64, 32), side=8,
                       n_clusters=None, light="kept", least_side=None)


@value
class ContrastiveProtocol:
    """The published protocol of the contrastive sets: trained on the training part, scored on the test part.

    labeling_epochs: of self-labeling after the clustering, 200 in the paper; 0 leaves it out. side, rows, n_clusters: as for
    the autoencoder sets.
    """

    pretraining_epochs: int = 1000
    epochs: int = 1000
    batch_size: int = 512
    labeling_epochs: int = 0
    representation: SimCLR = SimCLR(reduction="sum")
    side: int | None = None
    rows: int | None = None
    n_clusters: int | None = None
    keeps_clusterings: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_numbers(self, {"pretraining_epochs": 0, "epochs": 0, "batch_size": 1, "labeling_epochs": 0})
        if not isinstance(self.representation, SimCLR):
            raise ValueError(f"representation must be a SimCLR, got {self.representation!r}.")

    @property
    def preparation(self) -> str:
        return f"paper, train and test, side={self.side}, rows={self.rows}"

    def settings(self, dataset: str, algorithm: str, *, pretrained: bool) -> Settings:
        if algorithm not in CONTRASTIVE_OBJECTIVES:
            raise ValueError(f"There is no algorithm {algorithm!r}: choose among {', '.join(CONTRASTIVE_OBJECTIVES)}.")
        family, known = family_of(dataset), {**CLUSTERS, **CONTRASTIVE_CLUSTERS}
        n_clusters = self.n_clusters or known.get(family or "")
        if n_clusters is None:
            raise ValueError(f"{dataset!r} is none of {', '.join(known)}: say how many clusters to look for, n_clusters = … "
                             "under [protocol].")
        representation = self.representation
        if algorithm == "dec":
            representation = replace(representation, encoding="apart and again")
        channels = 3 if family is None else SETS[family].image_shape[0]
        base = contrastive_protocol(n_clusters, CONTRASTIVE_OBJECTIVES[algorithm], representation, channels=channels)
        assert base.pretraining is not None and base.clustering is not None
        return replace(
            base, intervention=None,
            pretraining=self._schedule(base.pretraining, self.pretraining_epochs) if pretrained else None,
            clustering=self._schedule(base.clustering, self.epochs))

    def _schedule(self, base: Schedule, epochs: int) -> Schedule:
        return replace(base, epochs=epochs, batch_size=self.batch_size, warmup_epochs=min(base.warmup_epochs, epochs // 10))

    def pretrained_as(self, representation: Representation) -> Representation:
        if not isinstance(representation, SimCLR):
            return representation
        return replace(representation, encoding=self.representation.encoding)  # type: ignore[return-value]

    def labeling(self, dataset: str, algorithm: str) -> SelfLabel | None:
        if not self.labeling_epochs:
            return None
        colour = family_of(dataset) in CONTRASTIVE_CLUSTERS
        published = paper_self_labeling(family_of(dataset), algorithm) if colour else SelfLabel(  # type: ignore[arg-type]
            evenness=0.0, training=replace(SelfLabel().training, views=("clean", "augmented")))
        shorter = self.labeling_epochs / published.training.epochs
        return replace(
            published, warmup=replace(published.warmup, epochs=max(1, round(shorter * published.warmup.epochs)),
                                      batch_size=min(published.warmup.batch_size, 2 * self.batch_size)),
            training=replace(published.training, epochs=self.labeling_epochs,
                             batch_size=min(published.training.batch_size, 2 * self.batch_size)))

    def sample(self, dataset: str, folder: str | os.PathLike[str] | None) -> Sample:
        return _contrastive_sample(dataset, self.side, self.rows, None if folder is None else os.fspath(folder),
                                   _changed_at(dataset, folder))

    def size(self, dataset: str) -> int:
        return self.rows or (SETS[dataset].counts[0] if dataset in SETS else 10_000)

    def mini(self) -> ContrastiveProtocol:
        small = replace(self.representation, backbone=ResNet(width=4), hidden=(32, 16), embedding=16, projector=(32, 16))
        return replace(self, pretraining_epochs=4, epochs=8, batch_size=64, labeling_epochs=min(self.labeling_epochs, 4),
                       representation=small, side=8, rows=600, n_clusters=None)


def _check_numbers(protocol: StudyProtocol, least: Mapping[str, int]) -> None:
    """Whole numbers, of at least so much; those that every protocol has may be None."""
    limited = [name for name in ("side", "rows", "n_clusters") if getattr(protocol, name) is not None]
    for name, lowest in {**least, **dict.fromkeys(limited, 1)}.items():
        object.__setattr__(protocol, name, check_int(name, getattr(protocol, name), lowest))


def family_of(dataset: str) -> str | None:
    """The set of the paper that this one is, or is a part of as kmnist_test is of kmnist."""
    known = (*CLUSTERS, *CONTRASTIVE_CLUSTERS)
    return max((one for one in known if dataset == one or dataset.startswith(one + "_")), key=len, default=None)


def _labeled(dataset: str, side: int | None, rows: int | None, folder: str | None) -> Dataset:
    found = load(dataset, folder=folder)
    if found.labels is None:
        raise ValueError(f"{dataset} has no labels to score runs against.")
    found = found if side is None else replace(found, resize_to=(side, side))
    return found if rows is None else found.take(slice(rows))


def _changed_at(dataset: str, folder: str | os.PathLike[str] | None) -> float | None:
    """When a file of one's own was written, which is not remembered beyond."""
    own = own_file(dataset, folder=folder)
    return None if own is None else own.stat().st_mtime


@lru_cache(maxsize=1)  # groups of one set usually follow each other
def _autoencoder_sample(dataset: str, side: int | None, rows: int | None, classes: tuple[int, ...],
                        lens: Lens, folder: str | None, changed_at: float | None) -> Sample:
    found = _labeled(dataset, side, rows, folder)
    if classes:
        _check_classes(found, classes)
        found = found.take(np.isin(np.asarray(found.labels), classes))
    if lens.least_side is not None and side is None:
        found = replace(found, resize_to=None)  # the lens does that
    prepared = paper_data(found) if lens == Lens() else prepare(found, equalized=False, lens=lens)
    return Sample(prepared, np.asarray(found.labels))


def _check_classes(found: Dataset, wanted: Sequence[int]) -> None:
    known = np.unique(np.asarray(found.labels)).tolist()
    missing = [one for one in wanted if one not in known]
    if missing:
        raise ValueError(f"No sample of {found.name} is of the class {missing[0]}, which classes names: of those looked at the "
                         f"classes are {', '.join(map(str, known))}.")


@lru_cache(maxsize=1)
def _contrastive_sample(dataset: str, side: int | None, rows: int | None, folder: str | None,
                        changed_at: float | None) -> Sample:
    found, some = _labeled(dataset, side, None, folder), slice(rows)
    if found.split is None:
        found = found.take(some)
        return Sample(paper_data(found), np.asarray(found.labels))
    train, test = found.train.take(some), found.test.take(some)
    inputs = paper_data(train)
    held_out = Sample(replace(paper_data(test), mean=inputs.mean, std=inputs.std), np.asarray(test.labels))
    return Sample(inputs, np.asarray(train.labels), held_out)
