"""Self-labeling, the stage after clustering: confident samples teach the network, through a linear head, about the others.

It is `train` twice, each time going on from a result: first the head alone learns the clusters, then everything learns from
the head's confident predictions.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ..data import Prepared
from ..data.augmentation.strong import StrongViews
from ..data.inputs import Inputs
from ..objectives import GradientOnly, Staged, State, nearest
from ..utils.exceptions import warn
from ..utils.values import check_float, check_int, value
from .checkpoint import Checkpoint
from .monitors.base import Measured, Monitor, Snapshot
from .result import Result
from .settings import Execution, Schedule, Settings
from .train import train

HEAD = frozenset({"head_weight", "head_bias"})

SHARPNESS = 20.0
"""About so much the logit of a sample in a centre is above those of other classes."""


def logits(state: State, z: Tensor) -> Tensor:
    """What the linear head says: (..., B, d) -> (..., B, k)."""
    return z @ state["head_weight"].mT + state["head_bias"].unsqueeze(-2)


def _errors(said: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each sample, averaged over the views: logits (V, B, k), (B,) -> (B,)."""
    each = cross_entropy(said.flatten(0, 1), labels.repeat(len(said)), reduction="none")
    return each.unflatten(0, said.shape[:2]).mean(0)


def _members(labels: Tensor, k: int) -> Tensor:
    """Which class each sample belongs to: (..., B) -> (..., B, k), of fixed shape, so that it can be mapped and captured."""
    return labels.unsqueeze(-1) == torch.arange(k, device=labels.device)


class _Headed(GradientOnly, Staged):
    """What the objectives of both stages share: centres that stay, a head that learns and decides."""

    weight: ClassVar[float] = 1.0
    representation_weight: ClassVar[float] = 0.0
    trainable: ClassVar[frozenset[str]] = HEAD
    per_cluster: ClassVar[frozenset[str]] = HEAD | {"centers"}

    def init(self, centers: Tensor) -> State:
        """A head that says what the centres say, with differences of squared distances for logits, however small or large
        embeddings are. From zero, a short warm-up on small embeddings leaves classes without a confident sample to learn
        from, which others may then take over."""
        apart = torch.cdist(centers, centers).square().mean((-2, -1))
        sharpness = (SHARPNESS / apart.clamp(min=torch.finfo(centers.dtype).eps))[..., None, None]
        head = {"head_weight": 2 * sharpness * centers, "head_bias": -(sharpness * centers.square()).sum(-1)}
        return {"centers": centers.clone(), **head}

    def assign(self, state: State, z: Tensor) -> Tensor:
        return logits(state, z).argmax(-1)


@value
class HeadObjective(_Headed):
    """The warm-up: cross-entropy of the head with the nearest centre of the first view, averaged over the views."""

    stage: ClassVar[str] = "warm-up"

    def loss(self, state: State, z: Tensor) -> Tensor:
        labels = nearest(z[0].detach(), state["centers"])
        return _errors(logits(state, z), labels).mean()


@value
class SelfLabelObjective(_Headed):
    """Cross-entropy with the head's own label of the first view, on samples of which it is confident there.

    The first view only decides, the others learn. Classes count the same however many confident samples they have in a
    batch; without any the loss is 0.

    evenness: how much the entropy of the batch's mean prediction is worth, taken of the views that learn. Labels follow the
        network that they train, so that without it a class that strongly changed samples seldom reach can lose all of them.
    """

    stage: ClassVar[str] = "self-labeling"

    threshold: float = 0.99
    evenness: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", check_float("threshold", self.threshold))
        object.__setattr__(self, "evenness", check_float("evenness", self.evenness))
        if not 0 <= self.threshold < 1:
            raise ValueError(f"threshold must lie in [0, 1), got {self.threshold!r}.")
        if not self.evenness >= 0:
            raise ValueError(f"evenness must be 0 or more, got {self.evenness!r}.")

    def loss(self, state: State, z: Tensor) -> Tensor:
        confidence, labels = logits(state, z[0]).detach().softmax(-1).max(-1)
        member = (_members(labels, len(state["centers"])) & (confidence > self.threshold).unsqueeze(-1)).to(z.dtype)
        count = member.sum(0)
        learning = logits(state, z[1:] if len(z) > 1 else z)
        errors = _errors(learning, labels)
        error = (errors @ (member / count.clamp(min=1))).sum() / (count > 0).sum().clamp(min=1)
        share = learning.softmax(-1).mean((0, 1)).clamp(min=torch.finfo(z.dtype).tiny)  # the log of 0 is none
        return error + self.evenness * (share * share.log()).sum() * (count > 0).any()


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
        members = _members(labels, snapshot.state["head_bias"].shape[-1])
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
