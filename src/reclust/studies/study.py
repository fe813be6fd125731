"""Studies as values: what to run, in which groups, and how to know a run again."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Any, get_args

from ..estimators.presets import PAPER_SEEDS
from ..interventions import Every, Intervention, WhenSettled
from ..objectives import DECObjective
from ..training.self_label import SelfLabel
from ..training.settings import Schedule, Settings, check_kind, check_kinds
from ..utils.choices import Precision
from ..utils.values import check_int, essential_json, value
from . import checks
from .measures import LABEL_FREE, MEASURES
from .protocols import AutoencoderProtocol, StudyProtocol
from .store.store import PlannedRun

REVISION = 1
"""Part of every identity, which holds only what differs from the defaults: to be raised when a default changes, or when the
same settings come to mean other numbers."""


@value
class Variant:
    """One of the things a study compares.

    changes: fields of the settings that differ, nested as they are: {"clustering": {"lr": 5e-3}, "augment": None}.
    factors: what tells it from others in tables and figures beside its name, such as {"keep": 0.8}.
    """

    name: str
    intervention: Intervention | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    factors: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.text("The name of a variant", self.name)
        check_kind("intervention", self.intervention, Intervention, optional=True)
        if not isinstance(self.changes, Mapping):
            raise ValueError(f"The changes of {self.name!r} must be a table such as {{clustering = {{lr = 5e-3}}}}, "
                             f"got {self.changes!r}.")
        object.__setattr__(self, "factors", checks.factors(self.name, self.factors))


def _variants(name: str, given: Any) -> tuple[Variant, ...]:
    made = checks.several(name, given)
    for one in made:
        if not isinstance(one, Variant):
            raise ValueError(f"each of {name} must be a Variant, such as Variant('none'), got {one!r}.")
    return made


_LISTS: Mapping[str, Callable[[str, Any], tuple]] = MappingProxyType({
    "variants": _variants, "datasets": checks.texts, "algorithms": checks.texts, "pretrained": checks.truths,
    "seeds": partial(checks.wholes, least=0), "pretraining_seeds": partial(checks.wholes, least=0), "measures": checks.texts,
    "small_variants": checks.texts, "scores": checks.texts,
})
"""Fields of a study that are lists -> how they are checked."""


@value
class Study:
    """Every data set × algorithm × with or without pretraining × variant × seed.

    about: what it is for, in a line. pretraining_seeds: seeds that are pretrained together, so that studies of fewer seeds
    share the pretraining of larger ones; those of a group where empty. precision: of the arithmetic, see `Execution`.
    measures: names of `MEASURES` to record. evaluate_every: epochs between two points of a curve; around interventions
    there are more. largest_group: how many runs train stacked. small_variants: those that the small form keeps, all where
    empty. scores: names of `LABEL_FREE` to give every run.
    """

    name: str
    variants: tuple[Variant, ...]
    about: str = ""
    datasets: tuple[str, ...] = ("mnist", "usps", "optdigits", "fmnist", "kmnist", "gtsrb")
    algorithms: tuple[str, ...] = ("dec", "idec", "dcn")
    pretrained: tuple[bool, ...] = (True,)
    seeds: tuple[int, ...] = PAPER_SEEDS
    pretraining_seeds: tuple[int, ...] = ()
    protocol: StudyProtocol = AutoencoderProtocol()
    precision: Precision = "auto"
    measures: tuple[str, ...] = ()
    evaluate_every: int = 10
    largest_group: int = 40
    small_variants: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.file_name("The name of a study", self.name)
        for name, make in _LISTS.items():
            object.__setattr__(self, name, make(name, getattr(self, name)))
        for name in ("datasets", "algorithms", "pretrained", "seeds", "variants"):
            if not getattr(self, name):
                raise ValueError(f"The study {self.name!r} has no {name}: give at least one.")
        for name in ("datasets", "algorithms", "pretrained", "seeds", "pretraining_seeds"):
            checks.distinct(name, getattr(self, name))
        if max(self.seeds) >= 2**63:
            raise ValueError(f"Seeds are below 2**63, got {max(self.seeds)}.")
        for name in ("evaluate_every", "largest_group"):
            object.__setattr__(self, name, check_int(name, getattr(self, name), 1))
        if self.precision not in get_args(Precision):
            raise ValueError(f"precision must be one of {', '.join(get_args(Precision))}, got {self.precision!r}.")
        if isinstance(self.protocol, type) or not isinstance(self.protocol, StudyProtocol):
            raise ValueError('protocol must be a value such as AutoencoderProtocol(epochs=100), in a file {kind = '
                             f'"ContrastiveProtocol"}}, got {self.protocol!r}.')
        for what, given, known in (("measure", self.measures, MEASURES), ("label-free score", self.scores, LABEL_FREE)):
            unknown = [name for name in given if name not in known]
            if unknown:
                raise ValueError(f"There is no {what} {unknown[0]!r}: choose among {', '.join(known)}.")
        names = [variant.name for variant in self.variants]
        if len(set(names)) < len(names):
            raise ValueError(f"The variants of {self.name!r} need different names, got {', '.join(names)}.")
        missing = [seed for seed in self.seeds if self.pretraining_seeds and seed not in self.pretraining_seeds]
        if missing:
            raise ValueError(f"pretraining_seeds lack the seed {missing[0]}, which {self.name!r} trains with.")

    def groups(self) -> list[Group]:
        """All runs, in groups that train stacked: seeds of a variant next to each other, at most `largest_group` runs."""
        made = []
        for dataset, algorithm, pretrained in product(self.datasets, self.algorithms, self.pretrained):
            base = self.protocol.settings(dataset, algorithm, pretrained=pretrained)
            each = [(variant, _settings(base, variant)) for variant in self.variants]
            for stackable in _alike(each, lambda pair: _canonical(replace(pair[1], intervention=None))):
                for members in self._stacks(stackable):
                    made.append(self._group(dataset, algorithm, pretrained, members))
        checks.apart(self.name, [run for group in made for run in group.runs])
        return made

    def _stacks(self, each: Sequence[tuple[Variant, Settings]]) -> Iterator[list[tuple[Variant, Settings, int]]]:
        """Whole variants as long as that goes: groups of the same seeds in the same order start from the same encoders."""
        whole = max(1, self.largest_group // len(self.seeds))
        for first in range(0, len(each), whole):
            members = [(*one, seed) for one in each[first : first + whole] for seed in self.seeds]
            for start in range(0, len(members), self.largest_group):
                yield members[start : start + self.largest_group]

    def _group(self, dataset: str, algorithm: str, pretrained: bool,
               members: Sequence[tuple[Variant, Settings, int]]) -> Group:
        settings, seeds = tuple(one for _, one, _ in members), tuple(seed for _, _, seed in members)
        pretraining = None
        if settings[0].pretraining is not None:
            together = self.pretraining_seeds or tuple(dict.fromkeys(seeds))
            pretraining = Pretraining.of(dataset, self.protocol, settings[0], together, self.precision)
        clustering = _digest("group", dataset, self.protocol.preparation, settings, seeds, pretraining and pretraining.key,
                             self.precision, self.measures, self.evaluate_every, *([self.scores] if self.scores else []))
        labeling = self.protocol.labeling(dataset, algorithm)
        key = clustering if labeling is None else _digest(clustering, labeling)
        runs = tuple(
            PlannedRun(_digest(key, position), key, dataset, algorithm, variant.name, pretrained, seed, variant.factors)
            for position, (variant, _, seed) in enumerate(members))
        return Group(key, dataset, self.protocol, settings, seeds, runs, pretraining, self.precision, self.measures,
                     self.evaluate_every, clustering, labeling, self.scores)

    @property
    def n_runs(self) -> int:
        parts = (self.datasets, self.algorithms, self.pretrained, self.variants, self.seeds)
        return math.prod(len(part) for part in parts)

    def planned(self) -> list[PlannedRun]:
        """All runs, variants of one cell next to each other."""
        return [run for group in self.groups() for run in group.runs]

    def mini(self) -> Study:
        """A form that finishes within minutes on two cores, with the embedded digits; a study of its own."""
        kept = [variant for variant in self.variants if not self.small_variants or variant.name in self.small_variants]
        small = self.protocol.mini()
        return replace(
            self, name=f"{self.name}-mini", datasets=("digits",), seeds=self.seeds[:2], pretraining_seeds=(), protocol=small,
            variants=tuple(_shorter(_sooner(variant), self.protocol, small) for variant in kept))


@dataclass(frozen=True)
class Pretraining:
    """Encoders that several groups start from, one for each seed."""

    key: str
    dataset: str
    protocol: StudyProtocol
    settings: Settings
    seeds: tuple[int, ...]
    precision: Precision

    @classmethod
    def of(cls, dataset: str, protocol: StudyProtocol, settings: Settings, seeds: tuple[int, ...],
           precision: Precision) -> Pretraining:
        """What these settings begin with: nothing that only matters afterwards tells one from another."""
        assert settings.pretraining is not None
        plain = Settings(n_clusters=settings.n_clusters, objective=DECObjective(),
                         representation=protocol.pretrained_as(settings.representation), pretraining=settings.pretraining,
                         clustering=None,
                         augment=settings.augment if "augmented" in settings.pretraining.views else None)
        key = _digest("pretraining", dataset, protocol.preparation, plain, seeds, precision)
        return cls(key, dataset, protocol, plain, seeds, precision)

    @property
    def cost(self) -> float:
        assert self.settings.pretraining is not None
        return _cost(self.protocol.size(self.dataset), self.settings.pretraining, len(self.seeds))


@dataclass(frozen=True)
class Group:
    """Runs that train stacked and are committed whole; settings, seeds and runs have one entry each."""

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
    """Key of the clustering itself, the same with and without a third stage."""
    labeling: SelfLabel | None
    scores: tuple[str, ...]

    @property
    def cost(self) -> float:
        """Passes of a sample through a network: what time is expected to grow with, pretraining not counted."""
        return sum(self.stage_costs)

    @property
    def stage_costs(self) -> tuple[float, ...]:
        """Of the clustering, and of the two parts of a third stage."""
        stages = [self.settings[0].clustering] if self.labeling is None else [
            self.settings[0].clustering, self.labeling.warmup, self.labeling.training]
        return tuple(_cost(self.protocol.size(self.dataset), stage, len(self.seeds)) for stage in stages if stage is not None)


def changed(given: Any, changes: Mapping[str, Any]) -> Any:
    """A value with some fields replaced; a mapping changes fields within a field that is a value itself."""
    names = {one.name for one in fields(given)}
    unknown = [name for name in changes if name not in names]
    if unknown:
        raise ValueError(f"{type(given).__name__} has no field {unknown[0]!r}; it has {', '.join(sorted(names))}.")
    return replace(given, **{name: _changed_part(name, getattr(given, name), change) for name, change in changes.items()})


def _changed_part(name: str, own: Any, change: Any) -> Any:
    if isinstance(change, Mapping) and is_dataclass(own):
        return changed(own, change)
    if isinstance(change, Mapping) and own is None:
        raise ValueError(f"There is no {name} whose fields {', '.join(change)} could be changed: give a whole value, in a file "
                         "one with a kind.")
    return change


def _settings(base: Settings, variant: Variant) -> Settings:
    """Those of a variant; fields of a pretraining are changed where there is one."""
    changes = {name: change for name, change in variant.changes.items()
               if not (name == "pretraining" and base.pretraining is None and isinstance(change, Mapping))}
    try:
        made = changed(replace(base, intervention=variant.intervention), changes)
        if made.clustering is None:
            raise ValueError("runs of a study need a clustering; for the first centres alone, change it to {epochs = 0}.")
        for name in ("pretraining", "clustering"):
            check_kind(name, getattr(made, name), Schedule, optional=True)
        check_kinds(made)
    except (ValueError, TypeError) as error:
        raise ValueError(f"The variant {variant.name!r} cannot be trained: {error}") from error
    return made


def _sooner(variant: Variant) -> Variant:
    """Four times as often, as the small form trains for fewer epochs; where the interval is a factor, it is the new one."""
    given = variant.intervention
    if isinstance(given, WhenSettled):
        look, shortest, longest = (max(1, epochs // 4) for epochs in (given.look, given.shortest, given.longest))
        return replace(variant, intervention=replace(given, look=look, shortest=shortest, longest=longest))
    if not isinstance(given, Every):
        return variant
    sooner = replace(given, interval=max(2, given.interval // 4))
    if "interval" not in variant.factors:
        return replace(variant, intervention=sooner)
    return Variant(variant.name.replace(f"T={given.interval}", f"T={sooner.interval}"), sooner, variant.changes,
                   {**variant.factors, "interval": sooner.interval})


def _shorter(variant: Variant, whole: StudyProtocol, small: StudyProtocol) -> Variant:
    """Epochs of its own are fewer by as much as those of the protocol are."""
    changes = dict(variant.changes)
    for stage, name in (("pretraining", "pretraining_epochs"), ("clustering", "epochs")):
        own = changes.get(stage)
        if isinstance(own, Mapping) and own.get("epochs") and getattr(whole, name, 0):
            changes[stage] = {**own, "epochs": max(1, round(own["epochs"] * getattr(small, name) / getattr(whole, name)))}
    return replace(variant, changes=changes)


def _cost(n: int, schedule: Any, replicas: int) -> float:
    return float(n * schedule.epochs * len(schedule.views) * replicas)


def _alike(items: Sequence[Any], key: Callable[[Any], Hashable]) -> Iterable[list[Any]]:
    """Items of equal key together, in the order in which the keys appear."""
    together: dict[Hashable, list[Any]] = {}
    for item in items:
        together.setdefault(key(item), []).append(item)
    return together.values()


def _canonical(thing: Any) -> str:
    return json.dumps(essential_json(thing), sort_keys=True)


def _digest(*things: Any) -> str:
    """A stable name for everything that decides a result."""
    return hashlib.sha256(_canonical((REVISION, *things)).encode()).hexdigest()[:24]
