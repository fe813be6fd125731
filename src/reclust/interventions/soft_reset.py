"""Soft resets of the encoder's weights, and resets of the centers' momentum."""

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

from torch import Tensor
from typing_extensions import Self

from .. import draws
from ..representations.weights import NORMS, check_distributions
from ..utils.exceptions import warn
from ..utils.values import check_float, value
from .noise import InitialNoise, KaimingNoise, WeightNoise
from .steps import Step
from .target import Blocks, Layer, Target


@dataclass(frozen=True)
class ByBlock(Step):
    """Base of steps that change weights block by block; see `SoftReset` for the fields."""

    keep: float | Mapping[str, float] = 0.8
    _: KW_ONLY
    blocks: tuple[str, ...] | None = None
    norms: bool = False
    part: ClassVar[str] = "reset"

    def __post_init__(self) -> None:
        for factor in self.keep.values() if isinstance(self.keep, Mapping) else [self.keep]:
            if not 0 <= check_float("keep", factor) <= 1:
                raise ValueError("keep must lie between 0 (hard reset) and 1 (no reset), "
                                 f"got {factor!r}.")
        if self.blocks is not None:
            names = (self.blocks,) if isinstance(self.blocks, str) else tuple(self.blocks)
            object.__setattr__(self, "blocks", names)
            if isinstance(self.keep, Mapping):
                raise ValueError("Give either blocks= or a mapping as keep=, which names blocks.")

    def check(self, blocks: Blocks) -> None:
        if not any(self.layers(blocks)):
            warn(f"{type(self).__name__} has nothing to reset in an encoder with the blocks "
                 f"{', '.join(blocks) or '(none)'}: frozen layers and norms are left alone, and so "
                 "is 'embedding', the last layer, unless it is named, as in "
                 "keep={'embedding': 0.8}.")

    def gentler(self, share: float) -> Self:
        """Return a copy whose factors have moved this share of the way to 1."""
        keep = self.keep
        if isinstance(keep, Mapping):
            moved = {block: own + share * (1 - own) for block, own in keep.items()}
            return replace(self, keep=moved)
        return replace(self, keep=keep + share * (1 - keep))

    def layers(self, blocks: Blocks) -> Iterator[tuple[Layer, float]]:
        """Yield the layers to change, each with its factor; frozen layers are left out."""
        for block, keep in self._factors(blocks).items():
            for layer in blocks[block]:
                if layer.parameters and (self.norms or not isinstance(layer.module, NORMS)):
                    yield layer, keep

    def _factors(self, blocks: Blocks) -> dict[str, float]:
        if isinstance(self.keep, Mapping):
            factors = dict(self.keep)
        elif self.blocks is not None:
            factors = dict.fromkeys(self.blocks, self.keep)
        else:
            factors = {name: self.keep for name in blocks if name != "embedding"}
        for name in factors:
            if name not in blocks:
                raise ValueError(f"No block named {name!r} to reset; this encoder has "
                                 f"{', '.join(blocks)}.")
        return factors


@dataclass(frozen=True)
class _WithNoise(ByBlock):
    noise: WeightNoise = InitialNoise()

    def check(self, blocks: Blocks) -> None:
        super().check(blocks)
        for layer, _ in self.layers(blocks):
            if isinstance(self.noise, (InitialNoise, KaimingNoise)):
                check_distributions(layer.name, layer.module)

    def draw(self, target: Target, layer: Layer, name: str) -> Tensor:
        return self.noise(layer, name, draws.fold(target.key, "reset", layer.name, name))


@value
class Shrink(ByBlock):
    """Multiply weights by `keep`: the first half of a soft reset."""

    def __call__(self, target: Target) -> None:
        for layer, keep in self.layers(target.blocks):
            for weights in layer.parameters.values():
                weights.mul_(keep)


@value
class Perturb(_WithNoise):
    """Add (1 - keep) * noise to weights: the second half of a soft reset."""

    def __call__(self, target: Target) -> None:
        for layer, keep in self.layers(target.blocks):
            for name, weights in layer.parameters.items():
                weights.add_(self.draw(target, layer, name), alpha=1 - keep)


@value
class SoftReset(_WithNoise):
    """Set weights to ``keep * weights + (1 - keep) * noise``.

    Parameters
    ----------
    keep : float or mapping of str to float, default=0.8
        1 changes nothing and 0 is a hard reset. A mapping gives a factor for each named block and
        leaves the others alone.
    noise : callable, default=InitialNoise()
        Noise to mix in: `InitialNoise`, `KaimingNoise` or any function of (layer, name, key).
    blocks : tuple of str, optional
        Blocks to reset, by default all but 'embedding'. Not together with a mapping.
    norms : bool, default=False
        Also reset normalization layers.

    Examples
    --------
    >>> from reclust import Every, Recluster, SoftReset
    >>> intervention = Every(10, (SoftReset(0.9, blocks=("layer1",)), Recluster()))
    """

    def __call__(self, target: Target) -> None:
        for layer, keep in self.layers(target.blocks):
            for name, weights in layer.parameters.items():
                noise = self.draw(target, layer, name)  # before shrinking: may depend on weights
                weights.mul_(keep).add_(noise, alpha=1 - keep)


@value
class ResetMomentum(Step):
    """Set the optimizer's moments of the centers to zero.

    Does nothing where the optimizer does not train the centers, as in DCN.

    Parameters
    ----------
    steps : bool, default=False
        Also reset the optimizer's step count of the centers.

    Examples
    --------
    >>> from reclust import Every, Recluster, ResetMomentum
    >>> intervention = Every(10, (Recluster(), ResetMomentum()))
    """

    steps: bool = False
    part: ClassVar[str] = "momentum"

    def __call__(self, target: Target) -> None:
        for tensor in (*target.moments, *(target.step_counts if self.steps else ())):
            tensor.zero_()
