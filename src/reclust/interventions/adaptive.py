"""An adaptive interval: intervene once labels have settled."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ..utils.values import choice, integer, number, value
from .exchange import Exchange
from .reclustering.recluster import random_rows
from .soft_reset import ByBlock
from .steps import Intervention, Step, as_steps, take_steps
from .target import Target

SAMPLES = 2_000  # always the same ones, whose labels are compared


@value
class WhenSettled(Intervention):
    """Take steps once few labels change, instead of at a fixed interval.

    Every `look` epochs it computes the share of samples whose label changed since it last looked
    or fired. It fires if that share is below `threshold` and at least `shortest` epochs have
    passed since it last fired, and in any case after `longest` epochs. Replicas decide alone, or
    all together by the mean share, as `Exchange` needs. With ``keep="scaled"`` resets are gentler
    the less a run has settled: `keep` grows from its value at a share of 0 to 1 at the threshold.
    """

    steps: tuple[Step, ...]
    threshold: float = number(default=0.01, least=0, most=1)
    look: int = integer(default=5, least=1)
    shortest: int = integer(default=10, least=1)
    longest: int = integer(default=40, least=1)
    decide: Literal["alone", "together"] = choice("alone", "together", default="alone")
    keep: Literal["given", "scaled"] = choice("given", "scaled", default="given")

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", as_steps(self.steps))
        if self.decide == "alone" and any(isinstance(step, Exchange) for step in self.steps):
            raise ValueError("Exchange needs replicas that fire together: use decide='together'.")

    @property
    def compares_replicas(self) -> bool:
        return self.decide == "together"

    def fires(self, epoch: int) -> bool:
        """Tell whether it compares labels; it acts only if they have settled."""
        return epoch % self.look == 0

    def fires_within(self, epochs: int) -> bool:
        earliest = self.longest if self.threshold == 0 else self.shortest
        return -(-earliest // self.look) * self.look < epochs

    @torch.no_grad()
    def __call__(self, epoch: int, target: Target) -> bool | np.ndarray:
        if not self.fires(epoch):
            return False
        memory = target.memory
        if memory is None:
            raise ValueError("WhenSettled compares labels between epochs: pass the same dict as "
                             "Target.of(..., memory=) in every epoch.")
        if target.peers is None:  # a custom loop, which did not check before training
            self.check(target.blocks)
        labels, finite = self._labels(target)
        if epoch == 0 or "labels" not in memory:
            memory.update(labels=labels, fired=torch.full_like(target.key, epoch))
            return False
        change = (labels != memory["labels"]).double().mean(-1)
        passed = epoch - memory["fired"]
        if self.decide == "together" and finite.any():  # failed replicas have no say
            change = change[finite].mean().expand(change.shape)
        # All labels may change, so a threshold of 1 counts as always settled.
        settled = (change < self.threshold) | (self.threshold == 1)
        firing = (passed >= self.longest) | ((passed >= self.shortest) & settled)
        if firing.any():
            self._take(epoch, target, firing.cpu().numpy(), change)
            memory["fired"] = torch.where(firing, epoch, memory["fired"])
            labels, _ = self._labels(target)
        memory["labels"] = labels
        return firing.cpu().numpy()

    def _labels(self, target: Target) -> tuple[Tensor, Tensor]:
        """Return labels (..., m), and which replicas have finite embeddings (...)."""
        z = target.at("settled").embed_some(SAMPLES, random_rows)
        return target.assigner(z), z.isfinite().flatten(-2).all(-1)

    def _take(self, epoch: int, target: Target, firing: np.ndarray, change: Tensor) -> None:
        due = [(change, target)]
        if target.peers is not None and self.decide == "alone":
            due = [(change[i], target.peers.only(slice(i, i + 1))) for i in np.flatnonzero(firing)]
        for share, part in due:
            take_steps(epoch, self._scaled(share.mean().item()), part)

    def _scaled(self, change: float) -> tuple[Step, ...]:
        if self.keep == "given":
            return self.steps
        share = min(1.0, change / self.threshold) if self.threshold else 1.0
        return tuple(step.gentler(share) if isinstance(step, ByBlock) else step
                     for step in self.steps)
