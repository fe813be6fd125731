"""Studies as values: which runs to compute, in groups that train stacked, and the keys of both."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, replace
from itertools import product
from typing import Any, get_args

from ..estimators.presets import PAPER_SEEDS, as_in_program
from ..interventions import Every, Intervention, WhenSettled
from ..objectives import DECObjective
from ..training.self_label import SelfLabel
from ..training.settings import Schedule, Settings, check_part
from ..utils.choices import PrecisionName
from ..utils.values import change, choice, integer, integers, to_json, value
from .measures import LABEL_FREE, MEASURES
from .protocols import AutoencoderProtocol, StudyProtocol
from .store.reader import grouped
from .store.store import PlannedRun

# Part of every key. Keys leave out default values: increase it when a default changes, or when
# the same settings start to give different numbers.
REVISION = 1


def canonical(thing: Any) -> str:
    return json.dumps(to_json(thing, defaults=False), sort_keys=True)


def digest(*things: Any) -> str:
    return hashlib.sha256(canonical((REVISION, *things)).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Pretraining:
    """Encoders that several groups start from, one per seed."""

    key: str
    dataset: str
    protocol: StudyProtocol
    settings: Settings
    seeds: tuple[int, ...]
    precision: PrecisionName

    @classmethod
    def of(cls, dataset: str, protocol: StudyProtocol, settings: Settings, seeds: tuple[int, ...],
           precision: PrecisionName) -> "Pretraining":
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
    """Runs that train stacked and are stored together; one entry of settings and seeds each."""

    key: str
    dataset: str
    protocol: StudyProtocol
    settings: tuple[Settings, ...]
    seeds: tuple[int, ...]
    runs: tuple[PlannedRun, ...]
    pretraining: Pretraining | None
    precision: PrecisionName
    measures: tuple[str, ...]
    evaluate_every: int
    clustering: str  # key without self-labeling, so that studies with and without it share work
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


def items(*, default: Any = MISSING, options: Collection[Any] = ()) -> Any:
    """Field of a value: a tuple, each item one of `options` if there are any."""

    def check(name: str, values: Any) -> tuple[Any, ...]:
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise ValueError(f"{name} must be a list, got {values!r}: put brackets around it.")
        for item in values:
            if options and item not in options:
                known = ", ".join(map(str, options))
                raise ValueError(f"There is no {item!r} among {name}: choose from {known}.")
        return tuple(values)

    return field(default=default, metadata={"check": check})


@value
class Variant:
    """One of the settings that a study compares.

    Parameters
    ----------
    name, intervention
        A name that is unique within the study; None for no intervention.
    changes
        Fields of the settings to change: ``{"clustering": {"lr": 5e-3}, "augment": None}``.
    factors
        Further columns of tables and figures, such as ``{"keep": 0.8}``.
    """

    name: str
    intervention: Intervention | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    factors: Mapping[str, Any] = field(default_factory=dict)


@value
class Study:
    """Every combination of data set, algorithm, start, variant and seed.

    Parameters
    ----------
    name, variants, about
        The name in a store, what to compare, and a one-line description.
    datasets, algorithms, pretrained, seeds
        What to combine the variants with.
    pretraining_seeds
        Seeds that are pretrained together, so that a study of fewer seeds shares the pretraining
        of a larger one. Those of each group if empty.
    protocol, precision
        How data and settings are prepared; see `Execution`.
    measures, scores
        Names of `MEASURES` to record, and of `LABEL_FREE` to compute for every run.
    evaluate_every
        Epochs between two points of a curve; there are more around interventions.
    largest_group, small_variants
        Maximal number of runs that train stacked; variants that `mini` keeps, all if empty.
    """

    name: str
    variants: tuple[Variant, ...] = items()
    about: str = ""
    datasets: tuple[str, ...] = items(
        default=("mnist", "usps", "optdigits", "fmnist", "kmnist", "gtsrb"))
    algorithms: tuple[str, ...] = items(default=("dec", "idec", "dcn"))
    pretrained: tuple[bool, ...] = items(default=(True,), options=(True, False))
    seeds: tuple[int, ...] = integers(default=PAPER_SEEDS)
    pretraining_seeds: tuple[int, ...] = integers(default=())
    protocol: StudyProtocol = AutoencoderProtocol()
    precision: PrecisionName = choice(*get_args(PrecisionName), default="auto")
    measures: tuple[str, ...] = items(default=(), options=MEASURES)
    evaluate_every: int = integer(default=10, least=1)
    largest_group: int = integer(default=40, least=1)
    small_variants: tuple[str, ...] = items(default=())
    scores: tuple[str, ...] = items(default=(), options=LABEL_FREE)

    def __post_init__(self) -> None:
        check_part("protocol", self.protocol, StudyProtocol)
        for variant in self.variants:
            check_part("Each of variants", variant, Variant)
        for name in (self.name, *(variant.name for variant in self.variants)):
            if not isinstance(name, str) or not name:
                raise ValueError(f"A name must be text and not empty, got {name!r}.")
        for name, values in (("datasets", self.datasets), ("algorithms", self.algorithms),
                             ("pretrained", self.pretrained), ("seeds", self.seeds),
                             ("names of variants", [variant.name for variant in self.variants])):
            if len(set(values)) < max(1, len(values)):
                given = ", ".join(map(str, values)) or "none"
                raise ValueError(f"{name} must be one or more, all different, got {given}.")

    def planned(self) -> list[PlannedRun]:
        return [run for group in self.groups() for run in group.runs]

    def groups(self) -> list[Group]:
        """List all runs in groups that train stacked, at most `largest_group` runs each."""
        groups: list[Group] = []
        for cell in product(self.datasets, self.algorithms, self.pretrained):
            base = self.protocol.settings(*cell[:2], pretrained=cell[2])
            pairs = [(variant, _settings(base, variant)) for variant in self.variants]
            stackable = grouped(pairs, lambda pair: canonical(replace(pair[1], intervention=None)))
            groups += [self._group(*cell, stack) for variants in stackable.values()
                       for stack in self._stacks(variants)]
        known: dict[str, PlannedRun] = {}
        for run in (run for group in groups for run in group.runs):
            if (first := known.setdefault(run.key, run)) is not run:
                raise ValueError(f"Two cells of {self.name!r} are the same run, since their "
                                 f"settings are equal: {first} and {run}. Remove or change one.")
        return groups

    def _stacks(self, variants: Sequence[tuple[Variant, Settings]]
                ) -> Iterator[list[tuple[Variant, Settings, int]]]:
        """Keep the seeds of a variant together: equal seeds share their pretraining."""
        step = max(1, self.largest_group // len(self.seeds))
        for first in range(0, len(variants), step):
            stack = [(variant, settings, seed)
                     for variant, settings in variants[first : first + step] for seed in self.seeds]
            for start in range(0, len(stack), self.largest_group):
                yield stack[start : start + self.largest_group]

    def _group(self, dataset: str, algorithm: str, pretrained: bool,
               stack: Sequence[tuple[Variant, Settings, int]]) -> Group:
        _, settings, seeds = zip(*stack, strict=True)
        protocol, pretraining = self.protocol, None
        if settings[0].pretraining is not None:
            together = self.pretraining_seeds or tuple(dict.fromkeys(seeds))
            pretraining = Pretraining.of(dataset, protocol, settings[0], together, self.precision)
        clustering = digest("group", dataset, protocol.preparation, settings, seeds,
                            pretraining and pretraining.key, self.precision, self.measures,
                            self.evaluate_every, *([self.scores] if self.scores else []))
        labeling = protocol.labeling(dataset, algorithm)
        key = clustering if labeling is None else digest(clustering, labeling)
        runs = tuple(PlannedRun(digest(key, position), key, dataset, algorithm, variant.name,
                                pretrained, seed, variant.factors)
                     for position, (variant, _, seed) in enumerate(stack))
        return Group(key, dataset, protocol, settings, seeds, runs, pretraining, self.precision,
                     self.measures, self.evaluate_every, clustering, labeling, self.scores)

    def program(self) -> "Study":
        """Return the study in the reading of the authors' program, under a name of its own."""
        protocol = replace(self.protocol, reading="program")  # type: ignore[type-var, call-arg]
        if isinstance(protocol, AutoencoderProtocol) and all(
                "augment" in variant.changes and variant.changes["augment"] is None
                for variant in self.variants):
            protocol = replace(protocol, images="native")
        variants = tuple(replace(
            variant, intervention=as_in_program(variant.intervention), changes={
                name: as_in_program(change) if name == "first_centers" else change
                for name, change in variant.changes.items()}) for variant in self.variants)
        return replace(self, name=f"{self.name}-program", protocol=protocol, variants=variants,
                       precision="tf32")

    def mini(self) -> "Study":
        """Return a small study of the bundled digits that takes minutes on two cores."""
        small = self.protocol.mini()
        variants = tuple(_shorter(_sooner(variant), self.protocol, small)
                         for variant in self.variants
                         if not self.small_variants or variant.name in self.small_variants)
        return replace(
            self, name=f"{self.name}-mini", datasets=("digits",), seeds=self.seeds[:2],
            pretraining_seeds=(), protocol=small, variants=variants)


def _settings(base: Settings, variant: Variant) -> Settings:
    changes = dict(variant.changes)
    if base.pretraining is None and isinstance(changes.get("pretraining"), Mapping):
        del changes["pretraining"]
    try:
        return change(replace(base, intervention=variant.intervention), changes)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"The variant {variant.name!r} cannot be trained: {error}") from error


def _sooner(variant: Variant) -> Variant:
    """Intervene four times as often, since the small form trains for fewer epochs."""
    intervention = variant.intervention
    if isinstance(intervention, WhenSettled):
        sooner = {name: max(1, getattr(intervention, name) // 4)
                  for name in ("look", "shortest", "longest")}
        return replace(variant, intervention=replace(intervention, **sooner))
    if not isinstance(intervention, Every):
        return variant
    interval = max(2, intervention.interval // 4)
    often = replace(intervention, interval=interval)
    if "interval" not in variant.factors:
        return replace(variant, intervention=often)
    name = variant.name.replace(f"T={intervention.interval}", f"T={interval}")
    return Variant(name, often, variant.changes, {**variant.factors, "interval": interval})


def _shorter(variant: Variant, protocol: StudyProtocol, small: StudyProtocol) -> Variant:
    """Reduce a variant's own epochs in proportion to the protocol's."""
    changes = dict(variant.changes)
    for stage, name in (("pretraining", "pretraining_epochs"), ("clustering", "epochs")):
        current, usual = changes.get(stage), getattr(protocol, name, 0)
        if isinstance(current, Mapping) and current.get("epochs") and usual:
            epochs = max(1, round(current["epochs"] * getattr(small, name) / usual))
            changes[stage] = {**current, "epochs": epochs}
    return replace(variant, changes=changes)
