"""Interventions in a run of stacked replicas: whom they concern, what they may touch, when they fire, what they note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ...interventions import Intervention, Peers, Target
from ...interventions.steps import intervene
from ...objectives import Objective
from ...utils.timer import Timer
from ...utils.values import same
from ..result import group_of
from ..settings import Settings
from .adam import Adam
from .embedding import Embedder
from .replicas import Replicas


class InterventionRunner:
    """All interventions of one phase; settings: of each replica, none where nothing is to intervene."""

    def __init__(self, settings: Sequence[Settings], replicas: Replicas, inspection: Embedder, optimizer: Adam, key: Tensor,
                 clock: Timer) -> None:
        self.replicas, self.inspection, self.optimizer, self.key, self.clock = replicas, inspection, optimizer, key, clock
        self.shared = sharing(settings)
        self._notes: list[dict[str, Tensor]] = [{} for _ in self.shared]

    @property
    def notes(self) -> dict[str, dict[str, Tensor]]:
        """What interventions noted, by whose it is, for checkpoints."""
        return dict(zip(self._remembering, self._notes, strict=True))

    def restore_(self, memory: dict[str, Tensor]) -> None:
        device = self.inspection.inputs.device
        self._notes = [{name: tensor.to(device) for name, tensor in group_of(memory, whose).items()}
                       for whose in self._remembering]

    @property
    def _remembering(self) -> list[str]:
        return [f"intervention {which.start}" for which, _ in self.shared]

    def fires(self, epoch: int) -> np.ndarray:
        """Of which replicas one is to be called at the start of this epoch, (r,)."""
        firing = np.zeros(len(self.replicas), dtype=bool)
        for which, intervention in self.shared:
            firing[which] = intervention.fires(epoch)
        return firing

    def take(self, epoch: int) -> np.ndarray:
        """Do what is due at the start of this epoch; to which replicas something was done, (r,)."""
        due = [(which, intervention, replace(self.target(which, self.replicas.state["centers"]), memory=notes))
               for (which, intervention), notes in zip(self.shared, self._notes, strict=True) if intervention.fires(epoch)]
        done = intervene(epoch, [(intervention, target) for _, intervention, target in due])
        fired = np.zeros(len(self.replicas), dtype=bool)
        for (which, _, _), did in zip(due, done, strict=True):
            fired[which] = did
        return fired

    def target(self, which: slice, centers: Tensor) -> Target:
        """What an intervention may touch, for a run of neighbouring replicas."""
        learned = self.optimizer.leaves.get("state/centers")
        return Target(
            blocks=self.replicas.blocks(which),
            centers=centers.detach()[which],
            key=self.key[which],
            embedder=lambda rows: self.inspection.embed(rows, which),
            assigner=lambda z: self.inspection.assign(z, which),
            n_samples=self.inspection.inputs.n_samples,
            moments=() if learned is None else (learned.first[which], learned.second[which]),
            step_counts=() if learned is None else (learned.steps[which],),
            clock=self.clock,
            peers=Peers(become=lambda sources: self._become(which, sources),
                        embed_views=lambda rows, key, augment: self.inspection.embed(rows, which, key, augment),
                        only=lambda some: self.target(_within(which, some), centers)),
        )

    def _become(self, which: slice, sources: Sequence[int]) -> None:
        """Each of these replicas goes on from another one of them, in place; working copies follow after the intervention."""
        replicas, rows = self.replicas, torch.tensor(sources, device=self.inspection.inputs.device)
        for stacks in (replicas.parameters, replicas.buffers, replicas.state, self.optimizer.tensors()):
            for stack in stacks.values():
                stack.detach()[which].copy_(stack.detach()[which][rows])


def _within(which: slice, some: slice) -> slice:
    """Some of the replicas of a run of them."""
    chosen = range(which.stop)[which][some]
    return slice(chosen.start, chosen.stop)


def sharing(settings: Sequence[Settings]) -> list[tuple[slice, Intervention]]:
    """Neighbouring replicas with equal interventions and objectives share one call, since slices of the stack can be written in
    place; those of another objective are no peers to go on from."""
    shared: list[tuple[slice, Intervention]] = []
    before: tuple[Intervention | None, Objective] | None = None
    for i, own in enumerate(settings):
        if before is not None and same((own.intervention, own.objective), before):
            if own.intervention is not None:
                shared[-1] = (slice(shared[-1][0].start, i + 1), own.intervention)
        elif own.intervention is not None:
            shared.append((slice(i, i + 1), own.intervention))
        before = (own.intervention, own.objective)
    return shared
