"""Controls: new targets for clustering while the network stays as it is."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from .. import draws
from ..utils.values import check_float, value
from .noise import InitialNoise, Noise
from .reclustering.group_means import group_means
from .reclustering.kmeans import KMeans
from .reclustering.recluster import Method, OnSamples, check_method, place_centers
from .soft_reset import SoftReset
from .target import Blocks, Target


@value
class NoisyRecluster(OnSamples):
    """Centres by `method` on z + scale × eps, with eps Gaussian and scaled to |eps| = |z| for each sample."""

    scale: float = 0.3
    method: Method = KMeans()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "scale", check_float("scale", self.scale))
        check_method(self.method)

    def __call__(self, target: Target) -> None:
        z = self.embed(target)
        eps = draws.normal(draws.fold(target.key, "noise"), z.shape[-2:], dtype=z.dtype)
        length = eps.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(z.dtype).tiny)
        noisy = z + self.scale * z.norm(dim=-1, keepdim=True) * eps / length
        place_centers(self.method, [target], [noisy])


@value
class DisentangledReset(OnSamples):
    """A softly reset copy of the encoder labels the samples with the current centres; new centres are the means of the
    untouched encoder's embeddings under those labels. keep, noise: as of `SoftReset`."""

    keep: float | Mapping[str, float] = 0.8
    noise: Noise = InitialNoise()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._reset  # noqa: B018 - refuses a bad `keep` now

    def check(self, blocks: Blocks) -> None:
        self._reset.check(blocks)

    def __call__(self, target: Target) -> None:
        target.centers.copy_(group_means(self.embed(target), self._labels_of_copy(target), target.centers))

    @property
    def _reset(self) -> SoftReset:
        return SoftReset(self.keep, self.noise)

    def _labels_of_copy(self, target: Target) -> Tensor:
        """The network is reset in place and put back bit by bit: a copy would need an embedder of its own."""
        weights = [own for layer, _ in self._reset.layers(target.blocks) for own in layer.parameters.values()]
        saved = [own.clone() for own in weights]
        try:
            self._reset(target)
            return target.assigner(self.embed(target))
        finally:
            for own, before in zip(weights, saved, strict=True):
                own.copy_(before)
