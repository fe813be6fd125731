"""The representation protocol: how x becomes z, and the loss that keeps z informative."""

import copy
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from ..utils.device import fixed_seed
from ..utils.exceptions import first_line
from .layers import KeyedDropout
from .weights import NORMS, decaying_weights, expanded_weights, initial_weights, layers


@runtime_checkable
class Representation(Protocol):
    """Protocol of representations, which turn samples into embeddings.

    A representation is a frozen dataclass, decorated with `reclust.value`. Its methods are written
    for one model, take the network that `build` made as `net`, and keep no state.

    Shapes: V views of each sample, B batch size, d embedding size.

    Examples
    --------
    >>> import torch
    >>> from reclust import Autoencoder, Representation
    >>> representation = Autoencoder(hidden=(8,), embedding=2)
    >>> isinstance(representation, Representation)
    True
    >>> net = representation.build((5,), n_clusters=3)
    >>> representation.encode(net, torch.zeros(10, 5)).shape
    torch.Size([10, 2])
    """

    stacks: ClassVar[bool]  # with vmap; replicas of large networks take turns instead

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> nn.Module:
        """Make the network for samples of this shape; its weights are drawn later."""

    def initial_weights(self, net: Any, key: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        """Draw initial parameters: name -> (*key.shape, *shape)."""

    def encode(self, net: Any, x: Tensor) -> Tensor:
        """Embed samples: (B, *sample_shape) -> (B, d)."""

    def encode_views(self, net: Any, views: Tensor) -> Tensor:
        """Embed views during training: (V, B, *sample_shape) -> (V, B, d)."""

    def loss(self, net: Any, views: Tensor, z: Tensor) -> Tensor:
        """Compute the representation's own loss, a scalar, averaged over views."""

    def blocks(self, net: Any) -> dict[str, tuple[str, ...]]:
        """Name the layers of each block that may be reset; the last is 'embedding'."""

    def decaying(self, net: Any) -> frozenset[str]:
        """Name the parameters that weight decay acts on."""


class WithEncoder:
    """Shared part of representations whose networks have an `encoder`, which makes z."""

    stacks: ClassVar[bool] = True
    compares_samples: ClassVar[bool] = False  # in `loss`, which otherwise is a mean over samples
    weights: Literal["fresh", "given"] = "fresh"  # given ones are those of the modules

    def encode(self, net: Any, x: Tensor) -> Tensor:
        return net.encoder(x)

    def encode_views(self, net: Any, views: Tensor) -> Tensor:
        return encode_together(net.encoder, views)

    def initial_weights(self, net: Any, key: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        draw = initial_weights if self.weights == "fresh" else expanded_weights
        return draw(net, key, dtype=dtype)

    def blocks(self, net: Any) -> dict[str, tuple[str, ...]]:
        return encoder_blocks(net.encoder, prefix="encoder.")

    def decaying(self, net: Any) -> frozenset[str]:
        return decaying_weights(net)


def build_network(representation: Representation, sample_shape: tuple[int, ...], n_clusters: int,
                  dtype: torch.dtype, *, device: str = "cpu") -> nn.Module:
    """Build a network in eval mode, its dropout by key, without changing torch's random state."""
    with fixed_seed(), torch.device(device):
        net = representation.build(sample_shape, n_clusters)
    if len([*net.named_parameters(remove_duplicate=False)]) > len([*net.parameters()]):
        raise ValueError("Two layers of the network share a weight tensor: untie them.")
    for name, tensor in (*net.named_parameters(), *net.named_buffers()):
        if nn.parameter.is_lazy(tensor):
            raise ValueError(f"{name} belongs to a lazy layer: give the layer its size.")
    net = copy.deepcopy(net)
    for owner in [*net.modules()]:
        for name, layer in owner.named_children():
            if type(layer) is nn.Dropout:
                setattr(owner, name, KeyedDropout(layer.p).to(device))
    return net.to(dtype).eval()


def try_forward(part: str, call: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Call the encoder, decoder or projector with an error message that names it."""
    try:
        output = call(x)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, ValueError, IndexError) as error:
        hint = "; nn.Flatten() turns images into rows" if part == "encoder" else ""
        raise ValueError(f"The {part} cannot take a tensor of shape {tuple(x.shape)}: "
                         f"{first_line(error).rstrip('.')}. Fit its first layer{hint}.") from error
    if not isinstance(output, Tensor):
        raise ValueError(f"The {part} must return one tensor, got {type(output).__name__}.")
    return output


def encode_together(encoder: nn.Module, views: Tensor) -> Tensor:
    """Encode all views in one pass, so that they share BatchNorm statistics."""
    return encoder(views.flatten(0, 1)).unflatten(0, views.shape[:2])


def encoder_blocks(encoder: nn.Module, *, prefix: str = "") -> dict[str, tuple[str, ...]]:
    """Make a block of each layer with the norms after it: layer1, layer2, ..., embedding."""
    blocks: list[list[str]] = []
    last = None
    for name, layer in layers(encoder):
        full_name = f"{prefix}{name}".rstrip(".")
        owner = name.split("parametrizations.")[0].rstrip(".")  # of spectral_norm and the like
        if blocks and (owner == last or _only_scales(layer)):
            blocks[-1].append(full_name)
        else:
            blocks.append([full_name])
            last = owner
    if not blocks:
        raise ValueError("The encoder has no layer with weights: there is nothing to train.")
    names = [f"layer{i + 1}" for i in range(len(blocks) - 1)] + ["embedding"]
    return {name: tuple(block) for name, block in zip(names, blocks, strict=True)}


def _only_scales(layer: nn.Module) -> bool:
    return isinstance(layer, (*NORMS, nn.PReLU)) or (
        not is_parametrized(layer) and all(x.ndim < 2 for x in layer.parameters(recurse=False)))


def layers_of(net: nn.Module, place: str) -> tuple[str, ...]:
    return tuple(f"{place}.{name}".rstrip(".") for name, _ in layers(net.get_submodule(place)))


def check_images(network: str, sample_shape: tuple[int, ...]) -> None:
    if len(sample_shape) != 3:
        raise ValueError(f"{network} needs images (channels, height, width), got samples of shape "
                         f"{sample_shape}: give image_shape= for flattened images.")
