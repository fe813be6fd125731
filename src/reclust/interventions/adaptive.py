"""An interval that adapts: intervene once labels have settled."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ..utils.values import check_float, check_int, value
from .exchange import Exchange
from .reclustering.recluster import random_rows
from .soft_reset import ByBlock
from .steps import Intervention, Step, as_steps, check_steps, take_steps
from .target import Blocks, Target

LOOKED_AT = 2_000
"""Samples, always the same ones, by whose labels it is told whether a run has settled."""


@value
class WhenSettled:
    """Takes its steps once few labels change any more, instead of every so many epochs. No true labels are needed.

    At the start of every `look`-th epoch it looks which share of samples has another label than at its last look, or than
    right after the last firing. It fires where that share is below `threshold`, but not before `shortest` epochs have
    passed since it last fired, and in any case after `longest`. With `threshold=0` it is `Every(longest, steps)`, with
    `threshold=1` it is `Every(shortest, steps)`, if these are multiples of `look`.

    decide: each replica "alone", as if it were the only one, or all "together" by the mean share; `Exchange` needs that.
    keep: of resets, as "given", or "scaled" up from there towards 1, which is reached at the threshold: the less a run has
        settled, the gentler, and a run that fires for being due only is not reset.
    """

    steps: tuple[Step, ...]
    threshold: float = 0.01
    look: int = 5
    shortest: int = 10
    longest: int = 40
    decide: Literal["alone", "together"] = "alone"
    keep: Literal["given", "scaled"] = "given"

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", as_steps(self.steps))
        object.__setattr__(self, "threshold", check_float("threshold", self.threshold))
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold must be a share between 0 and 1, got {self.threshold!r}.")
        for name in ("look", "shortest", "longest"):
            object.__setattr__(self, name, check_int(name, getattr(self, name), 1))
        if self.shortest > self.longest:
            raise ValueError(f"shortest must be at most longest, got {self.shortest} and {self.longest}.")
        for name, allowed in (("decide", ("alone", "together")), ("keep", ("given", "scaled"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be '{allowed[0]}' or '{allowed[1]}', got {getattr(self, name)!r}.")
        if self.decide == "alone" and any(isinstance(step, Exchange) for step in self.steps):
            raise ValueError("Exchange takes replicas that fire at the same time: use decide='together' with it.")

    def fires(self, epoch: int) -> bool:
        """Whether it looks: only then may it fire."""
        return epoch % self.look == 0

    @property
    def earliest(self) -> int:
        """The first epoch at which it can fire: the first look when `shortest`, or `longest` if nothing settles, has passed."""
        waits = self.longest if self.threshold == 0 else self.shortest
        return -(-waits // self.look) * self.look

    def check(self, blocks: Blocks) -> None:
        check_steps(self.steps, blocks)

    @torch.no_grad()
    def __call__(self, epoch: int, target: Target) -> bool | np.ndarray:
        """Which replicas fired, (...)."""
        if not self.fires(epoch):
            return False
        memory = target.memory
        if memory is None:
            raise ValueError("WhenSettled compares labels between epochs: give Target.of(…, memory=notes), one dict for all.")
        if target.peers is None:
            self.check(target.blocks)
        labels, sound = self._look(target)
        if epoch == 0 or "labels" not in memory:  # a loop that goes on without its notes begins to wait anew
            memory.update(labels=labels, fired=torch.full_like(target.key, epoch))
            return False
        change = (labels != memory["labels"]).double().mean(-1)
        passed = epoch - memory["fired"]
        if self.decide == "together":  # a replica that failed has no say, as it has no labels
            change = change[sound].mean().expand(change.shape) if sound.any() else change
        firing = self._due(change, passed)
        if firing.any():
            self._take(epoch, target, firing.cpu().numpy(), change)
            memory["fired"] = torch.where(firing, epoch, memory["fired"])
            labels, _ = self._look(target)
        memory["labels"] = labels
        return firing.cpu().numpy()

    def _look(self, target: Target) -> tuple[Tensor, Tensor]:
        """Labels (..., m), and of which replicas embeddings are finite, (...)."""
        z = target.at("settled").embed_some(LOOKED_AT, random_rows)
        return target.assigner(z), z.isfinite().flatten(-2).all(-1)

    def _due(self, change: Tensor, passed: Tensor) -> Tensor:
        # All labels may change, so that a threshold of 1 would not be reached.
        settled = (change < self.threshold) | (self.threshold == 1)
        return (passed >= self.longest) | ((passed >= self.shortest) & settled)

    def _take(self, epoch: int, target: Target, firing: np.ndarray, change: Tensor) -> None:
        if firing.ndim == 0 or self.decide == "together":
            take_steps(epoch, [(self._scaled(change.mean().item()), target)])
            return
        assert target.peers is not None
        take_steps(epoch, [(self._scaled(change[run].mean().item()), target.peers.only(run)) for run in self._runs(firing)])

    def _runs(self, firing: np.ndarray) -> Iterator[slice]:
        """The replicas that fire, neighbours in one call unless each needs a factor of its own."""
        alike = [(fires, i if self.keep == "scaled" else 0) for i, fires in enumerate(firing.tolist())]
        for (fires, _), members in groupby(range(len(firing)), key=alike.__getitem__):
            first, *others = members
            if fires:
                yield slice(first, first + len(others) + 1)

    def _scaled(self, change: float) -> tuple[Step, ...]:
        if self.keep == "given":
            return self.steps
        share = min(1.0, change / self.threshold) if self.threshold else 1.0
        return tuple(step.gentler(share) if isinstance(step, ByBlock) else step for step in self.steps)


def never_fires(intervention: Intervention | None, epochs: int) -> bool:
    """Whether there is an intervention, and nothing comes of it in a run of so many epochs."""
    if isinstance(intervention, WhenSettled):
        return intervention.earliest >= epochs
    return intervention is not None and not any(intervention.fires(epoch) for epoch in range(epochs))
