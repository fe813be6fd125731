"""Embeddings are compared with prototypes, the centers: SCAN, GCC, SeCu and distillation."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from ..utils.values import number, value
from .base import State, TrainedCenters, membership


def cosines(z: Tensor, centers: Tensor) -> Tensor:
    """(..., B, d), (k, d) -> (..., B, k)."""
    return normalize(z, dim=-1) @ normalize(centers, dim=-1).mT


def negative_entropy(shares: Tensor) -> Tensor:
    """(..., k) -> (...), with finite gradients."""
    return (shares * shares.clamp(min=torch.finfo(shares.dtype).tiny).log()).sum(-1)


class _Prototypes(TrainedCenters):
    """Shared part: trained prototypes, of which the most similar one gives the label."""

    temperature: float

    def probabilities(self, state: State, z: Tensor) -> Tensor:
        return (cosines(z, state["centers"]) / self.temperature).softmax(-1)

    def assign(self, state: State, z: Tensor) -> Tensor:
        return cosines(z, state["centers"]).argmax(-1)


@value
class SCANObjective(_Prototypes):
    """Objective of SCAN: a sample and its neighbor have the same label, and labels are spread.

    It trains on pairs, as in ``Schedule(views=("augmented", "neighbor"))``.

    Parameters
    ----------
    weight, representation_weight : float, default=1.0, 0.0
        Weights of the clustering loss and of the representation's own loss.
    entropy : float, default=5.0
        Weight of the entropy of the mean prediction of a batch.
    temperature : float, default=0.1
        Divides the cosine of embedding and prototype.

    Examples
    --------
    >>> import torch
    >>> from reclust import SCANObjective
    >>> objective = SCANObjective()
    >>> objective.loss(objective.init(torch.eye(3)), torch.ones(2, 10, 3)).shape
    torch.Size([])
    """

    weight: float = number(default=1.0)
    representation_weight: float = number(default=0.0)
    entropy: float = number(default=5.0, least=0)
    temperature: float = number(default=0.1, above=0)

    def loss(self, state: State, z: Tensor) -> Tensor:
        p = self.probabilities(state, z)
        same = (p[0] * p[-1]).sum(-1).clamp(min=torch.finfo(z.dtype).tiny)
        return self.entropy * negative_entropy(p[0].mean(0)) - same.log().mean()


@value
class GCCObjective(SCANObjective):
    """Objective of GCC's assignment head: columns of predictions for two views are contrasted.

    Parameters are those of `SCANObjective`; `contrast` is the temperature between clusters.
    """

    contrast: float = number(default=1.0, above=0)

    def loss(self, state: State, z: Tensor) -> Tensor:
        p = self.probabilities(state, z)
        columns = normalize(torch.cat((p[0], p[-1]), -1).mT, dim=-1)
        itself = torch.eye(len(columns), dtype=torch.bool, device=z.device)
        similarity = (columns @ columns.mT / self.contrast).masked_fill(itself, -torch.inf)
        partner = torch.arange(len(columns), device=z.device).roll(len(columns) // 2)
        spread = negative_entropy(p[0].mean(0))
        return self.entropy * spread + cross_entropy(similarity, partner)


@value
class SeCuObjective(_Prototypes):
    """Objective of SeCu: discriminate clusters, none of which may become small.

    Each center learns from its own samples only. The network learns labels mixed with predictions
    for the other view, by the centers of the previous epoch. A dual variable of each cluster, which
    grows while the cluster is small, is added to similarities when samples are labeled.

    Parameters
    ----------
    weight, representation_weight : float, default=1.0, 0.0
        Weights of the clustering loss and of the representation's own loss.
    temperature : float, default=0.05
        Divides the cosine of embedding and center.
    hardness : float, default=0.2
        Share of the label in the network's target; the rest is the other view's prediction.
    smallest : float, default=0.9
        Least size of a cluster, relative to the mean size.
    rate : float, default=0.1
        Step of the dual variables.

    Examples
    --------
    >>> import torch
    >>> from reclust import SeCuObjective
    >>> objective = SeCuObjective()
    >>> objective.loss(objective.init(torch.eye(3)), torch.ones(2, 10, 3)).shape
    torch.Size([])
    """

    weight: float = number(default=1.0)
    representation_weight: float = number(default=0.0)
    temperature: float = number(default=0.05, above=0)
    hardness: float = number(default=0.2, least=0)
    smallest: float = number(default=0.9, least=0)
    rate: float = number(default=0.1, least=0)
    per_cluster: ClassVar[frozenset[str]] = frozenset({"centers", "previous", "dual"})

    def init(self, centers: Tensor) -> State:
        return {"centers": centers.clone(), "previous": centers.clone(),
                "dual": torch.zeros_like(centers[..., 0])}

    def restart(self, state: State) -> State:
        return self.init(state["centers"])

    def members(self, state: State, z: Tensor) -> Tensor:
        """One-hot labels by the similarity averaged over views: (V, B, d) -> (B, k)."""
        labels = (cosines(z, state["centers"]).mean(0) + state["dual"]).argmax(-1)
        return membership(labels, len(state["centers"])).to(z.dtype)

    def loss(self, state: State, z: Tensor) -> Tensor:
        member = self.members(state, z).detach()
        fixed, moving = cosines(z, state["previous"]), cosines(z.detach(), state["centers"])
        other = (fixed.detach() / self.temperature).softmax(-1).roll(1, 0)
        target = self.hardness * member + (1 - self.hardness) * other
        own_center_only = torch.where(member > 0, moving, moving.detach())
        network, centers = ((scores / self.temperature).log_softmax(-1)
                            for scores in (fixed, own_center_only))
        return -(target * network + member * centers).sum(-1).mean()

    def update(self, state: State, z: Tensor) -> State:
        share = self.members(state, z.unsqueeze(0)).mean(0)
        dual = state["dual"] + self.rate * (self.smallest / len(share) - share)
        return {**state, "previous": state["centers"].clone(), "dual": dual.clamp(min=0)}


def prototype_logits(z: Tensor, centers: Tensor) -> Tensor:
    """Return negative squared distances up to a constant: (..., B, d), (k, d) -> (..., B, k)."""
    return 2 * z @ centers.mT - centers.square().sum(-1)


@value
class DistillationObjective(TrainedCenters):
    """Cross-entropy of soft labels, the `targets`, and a softmax of negative squared distances."""

    weight: ClassVar[float] = 1.0
    representation_weight: ClassVar[float] = 0.0

    def loss(self, state: State, z: Tensor, targets: Tensor | None = None) -> Tensor:
        assert targets is not None
        logits = prototype_logits(z, state["centers"])
        return -(targets * logits.log_softmax(-1)).sum(-1).mean()
