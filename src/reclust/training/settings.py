"""The complete settings of a run, as one value."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from functools import cached_property
from types import FunctionType
from typing import Any, Literal

from typing_extensions import get_protocol_members, is_protocol

from ..data.augmentation.affine import Augmentation
from ..interventions import Intervention, Recluster, Step
from ..objectives import Objective
from ..representations import Autoencoder, Representation
from ..utils.values import check_float, check_int, expanded, same, value

View = Literal["clean", "augmented"] | Augmentation


@value
class Schedule:
    """How one phase of training is optimised.

    views: what a batch consists of: "clean" samples, samples "augmented" as the settings say, or by an augmentation given
        here. The first view decides assignments; all of them learn. Where the settings have no augmentation, views that
        ask for it are left out.
    clip_norm: the largest l2 norm of a replica's network gradient; centres are not clipped.
    warmup_epochs: over these the learning rate rises linearly from 1 %.
    weight_decay: decoupled from the gradient, as in AdamW, on the parameters that the representation names.
    network: "frozen" leaves it as it is, BatchNorm statistics included, and trains what the objective learns.
    first_view: "learns" like the others, or only "decides": it is then encoded by itself, and no gradient passes through it.
    """

    epochs: int
    lr: float = 1e-3
    batch_size: int = 256
    views: tuple[View, ...] = ("clean", "augmented")
    clip_norm: float | None = 500.0
    warmup_epochs: int = 0
    weight_decay: float = 0.0
    network: Literal["trained", "frozen"] = "trained"
    first_view: Literal["learns", "decides"] = "learns"

    def __post_init__(self) -> None:
        object.__setattr__(self, "views", tuple(self.views))
        for name, least in (("epochs", 0), ("batch_size", 1), ("warmup_epochs", 0)):
            object.__setattr__(self, name, check_int(name, getattr(self, name), least))
        object.__setattr__(self, "lr", check_float("lr", self.lr))
        if not 0 < self.lr < math.inf:
            raise ValueError(f"lr must be above 0 and finite, got {self.lr!r}.")
        if self.clip_norm is not None and not check_float("clip_norm", self.clip_norm) > 0:
            raise ValueError(f"clip_norm must be above 0, or None for no clipping, got {self.clip_norm!r}.")
        object.__setattr__(self, "weight_decay", check_float("weight_decay", self.weight_decay))
        if self.weight_decay < 0:
            raise ValueError(f"weight_decay must be 0 or more, got {self.weight_decay!r}.")
        for name, allowed in (("network", ("trained", "frozen")), ("first_view", ("learns", "decides"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be '{allowed[0]}' or '{allowed[1]}', got {getattr(self, name)!r}.")
        if not self.views or not all(view in ("clean", "augmented") or callable(view) for view in self.views):
            raise ValueError(f"views must be some of 'clean', 'augmented' and augmentations, got {self.views!r}.")

    def learning_rate(self, epoch: int) -> float:
        if epoch >= self.warmup_epochs:
            return self.lr
        return self.lr * (0.01 + 0.99 * epoch / self.warmup_epochs)


PRETRAINING = Schedule(epochs=50, views=("clean",))
CLUSTERING = Schedule(epochs=100)


@value
class Settings:
    """Everything that decides what a run computes, but for its data and its seed.

    pretraining: representation loss alone; None starts from scratch.
    clustering: None stops after pretraining, so that several runs can go on from it.
    first_centers: how the first centres are found, after pretraining; None goes on with those of the result given as start,
        and with all else of its state that the objective knows.
    """

    n_clusters: int
    objective: Objective
    representation: Representation = Autoencoder()
    intervention: Intervention | None = None
    pretraining: Schedule | None = PRETRAINING
    clustering: Schedule | None = CLUSTERING
    first_centers: Recluster | None = Recluster(subsample=None)
    augment: Augmentation | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_clusters", check_int("n_clusters", self.n_clusters, 1))

    @property
    def augmentations(self) -> list[Augmentation]:
        """All that a view may be made by."""
        views = [view for schedule in (self.pretraining, self.clustering) if schedule is not None for view in schedule.views]
        return [*([] if self.augment is None else [self.augment]), *(view for view in views if not isinstance(view, str))]


@value
class Execution:
    """How a run is computed: none of this changes what it means.

    device: "auto" takes a GPU when there is one.
    precision: of all arithmetic. "bf16" computes the network's products in bfloat16 and keeps weights, losses and centres in
        float32; "auto" does so on GPUs with units for it and is float32 on every CPU, so that labels do not depend on it.
        On a GPU float32 products use the TF32 units.
    executor: "auto" runs one replica as a plain PyTorch loop and maps several with vmap, where their representation is worth
        mapping; "plain" loops over replicas.
    compile: augmentations of images, and networks that train as plain modules, with `torch.compile`; "auto" does so in long
        phases on a GPU.
    time_budget: seconds after which training stops between two epochs, with what it has.
    """

    device: str = "auto"
    precision: Literal["auto", "float32", "float64", "bf16"] = "float32"
    executor: Literal["auto", "plain", "vmap"] = "auto"
    compile: Literal["auto", "always", "never"] = "auto"
    time_budget: float | None = None

    def __post_init__(self) -> None:
        for name, allowed in (("precision", ("auto", "float32", "float64", "bf16")),
                              ("executor", ("auto", "plain", "vmap")), ("compile", ("auto", "always", "never"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}.")
        if self.time_budget is not None and not check_float("time_budget", self.time_budget) > 0:
            raise ValueError(f"time_budget must be above 0 seconds, or None for no limit, got {self.time_budget!r}.")

    def since(self, begun: float) -> Execution:
        """The same with what is left of its time, for a part that begins now; begun: `time.monotonic()` then."""
        if self.time_budget is None:
            return self
        return dataclasses.replace(self, time_budget=max(1e-9, self.time_budget - (time.monotonic() - begun)))


def one_each(settings: Settings | Sequence[Settings], seeds: Sequence[int]) -> list[Settings]:
    """The settings of each replica, checked to be such that they can train side by side."""
    each = [settings] * len(seeds) if isinstance(settings, Settings) else list(settings)
    if not seeds:
        raise ValueError("seeds is empty: give at least one seed.")
    if len(each) != len(seeds):
        raise ValueError(f"{len(each)} settings for {len(seeds)} seeds: give one for all, or one for each seed.")
    for one in each:
        check_kinds(one)
    for name in ("n_clusters", "representation", "pretraining", "clustering", "first_centers", "augment"):
        if not all(same(getattr(other, name), getattr(each[0], name)) for other in each):
            raise ValueError(f"Replicas that train together must agree in {name}: train the others in a run of their own.")
    for other in each[1:]:
        _check_stackable(each[0].objective, other.objective)
    return each


def check_kinds(settings: Settings) -> None:
    """Things of the wrong kind are found before training, not when they are first used."""
    for name, kind in (("objective", Objective), ("representation", Representation), ("intervention", Intervention),
                       ("first_centers", Step)):
        check_kind(name, getattr(settings, name), kind, optional=kind in (Intervention, Step))
    if not dataclasses.is_dataclass(settings.objective):
        raise ValueError(f"objective={settings.objective!r} must be a frozen dataclass: decorate its class with @value.")
    if settings.augment is not None and (isinstance(settings.augment, type) or not callable(settings.augment)):
        raise ValueError(f"augment must be a callable (x, keys) -> x, such as Affine(), or None, got {settings.augment!r}.")
    for name, learns in (("pretraining", False), ("clustering", bool(settings.objective.trainable))):
        schedule = getattr(settings, name)
        if schedule is not None and schedule.network == "frozen" and not learns:
            raise ValueError(f"With the network frozen there is nothing to learn in {name}: use network='trained'.")


def check_kind(name: str, given: Any, kind: type, *, optional: bool) -> None:
    """Raise what is wrong with a value that is to be of this kind, and what to write instead."""
    if optional and given is None:
        return
    if isinstance(given, type):  # it has the methods of its instances, and so would pass for one
        raise ValueError(f"{name} must be a value, and {given.__name__} is a class: write {given.__name__}().")
    if isinstance(given, kind):
        return
    members = sorted(get_protocol_members(kind)) if is_protocol(kind) else []
    lacking = [member for member in members if not hasattr(given, member)]
    if isinstance(given, FunctionType):
        advice = f"write {given.__name__}()"
    elif kind is Intervention and isinstance(given, (Step, tuple, list)):
        advice = "steps make a sentence: write Every(20, steps)"
    elif kind is Step:
        advice = "write Recluster(method), or Recluster(KMeans()), for a way to find centres"
    else:
        advice = f"see reclust.{kind.__name__}" + (f", of which it lacks {', '.join(lacking)}" if lacking else "")
    raise ValueError(f"{name}={given!r} is not what training needs there: {advice}.")


def _check_stackable(one: Objective, other: Objective) -> None:
    """Objectives that train together may differ in their float fields only."""
    one, other = expanded(one), expanded(other)
    if type(one) is not type(other):
        raise ValueError(f"{type(one).__name__} and {type(other).__name__} cannot train together: give each a run of its own.")
    for field in dataclasses.fields(one):  # type: ignore[arg-type]
        here, there = getattr(one, field.name), getattr(other, field.name)
        kinds = {type(here), type(there)}
        if not same(here, there) and not (float in kinds and kinds <= {int, float}):
            raise ValueError(
                f"Objectives that train together may differ in numbers only, but {field.name} is {here!r} and {there!r}: "
                "give each a run of its own."
            )
    if same(one, other):
        return
    kept = set(getattr(one, "__dict__", ())) - {field.name for field in dataclasses.fields(one)}  # type: ignore[arg-type]
    kept = {name for name in kept if not isinstance(getattr(type(one), name, None), cached_property)}
    if kept:
        raise ValueError(f"{type(one).__name__} keeps {', '.join(sorted(kept))} beside its fields, which would be the same for "
                         "objectives that train together and differ: make it a field, or a property.")
