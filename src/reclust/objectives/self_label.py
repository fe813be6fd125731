"""Objectives of self-labeling: a linear head on the embeddings learns from its confident labels."""

from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from .. import draws
from ..utils.values import choice, number, value
from .base import GradientOnly, Staged, State, membership, nearest

HEAD = frozenset({"head_weight", "head_bias"})
Labels = Literal["epoch", "step"]
Head = Literal["centers", "default"]
SHARPNESS = 20.0  # roughly the margin between a center's logit for its own class and for the others


def logits(state: State, z: Tensor) -> Tensor:
    """Apply the linear head: (..., B, d) -> (..., B, k)."""
    return z @ state["head_weight"].mT + state["head_bias"].unsqueeze(-2)


def surest(confidence: Tensor, member: Tensor) -> Tensor:
    """Choose the surest samples of each class by their mean confidence, as CDC: -> (B, k)."""
    n, k = member.shape
    own = torch.where(member, confidence.unsqueeze(-1), 0)
    top = own.topk(max(1, n // k), dim=0).values
    chosen = top.sum(0).floor().long()  # number of samples times mean confidence
    least = top.gather(0, (chosen - 1).clamp(min=0).unsqueeze(0))
    return member & (own >= least) & (chosen > 0)


def _sample_losses(scores: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each sample, averaged over views: logits (V, B, k), (B,) -> (B,)."""
    losses = cross_entropy(scores.flatten(0, 1), labels.repeat(len(scores)), reduction="none")
    return losses.unflatten(0, scores.shape[:2]).mean(0)


class _WithHead(GradientOnly, Staged):
    """Shared part of both objectives: fixed centers, and a trained head that assigns labels."""

    weight: ClassVar[float] = 1.0
    representation_weight: ClassVar[float] = 0.0
    trainable: ClassVar[frozenset[str]] = HEAD
    per_cluster: ClassVar[frozenset[str]] = HEAD | {"centers"}

    def init(self, centers: Tensor) -> State:
        """Start from a head that predicts the nearest center and is confident for all classes."""
        spread = torch.cdist(centers, centers).square().mean((-2, -1))
        sharpness = SHARPNESS / spread.clamp(min=torch.finfo(centers.dtype).eps)
        sharpness = sharpness[..., None, None]
        bias = -(sharpness * centers.square()).sum(-1)
        return {"centers": centers.clone(), "head_weight": 2 * sharpness * centers,
                "head_bias": bias}

    def assign(self, state: State, z: Tensor) -> Tensor:
        return logits(state, z).argmax(-1)


@value
class HeadObjective(_WithHead):
    """Warm-up: cross-entropy between the head and the nearest center of the first view."""

    stage: ClassVar[str] = "warm-up"

    head: Head = choice("centers", "default", default="centers")

    def init(self, centers: Tensor) -> State:
        state = super().init(centers)
        if self.head == "default":  # that of nn.Linear, from a key of its own
            key, bound = draws.key(0, device=centers.device), centers.shape[-1] ** -0.5
            for name in sorted(HEAD):
                drawn = draws.uniform(draws.fold(key, name), state[name].shape, dtype=centers.dtype)
                state[name] = bound * (2 * drawn - 1)
        return state

    def loss(self, state: State, z: Tensor) -> Tensor:
        labels = nearest(z[0].detach(), state["centers"])
        return _sample_losses(logits(state, z), labels).mean()


@value
class SelfLabelObjective(_WithHead):
    """Cross-entropy with the head's label of a sample, if it is confident.

    Labels are those of clean samples in eval mode at the start of the epoch, or at each step those
    of the first view; the other views are trained on them. Labels of a network that changes at
    every step reinforce themselves, until classes with few confident samples are lost. Classes
    count equally however many confident samples each has in a batch; without any the loss is 0.
    Without a threshold the surest samples of each class in a batch are learned from.
    `evenness` is the weight of the entropy of the batch's mean prediction.
    """

    stage: ClassVar[str] = "self-labeling"

    threshold: float | None = number(default=0.99, least=0, below=1, optional=True)
    evenness: float = number(default=0.0, least=0)
    labels: Labels = choice("epoch", "step", default="step")

    @property
    def relabels(self) -> bool:  # type: ignore[override]
        return self.labels == "epoch"

    def targets(self, state: State, z: Tensor) -> Tensor:
        """Compute what `loss` gets for each sample in the coming epoch: (B, d) -> (B, k)."""
        return logits(state, z).softmax(-1)

    def loss(self, state: State, z: Tensor, targets: Tensor | None = None) -> Tensor:
        targets = self.targets(state, z[0]) if targets is None else targets
        confidence, labels = targets.detach().max(-1)
        member = membership(labels, len(state["centers"]))
        if self.threshold is None:
            member = surest(confidence, member)
        else:
            member = member & (confidence > self.threshold).unsqueeze(-1)
        member = member.to(z.dtype)
        count = member.sum(0)
        trained = logits(state, z[1:] if len(z) > 1 else z)
        losses = _sample_losses(trained, labels) @ (member / count.clamp(min=1))
        error = losses.sum() / (count > 0).sum().clamp(min=1)
        share = trained.softmax(-1).mean((0, 1)).clamp(min=torch.finfo(z.dtype).tiny)  # log(0)
        return error + self.evenness * (share * share.log()).sum() * (count > 0).any()
