"""Self-labeling, the stage after clustering: confident samples teach the network, through a linear head, about the others.

It is `train` twice, each time going on from a result: first the head alone learns the clusters, then everything learns from
the head's confident predictions.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor

from ..data import Prepared
from ..data.augmentation.strong import StrongViews
from ..data.inputs import Inputs
from ..objectives.self_label import HeadObjective, SelfLabelObjective, logits, membership
from ..utils.exceptions import warn
from ..utils.values import check_int, value
from .checkpoint import Checkpoint
from .monitors.base import Measured, Monitor, Snapshot
from .result import Result
from .settings import Execution, Schedule, Settings
from .train import train

class Activity:
    """How many samples the head is confident of, and in how many classes: at the start, at every `every`-th epoch and at the
    end. Warns where there is nothing to learn from, and when classes die."""

    def __init__(self, threshold: float, *, every: int = 10) -> None:
        self.threshold, self.every = threshold, check_int("every", every, 1)
        self._alive: np.ndarray | None = None

    def __call__(self, snapshot: Snapshot) -> Measured | None:
        if snapshot.moment == "start":
            self._alive = None
        due = snapshot.moment == "start" or (snapshot.moment == "epoch" and (
            (snapshot.epoch + 1) % self.every == 0 or snapshot.epoch == snapshot.epochs - 1))
        if not due:
            return None
        confidence, labels = logits(dict(snapshot.state), snapshot.embeddings).detach().softmax(-1).max(-1)
        members = membership(labels, snapshot.state["head_bias"].shape[-1])
        active = (members & (confidence > self.threshold).unsqueeze(-1)).sum(1)
        self._warn(members.sum(1).cpu().numpy() > 0, active.sum(-1).cpu().numpy(), snapshot.epoch)
        return {"active_samples": active.sum(-1).cpu().numpy(), "active_classes": (active > 0).sum(-1).cpu().numpy(),
                "classes": (members.sum(1) > 0).sum(-1).cpu().numpy()}

    def _warn(self, alive: np.ndarray, active: np.ndarray, epoch: int) -> None:
        """alive (r, k): classes that have samples; active (r,): confident samples."""
        if self._alive is None:
            self._alive = alive
            if (active == 0).any() and epoch < 0:
                warn(f"No sample is above the confidence threshold {self.threshold:g} after the warm-up in "
                     f"{(active == 0).sum()} of {len(active)} replicas, so there is nothing to learn from: "
                     "warm up longer, or lower the threshold.")
        died = self._alive & ~alive
        if died.any():
            classes = ", ".join(str(number) for number in np.flatnonzero(died.any(0)))
            warn(f"By epoch {epoch} of self-labeling no sample is left in class {classes}: train fewer epochs, "
                 "lower the learning rate, or raise the threshold or the evenness.")
            self._alive = self._alive & alive


@value
class SelfLabel:
    """Complete settings of self-labeling. Colour images are learned from strongly changed; for other data give `training`
    with views such as ("clean", "augmented"), which changes them as in clustering. threshold, evenness: see
    `SelfLabelObjective`; the published method has no evenness."""

    threshold: float = 0.99
    evenness: float = 2.0
    warmup: Schedule = Schedule(epochs=20, batch_size=1000, views=("clean",), network="frozen")
    training: Schedule = Schedule(epochs=200, batch_size=1000, views=("clean", StrongViews()), first_view="decides")

    def settings(self, clustered: Settings) -> tuple[Settings, Settings]:
        """Those of the warm-up and of the training, on top of what clustered the data."""
        common = replace(clustered, intervention=None, pretraining=None, first_centers=None)
        return (replace(common, objective=HeadObjective(), clustering=self.warmup),
                replace(common, objective=SelfLabelObjective(self.threshold, self.evenness), clustering=self.training))


def self_label(
    data: Inputs | Prepared | Tensor | np.ndarray,
    clustered: Result,
    how: SelfLabel = SelfLabel(),
    *,
    monitors: Sequence[Monitor] = (),
    execution: Execution = Execution(),
    checkpoint: Checkpoint | None = None,
) -> Result:
    """Self-labeling of every replica of a clustering result; data as `train` takes it.

    The result's labels are the head's; its history has the phases "warm-up" and "self-labeling". Replicas that failed before
    are counted as failed.
    checkpoint: as in `train`; the warm-up has a file of its own beside it.
    """
    begun = time.monotonic()
    # Always written: what is labeled starts from it, and training it again on a GPU would give something a little different.
    before = None if checkpoint is None else replace(checkpoint.named("warmup"), seconds=0.0)
    warming, labeling = zip(*(how.settings(own) for own in clustered.settings), strict=True)
    warm = train(data, warming, seeds=clustered.seeds, start=clustered, monitors=monitors, checkpoint=before,
                 execution=execution)
    if warm.trained_epochs("warm-up") < how.warmup.epochs:
        checkpoint = None  # what follows a warm-up that was cut short is not what would have been
    watched = [Activity(how.threshold), *monitors]
    labeled = train(data, labeling, seeds=clustered.seeds, start=warm, monitors=watched, checkpoint=checkpoint,
                    execution=execution.since(begun))
    return replace(labeled, history=warm.history | labeled.history, seconds=warm.seconds | labeled.seconds)
