"""Groups of runs that train stacked, the pretraining they share, and the keys of both."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from ..objectives import DECObjective
from ..training.self_label import SelfLabel
from ..training.settings import Schedule, Settings
from ..utils.choices import Precision
from ..utils.values import to_json
from .protocols import StudyProtocol
from .store.store import PlannedRun

# Part of every key. Keys leave out default values: increase it when a default changes, or when
# the same settings start to give different numbers.
REVISION = 1


def canonical(thing: Any) -> str:
    return json.dumps(to_json(thing, defaults=False), sort_keys=True)


def digest(*things: Any) -> str:
    """Hash everything that decides a result."""
    return hashlib.sha256(canonical((REVISION, *things)).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Pretraining:
    """Encoders that several groups start from, one per seed."""

    key: str
    dataset: str
    protocol: StudyProtocol
    settings: Settings
    seeds: tuple[int, ...]
    precision: Precision

    @classmethod
    def of(cls, dataset: str, protocol: StudyProtocol, settings: Settings, seeds: tuple[int, ...],
           precision: Precision) -> Pretraining:
        """Drop what only matters after pretraining, so that more groups share it."""
        assert settings.pretraining is not None
        plain = Settings(
            n_clusters=settings.n_clusters, objective=DECObjective(), clustering=None,
            representation=protocol.pretrained_as(settings.representation),
            pretraining=settings.pretraining,
            augment=settings.augment if "augmented" in settings.pretraining.views else None)
        key = digest("pretraining", dataset, protocol.preparation, plain, seeds, precision)
        return cls(key, dataset, protocol, plain, seeds, precision)

    @property
    def cost(self) -> float:
        assert self.settings.pretraining is not None
        return _cost(self.protocol.size(self.dataset), self.settings.pretraining, len(self.seeds))


@dataclass(frozen=True)
class Group:
    """Runs that train stacked and are stored together, with one entry of settings and seeds each.

    clustering is the key without self-labeling, so that studies with and without it share work.
    """

    key: str
    dataset: str
    protocol: StudyProtocol
    settings: tuple[Settings, ...]
    seeds: tuple[int, ...]
    runs: tuple[PlannedRun, ...]
    pretraining: Pretraining | None
    precision: Precision
    measures: tuple[str, ...]
    evaluate_every: int
    clustering: str
    labeling: SelfLabel | None
    scores: tuple[str, ...]

    @property
    def cost(self) -> float:
        """Forward passes of single samples, without pretraining; proportional to time."""
        return sum(self.stage_costs)

    @property
    def stage_costs(self) -> tuple[float, ...]:
        """Cost of the clustering, then of the two stages of self-labeling."""
        stages = [self.settings[0].clustering]
        if self.labeling is not None:
            stages += [self.labeling.warmup, self.labeling.training]
        size = self.protocol.size(self.dataset)
        return tuple(_cost(size, stage, len(self.seeds)) for stage in stages if stage is not None)


def _cost(n: int, schedule: Schedule, replicas: int) -> float:
    return float(n * schedule.epochs * len(schedule.views) * replicas)
