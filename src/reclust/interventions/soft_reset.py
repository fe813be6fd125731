"""Soft resets: weights shrink, and move towards noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

from torch import Tensor
from typing_extensions import Self

from .. import draws
from ..representations.weights import NORMS, check_distributions, without_padding
from ..utils.values import check_float, value
from .noise import InitialNoise, KaimingNoise, Noise
from .steps import NothingToReset, Step
from .target import Blocks, Layer, Target


@dataclass(frozen=True)
class ByBlock(Step):
    """A change of weights, block by block.

    keep: 1 changes nothing; a mapping gives a factor to each named block and leaves the others alone.
    blocks: names of the blocks to change; all but 'embedding' unless said otherwise. Not together with a mapping.
    norms: also change BatchNorm and its like.
    """

    keep: float | Mapping[str, float] = 0.8
    _: KW_ONLY
    blocks: tuple[str, ...] | None = None
    norms: bool = False
    part: ClassVar[str] = "reset"

    def __post_init__(self) -> None:
        for factor in self.keep.values() if isinstance(self.keep, Mapping) else [self.keep]:
            if not 0 <= check_float("keep", factor) <= 1:
                raise ValueError(f"keep must lie between 0 (hard reset) and 1 (no reset), got {factor!r}.")
        if isinstance(self.blocks, str):
            raise TypeError(f"blocks must be a tuple of block names, got the string {self.blocks!r}: write ({self.blocks!r},).")
        if self.blocks is not None:
            object.__setattr__(self, "blocks", tuple(self.blocks))
            if isinstance(self.keep, Mapping):
                raise ValueError("Give either blocks= or a mapping as keep=, which names its blocks already.")

    def check(self, blocks: Blocks) -> None:
        if next(self.layers(blocks), None) is None:
            raise NothingToReset(
                f"{type(self).__name__} has nothing to reset in an encoder with the blocks {', '.join(blocks) or '(none)'}: "
                "frozen layers and norms are left alone, and so is 'embedding', the last layer, unless it is named. Name it by "
                "keep={'embedding': 0.8} or blocks=('embedding',); in a loop of your own, Target.of(…, blocks=…) can name more."
            )

    def gentler(self, share: float) -> Self:
        """The same with factors that went this share of their way to 1."""
        keep = self.keep
        if isinstance(keep, Mapping):
            return replace(self, keep={block: own + share * (1 - own) for block, own in keep.items()})
        return replace(self, keep=keep + share * (1 - keep))

    def layers(self, blocks: Blocks) -> Iterator[tuple[Layer, float]]:
        """The layers to change, each with its factor; those that their author froze have nothing to change."""
        for block, keep in self._factors(blocks).items():
            for layer in blocks[block]:
                if layer.parameters and (self.norms or not isinstance(layer.module, NORMS)):
                    yield layer, keep

    def _factors(self, blocks: Blocks) -> dict[str, float]:
        if isinstance(self.keep, Mapping):
            factors = dict(self.keep)
        else:
            names = self.blocks if self.blocks is not None else [name for name in blocks if name != "embedding"]
            factors = dict.fromkeys(names, self.keep)
        unknown = [name for name in factors if name not in blocks]
        if unknown:
            raise ValueError(f"No block named {unknown[0]!r} to reset; this encoder has {', '.join(blocks)}.")
        return factors


@dataclass(frozen=True)
class _WithNoise(ByBlock):
    noise: Noise = InitialNoise()

    def check(self, blocks: Blocks) -> None:
        super().check(blocks)
        for layer, _ in self.layers(blocks):
            if isinstance(self.noise, (InitialNoise, KaimingNoise)):
                check_distributions(layer.name, layer.module)

    def draw(self, target: Target, layer: Layer, name: str) -> Tensor:
        drawn = self.noise(layer, name, draws.fold(target.key, "reset", layer.name, name))
        return without_padding(layer.module, drawn)


@value
class Shrink(ByBlock):
    """theta <- keep × theta: the first half of a soft reset."""

    def __call__(self, target: Target) -> None:
        for layer, keep in self.layers(target.blocks):
            for weights in layer.parameters.values():
                weights.mul_(keep)


@value
class Perturb(_WithNoise):
    """theta <- theta + (1 - keep) × noise: the second half of a soft reset."""

    def __call__(self, target: Target) -> None:
        for layer, keep in self.layers(target.blocks):
            for name, weights in layer.parameters.items():
                weights.add_(self.draw(target, layer, name), alpha=1 - keep)


@value
class SoftReset(_WithNoise):
    """theta <- keep × theta + (1 - keep) × noise; keep = 0 is a hard reset."""

    def __call__(self, target: Target) -> None:
        for layer, keep in self.layers(target.blocks):
            for name, weights in layer.parameters.items():
                noise = self.draw(target, layer, name)  # before shrinking: it may depend on the weights
                weights.mul_(keep).add_(noise, alpha=1 - keep)
