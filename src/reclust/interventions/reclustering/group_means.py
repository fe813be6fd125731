"""Centres as the means of groups that are already known."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from ...utils.values import value
from ..steps import Step
from ..target import Target
from .recluster import OnSamples


def group_means(z: Tensor, labels: Tensor, centers: Tensor) -> Tensor:
    """Mean of the samples z (..., n, d) of each label (..., n); a label that nobody has keeps its centre (..., k, d)."""
    clusters = torch.arange(centers.shape[-2], device=z.device).unsqueeze(-1)
    member = (labels.unsqueeze(-2) == clusters).to(z.dtype)
    sizes = member.sum(-1, keepdim=True)
    with torch.autocast(z.device.type, enabled=False):  # in which somebody's own loop may be
        sums = member @ z
    return torch.where(sizes > 0, sums / sizes.clamp(min=1), centers)


@value
class NativeRecluster(OnSamples):
    """The objective's own hard assignment of the current embeddings; centres are the means of these groups."""

    def __call__(self, target: Target) -> None:
        z = self.embed(target)
        target.centers.copy_(group_means(z, target.assigner(z), target.centers))


@value
class RecomputeCenters(Step):
    """Each sample stays in the cluster it was in before the first step of the sentence; centres are the means of the
    current embeddings."""

    part: ClassVar[str] = "clustering"

    def prepare(self, target: Target) -> None:
        with target.clock(self.part):
            target.labels = target.assigner(target.embed())

    def __call__(self, target: Target) -> None:
        if target.labels is None:
            raise ValueError("RecomputeCenters needs the labels from before the reset: put it into an Every(…), or call its "
                             "prepare(target) before the reset.")
        target.centers.copy_(group_means(target.embed(), target.labels, target.centers))
