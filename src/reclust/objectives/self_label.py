"""Objectives of self-labeling: a linear head on the embeddings learns from its confident labels."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ..utils.values import number, value
from .base import GradientOnly, Staged, State, nearest

HEAD = frozenset({"head_weight", "head_bias"})
SHARPNESS = 20.0  # roughly the margin between a center's logit for its own class and for the others


def logits(state: State, z: Tensor) -> Tensor:
    """Apply the linear head: (..., B, d) -> (..., B, k)."""
    return z @ state["head_weight"].mT + state["head_bias"].unsqueeze(-2)


def membership(labels: Tensor, k: int) -> Tensor:
    """One-hot encode labels as booleans: (..., B) -> (..., B, k)."""
    return labels.unsqueeze(-1) == torch.arange(k, device=labels.device)


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
        """Start from a head that predicts the nearest center, at any scale of the embeddings.

        From zeros, a short warm-up on small embeddings would leave some classes without a
        confident sample, and other classes could take them over.
        """
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

    def loss(self, state: State, z: Tensor) -> Tensor:
        labels = nearest(z[0].detach(), state["centers"])
        return _sample_losses(logits(state, z), labels).mean()


@value
class SelfLabelObjective(_WithHead):
    """Cross-entropy with the head's label of the first view, on samples it is confident about.

    The first view provides the labels and the other views are trained on them. Classes count
    equally however many confident samples each has in a batch; without any the loss is 0.
    `evenness` is the weight of the entropy of the batch's mean prediction: without it a class
    that augmented samples rarely reach can lose all of them.
    """

    stage: ClassVar[str] = "self-labeling"

    threshold: float = number(default=0.99, least=0, below=1)
    evenness: float = number(default=0.0, least=0)

    def loss(self, state: State, z: Tensor) -> Tensor:
        confidence, labels = logits(state, z[0]).detach().softmax(-1).max(-1)
        confident = (confidence > self.threshold).unsqueeze(-1)
        member = (membership(labels, len(state["centers"])) & confident).to(z.dtype)
        count = member.sum(0)
        trained = logits(state, z[1:] if len(z) > 1 else z)
        losses = _sample_losses(trained, labels) @ (member / count.clamp(min=1))
        error = losses.sum() / (count > 0).sum().clamp(min=1)
        share = trained.softmax(-1).mean((0, 1)).clamp(min=torch.finfo(z.dtype).tiny)  # log(0)
        return error + self.evenness * (share * share.log()).sum() * (count > 0).any()
