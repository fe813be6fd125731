"""Steps, and the interventions that decide when they are taken."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from .. import draws
from ..utils.values import integer, value
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


def as_steps(steps: Any) -> tuple[Step, ...]:
    steps = tuple(steps) if isinstance(steps, Iterable) else (steps,)
    for step in steps:
        if not isinstance(step, Step):
            raise TypeError(f"steps must be instances of reclust.Step, got {step!r}.")
    return steps


def take_steps(epoch: int, steps: Sequence[Step], target: Target) -> None:
    """Take the steps of this epoch; repeated kinds of steps draw anew."""
    target = target.at("intervention", epoch)
    key = target.key
    for step in steps:
        step.prepare(target)
    for place, step in enumerate(steps):
        repeats = sum(type(earlier) is type(step) for earlier in steps[:place])
        target.key = draws.fold(key, "again", repeats) if repeats else key
        with target.clock(step.part):
            step(target)


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

    @torch.no_grad()
    def __call__(self, epoch: int, target: Target) -> bool:
        if target.peers is None:  # a custom loop, which did not check before training
            self.check(target.blocks)
        if not self.fires(epoch):
            return False
        take_steps(epoch, self.steps, target)
        return True
