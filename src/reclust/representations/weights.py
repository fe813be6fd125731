"""The initial weight distributions of layers, drawn by key.

Layers' own `reset_parameters` uses the global generator, which a library must not touch, and cannot draw many replicas at
once. A new kind of layer is one `@initial_distributions.register` away from being initialised and softly reset.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import singledispatch

import torch
from torch import Tensor, nn

from .. import draws
from ..utils.values import value


@value
class Uniform:
    bound: float


@value
class Normal:
    std: float


@value
class Constant:
    level: float


Distribution = Uniform | Normal | Constant


@singledispatch
def initial_distributions(layer: nn.Module) -> dict[str, Distribution]:
    """Parameter name -> distribution it is initialised from, for one layer's own parameters."""
    raise TypeError(
        f"The initial weights of a {type(layer).__name__} layer are not known. Register a function that returns its "
        "parameters' distributions with reclust.weights.initial_distributions.register."
    )


@initial_distributions.register(nn.Linear)
@initial_distributions.register(nn.modules.conv._ConvNd)
def _(layer: nn.Linear | nn.modules.conv._ConvNd) -> dict[str, Distribution]:
    bound = 1 / math.sqrt(fan_in(layer))
    return {"weight": Uniform(bound), "bias": Uniform(bound)}


@initial_distributions.register(nn.modules.batchnorm._NormBase)
@initial_distributions.register(nn.LayerNorm)
@initial_distributions.register(nn.GroupNorm)
@initial_distributions.register(nn.RMSNorm)
def _(layer: nn.Module) -> dict[str, Distribution]:
    return {"weight": Constant(1.0), "bias": Constant(0.0)}


@initial_distributions.register(nn.PReLU)
def _(layer: nn.PReLU) -> dict[str, Distribution]:
    return {"weight": Constant(0.25)}


@initial_distributions.register(nn.Embedding)
@initial_distributions.register(nn.EmbeddingBag)
def _(layer: nn.Embedding | nn.EmbeddingBag) -> dict[str, Distribution]:
    return {"weight": Normal(1.0)}


NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
"""Those of batches and instances, and the others."""


def check_distributions(name: str, layer: nn.Module) -> None:
    """Raise where the initial distribution of a parameter of this layer is not known."""
    known = initial_distributions(layer)
    for parameter, _ in layer.named_parameters(recurse=False):
        if parameter not in known:
            raise TypeError(f"The initial distribution of {parameter!r} of {name}, a {type(layer).__name__}, is not known: "
                            "register a function that returns it, too, with reclust.weights.initial_distributions.register.")


def fan_in(layer: nn.Module) -> int:
    """How many inputs feed one output of a linear or convolutional layer, or of one like these."""
    # Not from the weight: where that is computed from others (spectral_norm), looking at it changes them.
    if isinstance(layer, nn.Linear):
        return max(1, layer.in_features)
    if isinstance(layer, nn.modules.conv._ConvNd):
        # A transposed one stores its weight as (in, out, ...); torch computes its fan from the second axis all the same.
        channels = layer.out_channels if layer.transposed else layer.in_channels
        return max(1, channels // layer.groups * math.prod(layer.kernel_size))
    weight = layer.weight
    assert isinstance(weight, Tensor)
    return max(1, math.prod(weight.shape[1:]))


def without_padding(layer: nn.Module, drawn: Tensor) -> Tensor:
    """With zeros in the row (..., row, d) that stands for padding, which nothing would ever train away."""
    row = layer.padding_idx if isinstance(layer, (nn.Embedding, nn.EmbeddingBag)) else None
    return drawn if row is None else drawn.index_fill(-2, torch.tensor([row], device=drawn.device), 0)


def layers(net: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The modules that own parameters themselves, with their names."""
    for name, module in net.named_modules():
        if next(module.parameters(recurse=False), None) is not None:
            yield name, module


def draw(distribution: Distribution, key: Tensor, shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """Shape (*key.shape, *shape)."""
    if isinstance(distribution, Uniform):
        return draws.uniform(key, shape, dtype=dtype).mul_(2).sub_(1).mul_(distribution.bound)
    if isinstance(distribution, Normal):
        return draws.normal(key, shape, dtype=dtype).mul_(distribution.std)
    return torch.full((*key.shape, *shape), distribution.level, dtype=dtype, device=key.device)


def initial_weights(net: nn.Module, key: Tensor, *, dtype: torch.dtype) -> dict[str, Tensor]:
    """Freshly drawn parameters of `net`, one set for each key: name -> (*key.shape, *shape). Frozen ones stay what they are."""
    drawn = {}
    for layer_name, layer in layers(net):
        check_distributions(layer_name, layer)
        distributions = initial_distributions(layer)
        for name, parameter in layer.named_parameters(recurse=False):
            full_name = f"{layer_name}.{name}" if layer_name else name
            if parameter.requires_grad:
                made = draw(distributions[name], draws.fold(key, full_name), parameter.shape, dtype)
                drawn[full_name] = without_padding(layer, made)
            else:
                drawn[full_name] = _expanded(parameter, key, dtype)
    return drawn


def expanded_weights(net: nn.Module, key: Tensor, *, dtype: torch.dtype) -> dict[str, Tensor]:
    """The parameters `net` has, copied for each key: name -> (*key.shape, *shape)."""
    return {
        name: _expanded(parameter, key, dtype) for name, parameter in net.named_parameters()
    }


def _expanded(parameter: Tensor, key: Tensor, dtype: torch.dtype) -> Tensor:
    return parameter.detach().to(key.device, dtype).expand(*key.shape, *parameter.shape).clone(
        memory_format=torch.contiguous_format)  # gradients come in that order, and fused optimizers do not look


def decaying_weights(net: nn.Module, *, prefix: str = "") -> frozenset[str]:
    """The parameters that weight decay usually acts on: no biases, no norms, nothing of a single axis."""
    return frozenset(
        f"{prefix}{layer_name}.{name}" if layer_name else f"{prefix}{name}"
        for layer_name, layer in layers(net) if not isinstance(layer, NORMS)
        for name, parameter in layer.named_parameters(recurse=False) if parameter.ndim > 1
    )
