"""Weights of a SimCLR network that another program trained, under our names."""

import re
from collections.abc import Mapping

import torch
from torch import Tensor

from .base import build_network
from .contrastive import SimCLR

_SHORTCUT = re.compile(r"\.(shortcut|downsample)\.\d+$")


def convert(state: Mapping[str, Tensor], representation: SimCLR = SimCLR(),
            sample_shape: tuple[int, ...] = (3, 32, 32)) -> dict[str, Tensor]:
    """Rename the weights of a SimCLR network of the same architecture, whatever it calls them.

    Layers are matched by order and shape: first the backbone as torchvision orders it, then the
    MLP, then the projector.

    Examples
    --------
    >>> from reclust import ResNet, SimCLR
    >>> from reclust.representations import build_network, convert
    >>> import torch
    >>> small = SimCLR(ResNet(width=2), hidden=(4,), embedding=3, projector=(4, 2))
    >>> other = build_network(small, (3, 8, 8), 2, torch.float32).state_dict()
    >>> renamed = {f"module.{name}": weights for name, weights in other.items()}
    >>> convert(renamed, small, (3, 8, 8)).keys() == other.keys()
    True
    """
    net = build_network(representation, sample_shape, 1, torch.float32)
    ours, theirs = _by_layer(net.state_dict()), _by_layer(state)
    shapes, given_shapes = ([{leaf: tuple(tensor.shape) for leaf, tensor in layer.items()}
                             for layer in group.values()] for group in (ours, theirs))
    if shapes != given_shapes:
        raise ValueError(f"The state dict has other layers than {representation}, or in another "
                         f"order: {len(theirs)} with weights, {len(ours)} are needed.")
    converted = {f"{name}.{leaf}": tensor.detach().float() if tensor.is_floating_point() else tensor
                 for name, given in zip(ours, theirs.values(), strict=True)
                 for leaf, tensor in given.items()}
    return {name: converted[name] for name in net.state_dict()}


def _by_layer(state: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Tensors of each layer: shortcuts end their residual blocks, and the projector is last."""
    found: dict[str, dict[str, Tensor]] = {}
    for name, tensor in state.items():
        layer, _, leaf = name.rpartition(".")
        found.setdefault(layer, {})[leaf] = tensor
    first: dict[str, int] = {}
    order = {}
    for i, name in enumerate(found):
        block, is_shortcut = _SHORTCUT.subn("", name)
        block = block if is_shortcut else name.rpartition(".")[0]
        order[name] = ("proj" in name, first.setdefault(block, i), is_shortcut)
    return {name: found[name] for name in sorted(found, key=lambda name: order[name])}
