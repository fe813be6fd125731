"""The representation protocol: how x becomes z, and the loss that keeps z informative."""

import copy
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from ..utils.device import fixed_seed
from ..utils.exceptions import first_line
from .weights import NORMS, layers


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

    stacks: ClassVar[bool]
    """True to train replicas stacked with vmap; replicas of large networks take turns instead."""

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> nn.Module:
        """Make the network for samples of this shape; its weights are drawn later."""
        ...

    def initial_weights(self, net: Any, key: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        """Draw initial parameters: name -> (*key.shape, *shape)."""
        ...

    def encode(self, net: Any, x: Tensor) -> Tensor:
        """Embed samples: (B, *sample_shape) -> (B, d)."""
        ...

    def encode_views(self, net: Any, views: Tensor) -> Tensor:
        """Embed views during training: (V, B, *sample_shape) -> (V, B, d)."""
        ...

    def loss(self, net: Any, views: Tensor, z: Tensor) -> Tensor:
        """Compute the representation's own loss, a scalar, averaged over views."""
        ...

    def blocks(self, net: Any) -> dict[str, tuple[str, ...]]:
        """Name the layers of each block that may be reset; the last is 'embedding'."""
        ...

    def decaying(self, net: Any) -> frozenset[str]:
        """Name the parameters that weight decay acts on."""
        ...


def build_network(representation: Representation, sample_shape: tuple[int, ...], n_clusters: int,
                  dtype: torch.dtype, *, device: str = "cpu") -> nn.Module:
    """Build a network in eval mode without changing torch's random state."""
    with fixed_seed(), torch.device(device):
        net = representation.build(sample_shape, n_clusters)
    names = [name for name, _ in net.named_parameters(remove_duplicate=False)]
    if len(names) > len(list(net.parameters())):
        raise ValueError("Two layers of the network share a weight tensor, which replicas cannot: "
                         "untie them.")
    for name, tensor in (*net.named_parameters(), *net.named_buffers()):
        if nn.parameter.is_lazy(tensor):
            raise ValueError(f"{name} belongs to a lazy layer without a shape: give the layer its "
                             "size, or pass a sample through the network first.")
    return copy.deepcopy(net).to(dtype).eval()


def try_forward(part: str, call: Callable[[Tensor], Tensor], given: Tensor) -> Tensor:
    """Call the encoder, decoder or projector with an error message that names it."""
    try:
        output = call(given)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, ValueError, IndexError) as error:
        expected = ("samples; nn.Flatten() turns images into rows" if part == "encoder"
                    else "embeddings of the encoder")
        raise ValueError(f"The {part} cannot take a tensor of shape {tuple(given.shape)}: "
                         f"{first_line(error).rstrip('.')}. Its first layer must fit the "
                         f"{expected}.") from error
    if not isinstance(output, Tensor):
        raise ValueError(f"The {part} must return a tensor, got {type(output).__name__}: wrap it "
                         "in a module that returns only the tensor.")
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
    """Tell norms, PReLU and custom layers that only have a number for each channel."""
    return isinstance(layer, (*NORMS, nn.PReLU)) or (
        not is_parametrized(layer) and all(own.ndim < 2 for own in layer.parameters(recurse=False)))


def layers_of(net: nn.Module, place: str) -> tuple[str, ...]:
    """Return the full names of the layers with weights in one part of a network."""
    return tuple(f"{place}.{name}".rstrip(".") for name, _ in layers(net.get_submodule(place)))


def check_images(network: str, sample_shape: tuple[int, ...]) -> None:
    if len(sample_shape) != 3:
        raise ValueError(f"{network} needs images (channels, height, width), got samples of shape "
                         f"{sample_shape}: give image_shape= for flattened images, or use another "
                         "representation for tables.")
