"""What weights are mixed with when they are reset."""

from __future__ import annotations

import math
from typing import Protocol

from torch import Tensor

from .. import draws
from ..representations.weights import NORMS, Uniform, draw, fan_in, initial_distributions
from ..utils.values import value
from .target import Layer


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
class CurrentNoise:
    """Gaussian, with the mean and the standard deviation of the parameter as it is now."""

    def __call__(self, layer: Layer, name: str, key: Tensor) -> Tensor:
        current = layer.parameters[name].detach()
        flat = current.reshape(*key.shape, -1)
        drawn = draws.normal(key, flat.shape[-1:], dtype=current.dtype)
        spread = flat.std(-1, correction=0, keepdim=True)
        return (flat.mean(-1, keepdim=True) + spread * drawn).reshape(current.shape)
