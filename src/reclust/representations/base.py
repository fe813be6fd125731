"""What a representation is: how x becomes z, and the loss that keeps z honest."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from ..utils.exceptions import first_line
from ..utils.global_rng import fixed_seed
from .weights import NORMS, layers


@runtime_checkable
class Representation(Protocol):
    """Written for one model. `net` is an ordinary module that `build` made; the methods use it and keep no state.

    Shapes: V views of each sample, B batch, d embedding size.
    """

    stacks: ClassVar[bool]
    """Whether replicas are worth mapping with vmap. Heavy networks fill a device alone: their replicas take turns, and
    estimators use them where they were trained."""

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> nn.Module:
        """The network for samples of this shape; its weights are drawn again by whoever trains it."""
        ...

    def initial_weights(self, net: Any, key: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        """What training starts from: parameter name -> (*key.shape, *shape)."""
        ...

    def encode(self, net: Any, x: Tensor) -> Tensor:
        """(B, *sample_shape) -> (B, d)."""
        ...

    def encode_views(self, net: Any, views: Tensor) -> Tensor:
        """(V, B, *sample_shape) -> (V, B, d), as training sees them."""
        ...

    def loss(self, net: Any, views: Tensor, z: Tensor) -> Tensor:
        """The representation's own loss, a scalar, averaged over the views."""
        ...

    def blocks(self, net: Any) -> dict[str, tuple[str, ...]]:
        """What may be reset: block name -> names of its layers in `net`. The last layer of the encoder is 'embedding'."""
        ...

    def decaying(self, net: Any) -> frozenset[str]:
        """Names of the parameters that weight decay acts on, where there is any."""
        ...


def build_network(representation: Representation, sample_shape: tuple[int, ...], n_clusters: int, dtype: torch.dtype, *,
                  device: str = "cpu") -> nn.Module:
    """A network of one's own, in eval mode, whose construction leaves the caller's random state alone."""
    with fixed_seed(), torch.device(device):
        net = representation.build(sample_shape, n_clusters)
    _refuse_what_cannot_be_repeated(net)
    return copy.deepcopy(net).to(dtype).eval()


def _refuse_what_cannot_be_repeated(net: nn.Module) -> None:
    if len(list(net.named_parameters())) < len(list(net.named_parameters(remove_duplicate=False))):
        raise ValueError("Two layers of the network share one weight tensor. Replicas keep weights apart: untie them.")
    if len(list(net.named_buffers())) < len(list(net.named_buffers(remove_duplicate=False))):
        raise ValueError("Two layers of the network share one buffer. Replicas keep them apart: let one of them hold it.")
    for name, tensor in (*net.named_parameters(), *net.named_buffers()):
        if nn.parameter.is_lazy(tensor):
            raise ValueError(f"{name} has no shape yet, since its lazy layer has seen no data: give the layer its size, or "
                             "pass a sample through the network before.")
        if tensor.is_complex():
            raise ValueError(f"{name} is complex, and a network is cast to one precision of real numbers: keep it as "
                             "torch.view_as_real(…), and make it complex in forward.")
    for name, module in net.named_modules():
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0:
            raise ValueError(f"The layer {name} is a {type(module).__name__}, which draws from torch's global generator: a "
                             "seed would not repeat a run. Leave it out, or use augment= for random views.")


def tried(part: str, call: Callable[[Tensor], Tensor], given: Tensor) -> Tensor:
    """What a part of a network makes of this, or an error that names the part and what came in."""
    try:
        made = call(given)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, ValueError, IndexError) as error:
        raise ValueError(f"The {part} cannot take a tensor of shape {tuple(given.shape)}: {first_line(error).rstrip('.')}. "
                         f"Its first layer must fit {_EXPECTED[part]}.") from error
    if not isinstance(made, Tensor):
        raise ValueError(f"The {part} must give a tensor, but gave a {type(made).__name__}: wrap it in a module that gives the "
                         "tensor alone.")
    return made


_EXPECTED = {"encoder": "the samples; nn.Flatten() makes rows of images", "decoder": "the embeddings of the encoder",
             "projector": "the embeddings of the encoder"}


def encode_together(encoder: nn.Module, views: Tensor) -> Tensor:
    """One forward pass for all views, so that they share BatchNorm statistics and launch half the kernels."""
    return encoder(views.flatten(0, 1)).unflatten(0, views.shape[:2])


def encoder_blocks(encoder: nn.Module, *, prefix: str = "") -> dict[str, tuple[str, ...]]:
    """Every layer a block of its own, together with a norm, PReLU or the like that follows it: layer1, layer2, …, embedding."""
    blocks: list[list[str]] = []
    last = None
    for name, layer in layers(encoder):
        full_name = f"{prefix}{name}".rstrip(".")
        owner = name.split("parametrizations.")[0].rstrip(".")  # of weights that are computed from others
        if blocks and (owner == last or _only_scales(layer)):
            blocks[-1].append(full_name)
        else:
            blocks.append([full_name])
            last = owner
    if not blocks:
        raise ValueError("The encoder has no layer with weights: there is nothing to train or to reset.")
    names = [f"layer{i + 1}" for i in range(len(blocks) - 1)] + ["embedding"]
    return {name: tuple(block) for name, block in zip(names, blocks, strict=True)}


def _only_scales(layer: nn.Module) -> bool:
    """Norms, PReLU and layers of one's own like these: a number for each channel, and nothing that mixes channels."""
    known = isinstance(layer, (*NORMS, nn.PReLU))
    return known or (not is_parametrized(layer) and all(own.ndim < 2 for own in layer.parameters(recurse=False)))


def layers_of(net: nn.Module, place: str) -> tuple[str, ...]:
    """The full names of the layers with weights in one part of a network."""
    return tuple(f"{place}.{name}".rstrip(".") for name, _ in layers(net.get_submodule(place)))


def check_images(network: str, sample_shape: tuple[int, ...]) -> None:
    if len(sample_shape) != 3:
        raise ValueError(f"A {network} needs images (channels, height, width), samples are {sample_shape}: give "
                         "image_shape= for flat rows, or use another representation for tables.")
