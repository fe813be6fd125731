"""Initial weights of layers by key; `initial_distributions.register` adds other kinds of layers."""

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
NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
_REGISTER = "register them with reclust.representations.weights.initial_distributions.register."


@singledispatch
def initial_distributions(layer: nn.Module) -> dict[str, Distribution]:
    """Return the initial distributions of a layer's own parameters by name."""
    kind = type(layer).__name__
    raise TypeError(f"The initial distributions of a {kind} are unknown: {_REGISTER}")


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


@initial_distributions.register(nn.MultiheadAttention)
def _(layer: nn.MultiheadAttention) -> dict[str, Distribution]:
    weights = {name: Uniform(math.sqrt(6 / sum(weight.shape)))  # Xavier's
               for name, weight in layer.named_parameters(recurse=False) if weight.ndim == 2}
    return {**weights, "in_proj_bias": Constant(0.0)}


def check_distributions(name: str, layer: nn.Module) -> None:
    """Raise if the initial distribution of a parameter of this layer is unknown."""
    known = initial_distributions(layer)
    for parameter, _ in layer.named_parameters(recurse=False):
        if parameter not in known:
            raise TypeError(f"The initial distribution of {parameter!r} of {name}, a "
                            f"{type(layer).__name__}, is unknown: {_REGISTER}")


def fan_in(layer: nn.Module) -> int:
    """Return the number of inputs of one output of a linear or convolutional layer."""
    if isinstance(layer, nn.Linear):  # accessing a weight with spectral_norm changes its buffers
        return max(1, layer.in_features)
    if isinstance(layer, nn.modules.conv._ConvNd):
        channels = layer.out_channels if layer.transposed else layer.in_channels  # as torch does
        return max(1, channels // layer.groups * math.prod(layer.kernel_size))
    weight = next(weight for weight in layer.parameters(recurse=False) if weight.ndim > 1)
    return max(1, math.prod(weight.shape[1:]))


def layers(net: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield the names and modules that own parameters themselves."""
    for name, module in net.named_modules():
        if next(module.parameters(recurse=False), None) is not None:
            yield name, module


def draw(distribution: Distribution, key: Tensor, shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """Draw numbers of shape (*key.shape, *shape)."""
    if isinstance(distribution, Uniform):
        return draws.uniform(key, shape, dtype=dtype).mul_(2).sub_(1).mul_(distribution.bound)
    if isinstance(distribution, Normal):
        return draws.normal(key, shape, dtype=dtype).mul_(distribution.std)
    return torch.full((*key.shape, *shape), distribution.level, dtype=dtype, device=key.device)


def initial_weights(net: nn.Module, key: Tensor, *, dtype: torch.dtype) -> dict[str, Tensor]:
    """Draw parameters for each key: name -> (*key.shape, *shape). Frozen ones are copied."""
    drawn = {}
    for layer_name, layer in layers(net):
        check_distributions(layer_name, layer)
        distributions = initial_distributions(layer)
        for name, parameter in layer.named_parameters(recurse=False):
            full_name = f"{layer_name}.{name}".lstrip(".")
            if parameter.requires_grad:
                own_key = draws.fold(key, full_name)
                drawn[full_name] = draw(distributions[name], own_key, parameter.shape, dtype)
            else:
                drawn[full_name] = _expanded(parameter, key, dtype)
    return drawn


def expanded_weights(net: nn.Module, key: Tensor, *, dtype: torch.dtype) -> dict[str, Tensor]:
    """Copy the parameters of `net` for each key: name -> (*key.shape, *shape)."""
    return {name: _expanded(parameter, key, dtype) for name, parameter in net.named_parameters()}


def _expanded(parameter: Tensor, key: Tensor, dtype: torch.dtype) -> Tensor:
    copies = parameter.detach().to(key.device, dtype).expand(*key.shape, *parameter.shape)
    return copies.clone(memory_format=torch.contiguous_format)  # as fused optimizers need


def decaying_weights(net: nn.Module, *, prefix: str = "") -> frozenset[str]:
    """Name the parameters for weight decay: no biases, no norms, nothing with one axis."""
    return frozenset(prefix + f"{layer_name}.{name}".lstrip(".")
                     for layer_name, layer in layers(net) if not isinstance(layer, NORMS)
                     for name, weight in layer.named_parameters(recurse=False) if weight.ndim > 1)
