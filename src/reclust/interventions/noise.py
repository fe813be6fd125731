"""Noise that weights are mixed with when they are reset."""

import math
from typing import Protocol

from torch import Tensor

from .. import draws
from ..representations.weights import NORMS, Uniform, draw, fan_in, initial_distributions
from ..utils.values import value
from .target import Layer


class WeightNoise(Protocol):
    """A function of (layer, parameter name, key (...)) that returns noise (..., *shape)."""

    def __call__(self, layer: Layer, name: str, key: Tensor) -> Tensor: ...


def _initial(layer: Layer, name: str, key: Tensor) -> Tensor:
    current = layer.parameters[name]
    distribution = initial_distributions(layer.module)[name]
    return draw(distribution, key, current.shape[key.ndim :], current.dtype)


@value
class InitialNoise:
    """Fresh draws from each layer's initial distribution, as in the paper.

    Examples
    --------
    >>> from reclust import InitialNoise, SoftReset
    >>> step = SoftReset(0.8, noise=InitialNoise())
    """

    def __call__(self, layer: Layer, name: str, key: Tensor) -> Tensor:
        return _initial(layer, name, key)


@value
class KaimingNoise:
    """Weights from the Kaiming-uniform distribution with a=0, which gives the published numbers.

    That is 2.45 times wider than the initial distribution of a linear layer. Biases and norms are
    drawn from their initial distributions.

    Examples
    --------
    >>> from reclust import KaimingNoise, SoftReset
    >>> step = SoftReset(0.8, noise=KaimingNoise())
    """

    def __call__(self, layer: Layer, name: str, key: Tensor) -> Tensor:
        current = layer.parameters[name]
        # Weights with one axis, such as PReLU's, have no fan-in.
        if name != "weight" or isinstance(layer.module, NORMS) or current.ndim - key.ndim < 2:
            return _initial(layer, name, key)
        wide = Uniform(math.sqrt(6 / fan_in(layer.module)))
        return draw(wide, key, current.shape[key.ndim :], current.dtype)


@value
class CurrentNoise:
    """Gaussian noise with the current mean and standard deviation of the parameter."""

    def __call__(self, layer: Layer, name: str, key: Tensor) -> Tensor:
        current = layer.parameters[name].detach()
        flat = current.reshape(*key.shape, -1)
        drawn = draws.normal(key, flat.shape[-1:], dtype=current.dtype)
        spread = flat.std(-1, correction=0, keepdim=True)
        return (flat.mean(-1, keepdim=True) + spread * drawn).reshape(current.shape)
