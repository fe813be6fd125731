"""Steps, and the interventions that decide when they are taken."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .. import draws
from ..utils.values import integer, same, value
from .target import Blocks, Target


class Step(ABC):
    """Base class of the steps of an intervention, each of which changes a target in place.

    Subclasses are frozen dataclasses, decorated with `reclust.value`.

    Examples
    --------
    >>> from reclust import Every, Step, value
    >>> @value
    ... class ScaleCenters(Step):
    ...     factor: float = 0.5
    ...
    ...     def __call__(self, target):
    ...         target.centers.mul_(self.factor)
    >>> intervention = Every(10, (ScaleCenters(),))
    """

    part: ClassVar[str] = "intervention"  # name under which its time is recorded
    compares_replicas: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, target: Target) -> None: ...

    def __init_subclass__(cls) -> None:
        # An overridden `__call__` must not be bypassed by the parent's `apply_together`.
        if "__call__" in vars(cls) and "apply_together" not in vars(cls):
            cls.apply_together = Step.apply_together  # type: ignore[method-assign]

    def apply_together(self, targets: Sequence[Target]) -> None:
        """Apply the step to several targets; override it where that can be faster."""
        for target in targets:
            self(target)

    def prepare(self, target: Target) -> None:  # noqa: B027
        """Save on the target what this step needs from before the first step."""

    def check(self, blocks: Blocks) -> None:  # noqa: B027
        """Raise before training if the step cannot work with these blocks."""


class Intervention(ABC):
    """Base class of what happens between epochs, such as `Every` and `BRB`.

    Examples
    --------
    >>> from reclust import BRB, Intervention
    >>> isinstance(BRB(interval=20), Intervention)
    True
    """

    @abstractmethod
    def fires(self, epoch: int) -> bool:
        """Tell whether to call it at the start of this epoch."""

    @abstractmethod
    def __call__(self, epoch: int, target: Target) -> bool | np.ndarray:
        """Act on the target; return whether anything was done, per replica if they differ."""

    def check(self, blocks: Blocks) -> None:
        """Raise before training if it cannot work with these blocks."""
        for step in getattr(self, "steps", ()):
            step.check(blocks)

    @property
    def compares_replicas(self) -> bool:
        """Tell whether replicas depend on each other, so that one process must train them all."""
        return any(step.compares_replicas for step in getattr(self, "steps", ()))

    def fires_within(self, epochs: int) -> bool:
        """Tell whether it can do anything in a run of this many epochs."""
        return any(map(self.fires, range(epochs)))

    def steps_at(self, epoch: int) -> tuple[Step, ...] | None:
        """Return steps to take together with those of other interventions; None to be called."""
        return None


def as_steps(steps: Any) -> tuple[Step, ...]:
    steps = tuple(steps) if isinstance(steps, Iterable) else (steps,)
    for step in steps:
        if not isinstance(step, Step):
            raise TypeError("steps must be one or several instances of reclust.Step, such as "
                            f"(SoftReset(), Recluster()), got {step!r}.")
    return steps


class _Firing(NamedTuple):
    steps: Sequence[Step]
    target: Target
    key: Tensor

    def target_of(self, place: int) -> Target:
        """Return the target for the step at this place; repeated kinds of steps draw anew."""
        repeats = sum(type(earlier) is type(self.steps[place]) for earlier in self.steps[:place])
        self.target.key = draws.fold(self.key, "again", repeats) if repeats else self.key
        return self.target


def take_steps(epoch: int, due: Sequence[tuple[Sequence[Step], Target]]) -> None:
    """Take the steps due at this epoch; equal ones at the same distance from the end together."""
    at_epoch = [(steps, target.at("intervention", epoch)) for steps, target in due]
    firings = [_Firing(steps, target, target.key) for steps, target in at_epoch]
    for firing in firings:
        for step in firing.steps:
            step.prepare(firing.target)
    for left in range(max((len(firing.steps) for firing in firings), default=0), 0, -1):
        waiting = [firing for firing in firings if len(firing.steps) >= left]
        while waiting:
            step = waiting[0].steps[-left]
            equal = [same(firing.steps[-left], step) for firing in waiting]
            targets = [firing.target_of(len(firing.steps) - left)
                       for firing in compress(waiting, equal)]
            waiting = [firing for firing, taken in zip(waiting, equal, strict=True) if not taken]
            with targets[0].clock(step.part):
                step.apply_together(targets)


@value
class Every(Intervention):
    """Take steps, in order, at the start of epochs interval, 2 * interval, and so on.

    Parameters
    ----------
    interval : int
        Number of epochs between firings. Nothing happens at epoch 0.
    steps : Step or sequence of Step
        Steps to take, such as resets and reclustering.

    Examples
    --------
    >>> from reclust import Every, Recluster, SoftReset
    >>> reset_and_recluster = Every(10, (SoftReset(0.8), Recluster()))
    >>> [epoch for epoch in range(40) if reset_and_recluster.fires(epoch)]
    [10, 20, 30]
    """

    interval: int = integer(least=1)
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", as_steps(self.steps))

    def fires(self, epoch: int) -> bool:
        return epoch > 0 and epoch % self.interval == 0

    def steps_at(self, epoch: int) -> tuple[Step, ...]:
        return self.steps if self.fires(epoch) else ()

    @torch.no_grad()
    def __call__(self, epoch: int, target: Target) -> bool:
        if target.peers is None:  # a custom loop, which did not check before training
            self.check(target.blocks)
        if not self.fires(epoch):
            return False
        take_steps(epoch, [(self.steps, target)])
        return True


def intervene(epoch: int, due: Sequence[tuple[Intervention, Target]]) -> list[bool | np.ndarray]:
    """Run the interventions of one epoch; return whether each of them did anything."""
    steps = [intervention.steps_at(epoch) for intervention, _ in due]
    with torch.no_grad():
        take_steps(epoch, [(now, target) for now, (_, target) in zip(steps, due, strict=True)
                           if now is not None])
    return [intervention(epoch, target) if now is None else bool(now)
            for now, (intervention, target) in zip(steps, due, strict=True)]
