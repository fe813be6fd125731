"""Centers as means of groups that are already known."""

from typing import ClassVar

import torch
from torch import Tensor

from ...utils.values import value
from ..steps import Step
from ..target import Target
from .recluster import OnSamples


def group_means(z: Tensor, labels: Tensor, centers: Tensor) -> Tensor:
    """Mean of z (..., n, d) by label (..., n); unused labels keep their center (..., k, d)."""
    clusters = torch.arange(centers.shape[-2], device=z.device).unsqueeze(-1)
    member = (labels.unsqueeze(-2) == clusters).to(z.dtype)
    sizes = member.sum(-1, keepdim=True)
    with torch.autocast(z.device.type, enabled=False):
        sums = member @ z
    return torch.where(sizes > 0, sums / sizes.clamp(min=1), centers)


@value
class NativeRecluster(OnSamples):
    """Set centers to the means of the objective's current hard assignment."""

    def __call__(self, target: Target) -> None:
        z = self.embed(target)
        target.centers.copy_(group_means(z, target.assigner(z), target.centers))


@value
class RecomputeCenters(Step):
    """Keep the labels from before the first step, and set centers to their current means."""

    part: ClassVar[str] = "clustering"

    def prepare(self, target: Target) -> None:
        with target.clock(self.part):
            target.labels = target.assigner(target.embed())

    def __call__(self, target: Target) -> None:
        assert target.labels is not None, "call prepare(target) before the first step"
        target.centers.copy_(group_means(target.embed(), target.labels, target.centers))
