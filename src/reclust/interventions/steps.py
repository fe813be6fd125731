"""Steps, and when they are taken."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from .. import draws
from ..utils.values import check_int, same, value
from .target import Blocks, Target


class Step(ABC):
    """One thing an intervention does to a target, in place. Children are values.

    A step that is quicker for several targets of one run than for one after another may define `at_once(targets)`. A child of
    it that does not, does what its `__call__` says to each.
    """

    part: ClassVar[str] = "intervention"
    """Under which name its time is recorded."""

    @abstractmethod
    def __call__(self, target: Target) -> None: ...

    def prepare(self, target: Target) -> None:  # noqa: B027 - most steps have nothing to note
        """Note on the target, never on the step, what must be known from before the first step of the sentence."""

    def check(self, blocks: Blocks) -> None:  # noqa: B027 - most steps have nothing to check
        """Raise before training what would go wrong with these blocks at the first firing."""


class NothingToReset(ValueError):
    """No layer is left for a reset: an error in somebody's own loop, and worth a warning where a preset chose the reset."""


@runtime_checkable
class Intervention(Protocol):
    def fires(self, epoch: int) -> bool:
        """Whether it is to be called at the start of this epoch; in other epochs nothing is due."""
        ...

    def check(self, blocks: Blocks) -> None:
        """Raise before training what would go wrong with these blocks at the first firing."""
        ...

    def __call__(self, epoch: int, target: Target) -> bool | np.ndarray:
        """Do what is due at the start of this epoch; whether anything was, of each replica (...) where they differ."""
        ...


def as_steps(given: Any) -> tuple[Step, ...]:
    """The steps of a sentence, checked; a single one need not be in a tuple."""
    steps = tuple(given) if isinstance(given, Iterable) else (given,)
    for step in steps:
        if isinstance(step, type):
            raise TypeError(f"steps are values, and {step.__name__} is a class: write {step.__name__}().")
        if isinstance(step, Intervention):
            raise TypeError(f"steps are what happens at one moment, and {type(step).__name__} is a whole intervention: give "
                            "its .steps.")
        if not isinstance(step, Step):
            raise TypeError(f"steps must be one or several of reclust.Step, such as (SoftReset(), Recluster()), got {step!r}.")
    return steps


def check_steps(steps: Sequence[Step], blocks: Blocks) -> None:
    """What `Intervention.check` says of these steps. That there is nothing to reset is said last, as the least of mistakes."""
    nothing = None
    for step in steps:
        try:
            step.check(blocks)
        except NothingToReset as error:
            nothing = nothing or error
    if nothing is not None:
        raise nothing


@dataclass(frozen=True)
class _Firing:
    """One sentence and what its steps share: the target, with their notes."""

    steps: Sequence[Step]
    target: Target
    key: Tensor

    def ready(self, place: int) -> Target:
        """The target for the step at this place. A second step of the same kind is to draw other numbers."""
        again = sum(type(earlier) is type(self.steps[place]) for earlier in self.steps[:place])
        self.target.key = draws.fold(self.key, "again", again) if again else self.key
        return self.target


def take_steps(epoch: int, sentences: Sequence[tuple[Sequence[Step], Target]]) -> None:
    """One firing of each sentence, at the start of this epoch.

    All end at once, and equal steps as far from the end are taken together: those that only differ in their resets, or have
    none, share the reclustering behind it.
    """
    firings = [_Firing(steps, at_epoch, at_epoch.key)
               for steps, at_epoch in ((steps, target.at("intervention", epoch)) for steps, target in sentences)]
    with _all_or_nothing([firing.target for firing in firings]):
        _take(firings)


@contextmanager
def _named_in_errors(step: Step) -> Iterator[None]:
    """Many variants may train side by side, and where one's own step fails, all do: it is told which one it was."""
    try:
        yield
    except Exception as error:
        if sys.version_info >= (3, 11) and type(step).__module__.split(".")[0] != "reclust":
            error.add_note(f"Raised by the step {type(step).__name__}: {type(error).__name__}: {error}")
        raise


@contextmanager
def _all_or_nothing(targets: Sequence[Target]) -> Iterator[None]:
    """Somebody's own loop, which nobody tried before, is left as it was where a step fails."""
    own = [target for target in targets if target.peers is None]
    kept = [(tensor, tensor.detach().clone()) for target in own for tensor in _written(target)]
    try:
        yield
    except BaseException:
        with torch.no_grad():
            for tensor, before in kept:
                tensor.copy_(before)
        raise


def _written(target: Target) -> Iterator[Tensor]:
    for members in target.blocks.values():
        for layer in members:
            yield from layer.parameters.values()
    yield from (target.centers, *target.moments, *target.step_counts)


def _take(firings: Sequence[_Firing]) -> None:
    for firing in firings:
        for step in firing.steps:
            step.prepare(firing.target)
    for left in range(max((len(firing.steps) for firing in firings), default=0), 0, -1):
        waiting = [firing for firing in firings if len(firing.steps) >= left]
        while waiting:
            step = waiting[0].steps[-left]
            alike = [same(firing.steps[-left], step) for firing in waiting]
            targets = [firing.ready(len(firing.steps) - left) for firing in compress(waiting, alike)]
            waiting = [firing for firing, taken in zip(waiting, alike, strict=True) if not taken]
            with targets[0].clock(step.part), _named_in_errors(step):
                if "at_once" in vars(type(step)):
                    step.at_once(targets)  # type: ignore[attr-defined]
                else:
                    for target in targets:
                        step(target)


@value
class Every:
    """Takes its steps, in order, at the start of epochs interval, 2 × interval, …; never at epoch 0."""

    interval: int
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", as_steps(self.steps))
        object.__setattr__(self, "interval", check_int("interval", self.interval, 1))

    def fires(self, epoch: int) -> bool:
        return epoch > 0 and epoch % self.interval == 0

    def check(self, blocks: Blocks) -> None:
        check_steps(self.steps, blocks)

    @torch.no_grad()
    def __call__(self, epoch: int, target: Target) -> bool:
        if target.peers is None:
            self.check(target.blocks)
        if not self.fires(epoch):
            return False
        take_steps(epoch, [(self.steps, target)])
        return True


def intervene(epoch: int, due: Sequence[tuple[Intervention, Target]]) -> list[bool | np.ndarray]:
    """Call what fires at this epoch, each on its own target of one run; whether anything was done, of each of them."""
    with torch.no_grad():  # interventions of one's own see to that themselves
        take_steps(epoch, [(one.steps, target) for one, target in due if type(one) is Every])
    return [type(one) is Every or one(epoch, target) for one, target in due]
