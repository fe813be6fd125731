"""Run interventions on stacked replicas."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ...interventions import Intervention, Peers, Target
from ...interventions.target import Clock
from ...objectives import Objective
from ...objectives.base import RestartedObjective
from ...utils.values import same
from ..settings import Settings
from .adam import Adam
from .embedding import Embedder
from .replicas import Replicas


class InterventionRunner:
    """The interventions of one phase. settings: one per replica, or empty: no interventions."""

    def __init__(self, settings: Sequence[Settings], replicas: Replicas, embedder: Embedder,
                 optimizer: Adam, key: Tensor, timer: Clock) -> None:
        self.replicas, self.embedder, self.optimizer = replicas, embedder, optimizer
        self.key, self.timer = key, timer
        self.shared = sharing(settings)
        # What interventions remember between epochs, by owner.
        self.memory: dict[str, dict[str, Tensor]] = {
            f"intervention {which.start}": {} for which, _ in self.shared}

    def restore_(self, memory: Mapping[str, Mapping[str, Tensor]]) -> None:
        device = self.embedder.inputs.device
        for owner, own in self.memory.items():
            own.update({name: saved.to(device) for name, saved in memory.get(owner, {}).items()})

    def fires(self, epoch: int) -> np.ndarray:
        """Replicas whose intervention is called at the start of this epoch, (r,)."""
        firing = np.zeros(len(self.replicas), dtype=bool)
        for which, intervention in self.shared:
            firing[which] = intervention.fires(epoch)
        return firing

    def take(self, epoch: int) -> np.ndarray:
        """Call what fires at the start of this epoch; return the changed replicas, (r,)."""
        fired = np.zeros(len(self.replicas), dtype=bool)
        for (which, intervention), memory in zip(self.shared, self.memory.values(), strict=True):
            if intervention.fires(epoch):
                target = self.target(which, self.replicas.state["centers"])
                fired[which] = intervention(epoch, replace(target, memory=memory))
        for replica in np.flatnonzero(fired).tolist():
            self._restart(self.replicas.objectives[replica], replica)
        return fired

    def _restart(self, objective: Objective, replica: int) -> None:
        """Let an objective forget what it knows of the centers before."""
        if isinstance(objective, RestartedObjective):
            own = {name: stack.detach()[replica] for name, stack in self.replicas.state.items()}
            for name, tensor in objective.restart(own).items():
                own[name].copy_(tensor)

    def target(self, which: slice, centers: Tensor) -> Target:
        """Everything that an intervention on these neighboring replicas may change."""
        learned = self.optimizer.leaves.get("state/centers")
        embed = self.embedder.embed
        return Target(
            self.replicas.blocks(which), centers.detach()[which], self.key[which],
            embedder=lambda rows: embed(rows, which),
            assigner=lambda z: self.embedder.assign(z, which),
            n_samples=self.embedder.inputs.n_samples, clock=self.timer,
            moments=() if learned is None else (learned.first[which], learned.second[which]),
            step_counts=() if learned is None else (learned.steps[which],),
            peers=Peers(
                become=lambda sources: self._become(which, sources),
                embed_views=lambda rows, key, augment: embed(rows, which, key, augment),
                only=lambda some: self.target(_within(which, some), centers)))

    def _become(self, which: slice, sources: Sequence[int]) -> None:
        replicas, rows = self.replicas, torch.tensor(sources, device=self.embedder.inputs.device)
        for stacks in (*replicas.stacks().values(), self.optimizer.tensors()):
            for stack in stacks.values():
                stack.detach()[which].copy_(stack.detach()[which][rows])


def _within(which: slice, some: slice) -> slice:
    chosen = range(which.stop)[which][some]
    return slice(chosen.start, chosen.stop)


def sharing(replica_settings: Sequence[Settings]) -> list[tuple[slice, Intervention]]:
    """Find neighboring replicas with equal interventions and objectives, to share one call."""
    shared: list[tuple[slice, Intervention | None, Objective]] = []
    for i, settings in enumerate(replica_settings):
        start = i
        if shared and same((settings.intervention, settings.objective), shared[-1][1:]):
            start = shared.pop()[0].start
        shared.append((slice(start, i + 1), settings.intervention, settings.objective))
    return [(which, intervention) for which, intervention, _ in shared if intervention is not None]
