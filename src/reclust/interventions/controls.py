"""Control experiments: new clustering targets while the network stays as it is."""

from collections.abc import Mapping

import torch

from .. import draws
from ..utils.values import number, value
from .reclustering.kmeans import KMeans
from .reclustering.recluster import Method, OnSamples, group_means, place_centers
from .soft_reset import InitialNoise, SoftReset, WeightNoise
from .target import Blocks, Target


@value
class NoisyRecluster(OnSamples):
    """Recluster z + scale * eps, with Gaussian eps scaled to |eps| = |z| for each sample."""

    scale: float = number(default=0.3)
    method: Method = KMeans()

    def __call__(self, target: Target) -> None:
        z = self.embed(target)
        eps = draws.normal(draws.fold(target.key, "noise"), z.shape[-2:], dtype=z.dtype)
        length = eps.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(z.dtype).tiny)
        noisy = z + self.scale * z.norm(dim=-1, keepdim=True) * eps / length
        place_centers(self.method, target, noisy)


@value
class DisentangledReset(OnSamples):
    """Set centers to means of embeddings by the labels of a softly reset copy of the encoder."""

    keep: float | Mapping[str, float] = 0.8
    noise: WeightNoise = InitialNoise()

    def __post_init__(self) -> None:
        SoftReset(self.keep)  # checks `keep`

    def check(self, blocks: Blocks) -> None:
        SoftReset(self.keep, self.noise).check(blocks)

    def __call__(self, target: Target) -> None:
        # Weights are reset in place and restored, since a copy would need its own embedder.
        reset = SoftReset(self.keep, self.noise)
        weights = [weight for layer, _ in reset.layers(target.blocks)
                   for weight in layer.parameters.values()]
        saved = [weight.clone() for weight in weights]
        try:
            reset(target)
            labels = target.assigner(self.embed(target))
        finally:
            for weight, before in zip(weights, saved, strict=True):
                weight.copy_(before)
        target.centers.copy_(group_means(self.embed(target), labels, target.centers))
