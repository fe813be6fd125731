"""Soft resets of the encoder's weights, the noise they mix in, and resets of momentum."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

from torch import Tensor
from typing_extensions import Self

from .. import draws
from ..representations import weights as init
from ..utils.exceptions import warn
from ..utils.values import check_float, value
from .steps import Step
from .target import Blocks, Layer, Target

# A function of (layer, parameter name, key (...)) that returns noise (..., *shape).
WeightNoise = Callable[[Layer, str, Tensor], Tensor]


@value
class InitialNoise:
    """Fresh draws from each layer's initial distribution, as in the paper.

    Examples
    --------
    >>> from reclust import InitialNoise, SoftReset
    >>> step = SoftReset(0.8, noise=InitialNoise())
    """

    def __call__(self, layer: Layer, name: str, key: Tensor) -> Tensor:
        current = layer.parameters[name]
        distribution = init.initial_distributions(layer.module)[name]
        return init.draw(distribution, key, current.shape[key.ndim :], current.dtype)


@value
class KaimingNoise:
    """Weights from the Kaiming-uniform distribution with a=0, which gives the published numbers.

    That is 2.45 times as wide as a linear layer starts. Biases and norms are as in `InitialNoise`.

    Examples
    --------
    >>> from reclust import KaimingNoise, SoftReset
    >>> step = SoftReset(0.8, noise=KaimingNoise())
    """

    def __call__(self, layer: Layer, name: str, key: Tensor) -> Tensor:
        current = layer.parameters[name]
        # Weights with one axis, such as PReLU's, have no fan-in.
        if name != "weight" or isinstance(layer.module, init.NORMS) or current.ndim - key.ndim < 2:
            return InitialNoise()(layer, name, key)
        wide = init.Uniform(math.sqrt(6 / init.fan_in(layer.module)))
        return init.draw(wide, key, current.shape[key.ndim :], current.dtype)


@value
class CurrentNoise:
    """Gaussian noise with the current mean and standard deviation of the parameter."""

    def __call__(self, layer: Layer, name: str, key: Tensor) -> Tensor:
        current = layer.parameters[name].detach()
        flat = current.reshape(*key.shape, -1)
        drawn = draws.normal(key, flat.shape[-1:], dtype=current.dtype)
        spread = flat.std(-1, correction=0, keepdim=True)
        return (flat.mean(-1, keepdim=True) + spread * drawn).reshape(current.shape)


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
                raise ValueError(f"keep must lie between 0 and 1 (no reset), got {factor}.")
        if self.blocks is not None:
            names = (self.blocks,) if isinstance(self.blocks, str) else tuple(self.blocks)
            object.__setattr__(self, "blocks", names)
            if isinstance(self.keep, Mapping):
                raise ValueError("Give either blocks= or a mapping as keep=, which names blocks.")

    def check(self, blocks: Blocks) -> None:
        if not any(self.layers(blocks)):
            warn(f"{type(self).__name__} has nothing to reset in {', '.join(blocks)}, since frozen "
                 "layers and norms stay, and 'embedding' without keep={'embedding': 0.8}.")

    def gentler(self, share: float) -> Self:
        """Return a copy whose factors have moved this share of the way to 1."""
        if isinstance(self.keep, Mapping):
            moved = {block: keep + share * (1 - keep) for block, keep in self.keep.items()}
            return replace(self, keep=moved)
        return replace(self, keep=self.keep + share * (1 - self.keep))

    def layers(self, blocks: Blocks) -> Iterator[tuple[Layer, float]]:
        """Yield the layers to change, each with its factor; frozen layers are left out."""
        if isinstance(self.keep, Mapping):
            factors = dict(self.keep)
        elif self.blocks is not None:
            factors = dict.fromkeys(self.blocks, self.keep)
        else:
            factors = {name: self.keep for name in blocks if name != "embedding"}
        for name in factors.keys() - blocks.keys():
            raise ValueError(f"No block named {name!r} to reset, only {', '.join(blocks)}.")
        for block, keep in factors.items():
            for layer in blocks[block]:
                if layer.parameters and (self.norms or not isinstance(layer.module, init.NORMS)):
                    yield layer, keep


@dataclass(frozen=True)
class _WithNoise(ByBlock):
    noise: WeightNoise = InitialNoise()

    def check(self, blocks: Blocks) -> None:
        super().check(blocks)
        for layer, _ in self.layers(blocks):
            if isinstance(self.noise, (InitialNoise, KaimingNoise)):
                init.check_distributions(layer.name, layer.module)

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
    """Set the optimizer's moments of the centers to zero, if it trains them (not in DCN).

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
