"""Soft resets: weights move part of the way to a fresh draw."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import ClassVar, Protocol

from torch import Tensor

from .. import draws
from ..values import real, value
from ..weights import NORMS, Uniform, draw, fan_in, initial_distributions
from .base import Blocks, Layer, Step, Target


class Noise(Protocol):
    """What weights are mixed with: (layer, name of the parameter, key (...)) -> (..., *shape)."""

    def __call__(self, layer: Layer, name: str, key: Tensor) -> Tensor: ...


def _fresh(layer: Layer, name: str, key: Tensor) -> Tensor:
    current = layer.parameters[name]
    return draw(initial_distributions(layer.module)[name], key, current.shape[key.ndim :], current.dtype)


@value
class InitialNoise:
    """A fresh draw from the layer's own initial distribution, as the paper says."""

    def __call__(self, layer: Layer, name: str, key: Tensor) -> Tensor:
        return _fresh(layer, name, key)


@value
class KaimingNoise:
    """Weights from the Kaiming-uniform distribution with a=0, 2.45 times wider than a linear layer's own; biases and norms
    from their own. This made the published numbers."""

    def __call__(self, layer: Layer, name: str, key: Tensor) -> Tensor:
        current = layer.parameters[name]
        # A weight of one axis, such as PReLU's slope, has no inputs to count.
        if name != "weight" or isinstance(layer.module, NORMS) or current.ndim - key.ndim < 2:
            return _fresh(layer, name, key)
        wide = Uniform(math.sqrt(6 / fan_in(layer.module)))
        return draw(wide, key, current.shape[key.ndim :], current.dtype)


@value
class SoftReset(Step):
    """theta <- keep × theta + (1 - keep) × noise, block by block.

    keep: 1 changes nothing, 0 is a hard reset; a mapping gives a factor to each named block and leaves the others alone.
    blocks: names of the blocks to reset; all but 'embedding' unless said otherwise. Not together with a mapping.
    norms: also reset BatchNorm and its like.
    """

    keep: float | Mapping[str, float] = 0.8
    blocks: tuple[str, ...] | None = None
    noise: Noise = InitialNoise()
    norms: bool = False
    part: ClassVar[str] = "reset"

    def __post_init__(self) -> None:
        for factor in self.keep.values() if isinstance(self.keep, Mapping) else [self.keep]:
            if not 0 <= real("keep", factor) <= 1:
                raise ValueError(f"keep must lie between 0 (hard reset) and 1 (no reset), got {factor!r}.")
        if isinstance(self.blocks, str):
            raise TypeError(f"blocks must be a tuple of block names, got the string {self.blocks!r}: write ({self.blocks!r},).")
        if self.blocks is not None:
            object.__setattr__(self, "blocks", tuple(self.blocks))
            if isinstance(self.keep, Mapping):
                raise ValueError("Give either blocks= or a mapping as keep=, which names its blocks already.")

    def __call__(self, target: Target) -> None:
        for layer, keep in self._layers(target.blocks):
            for name, weights in layer.parameters.items():
                noise = self.noise(layer, name, draws.fold(target.key, "reset", layer.name, name))
                weights.mul_(keep).add_(noise, alpha=1 - keep)

    def check(self, blocks: Blocks) -> None:
        for layer, _ in self._layers(blocks):
            initial_distributions(layer.module)

    def _layers(self, blocks: Blocks) -> Iterator[tuple[Layer, float]]:
        """The layers to reset, each with its factor."""
        for block, keep in self._factors(blocks).items():
            for layer in blocks[block]:
                if self.norms or not isinstance(layer.module, NORMS):
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
