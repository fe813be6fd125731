"""Convolutional autoencoders for small images.

Convolutions are matrix products on patches, which stacked replicas share; with torch's own they
would take turns. Images are (B, h, w, c): then a row of a patch is contiguous in memory.
"""

import math
from collections import OrderedDict
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad, relu

from ..utils.values import integer, integers, value
from .autoencoder import Reconstruction
from .base import check_images, layers_of
from .layers import Linear, LinearReLU, uninitialized

SIDE = 3  # of a patch, in pixels


class _Patches(torch.autograd.Function):
    """Extract zero-padded patches: (B, h, w, c) -> (B, ceil(h / s), ceil(w / s), 9 c)."""

    @staticmethod
    def forward(x: Tensor, stride: int) -> Tensor:
        padded = pad(x, (0, 0, 1, 1, 1, 1))
        windows = padded.unfold(-3, SIDE, stride).unfold(-3, SIDE, stride)  # (..., c, 3, 3)
        return windows.movedim(-3, -1).flatten(-3)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, ctx.stride = inputs
        ctx.size = x.shape[-3:-1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return fold_patches(grad, ctx.stride, *ctx.size), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int, ...], x: Tensor, stride: int) -> tuple[Tensor, int]:
        return _Patches.apply(x.movedim(in_dims[0], 0), stride), 0


class _FoldPatches(torch.autograd.Function):
    """Add up overlapping patches, the transpose of `patches`: -> (B, h, w, c)."""

    @staticmethod
    def forward(x: Tensor, stride: int, height: int, width: int) -> Tensor:
        *_, rows, columns, size = x.shape
        total = x.new_zeros(*x.shape[:-3], height + 2, width + 2, size // SIDE**2)
        for place, part in enumerate(x.unflatten(-1, (SIDE**2, -1)).unbind(-2)):
            row, column = divmod(place, SIDE)
            total[..., row : row + stride * rows : stride,
                  column : column + stride * columns : stride, :] += part
        return total[..., 1:-1, 1:-1, :].contiguous()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.stride = inputs[1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return patches(grad, ctx.stride), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int, ...], x: Tensor, *sizes: int) -> tuple[Tensor, int]:
        return _FoldPatches.apply(x.movedim(in_dims[0], 0), *sizes), 0


patches, fold_patches = _Patches.apply, _FoldPatches.apply


class Convolution(nn.Module):
    """3 x 3 convolution: (B, h, w, n_in) -> (B, ceil(h / stride), ceil(w / stride), n_out)."""

    def __init__(self, n_in: int, n_out: int, stride: int = 1) -> None:
        super().__init__()
        self.stride, self.linear = stride, uninitialized(Linear, SIDE**2 * n_in, n_out)

    def forward(self, x: Tensor) -> Tensor:
        return _per_pixel(self.linear, patches(x, self.stride))


class TransposedConvolution(nn.Module):
    """Transposed 3 x 3 convolution: (B, ceil(h / 2), ceil(w / 2), n_in) -> (B, h, w, n_out)."""

    def __init__(self, n_in: int, n_out: int, height: int, width: int) -> None:
        super().__init__()
        self.size, self.linear = (height, width), uninitialized(Linear, n_in, SIDE**2 * n_out)

    def forward(self, x: Tensor) -> Tensor:
        return fold_patches(_per_pixel(self.linear, x), 2, *self.size)


class Residual(nn.Module):
    """Two convolutions with a skip connection: (B, h, w, width) -> the same."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = Convolution(width, width), Convolution(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return relu(x + self.second(relu(self.first(x))))


def _per_pixel(layer: nn.Module, x: Tensor) -> Tensor:
    return layer(x.flatten(0, -2)).unflatten(0, x.shape[:-1])


class _MoveAxis(nn.Module):
    def __init__(self, source: int, destination: int) -> None:
        super().__init__()
        self.axes = source, destination

    def forward(self, x: Tensor) -> Tensor:
        return x.movedim(*self.axes)


@value
class ConvAutoencoder(Reconstruction):
    """Convolutional autoencoder for images of about 8 x 8 to 64 x 64 pixels.

    Blocks of the encoder, block1, block2, ..., halve the image with a 3 x 3 convolution and ReLU,
    and a linear layer, embedding, follows them. The decoder mirrors it.

    Parameters
    ----------
    channels : tuple of int, default=(32, 64, 128)
        Number of channels of each block.
    residuals : int, default=0
        Number of residual pairs of convolutions added to each block.
    embedding : int, optional
        Size of the embedding, by default the number of clusters.

    Examples
    --------
    >>> from reclust import IDEC, ConvAutoencoder
    >>> model = IDEC(n_clusters=3, representation=ConvAutoencoder(channels=(16, 32)))
    """

    channels: tuple[int, ...] = integers(default=(32, 64, 128), least=1)
    residuals: int = integer(default=0)
    embedding: int | None = integer(default=None, least=1, optional=True)

    def build(self, sample_shape: tuple[int, ...], n_clusters: int) -> nn.ModuleDict:
        check_images("ConvAutoencoder", sample_shape)
        channels, *side = sample_shape
        sizes = [(*side, channels)]
        for width in self.channels:
            sizes.append((*((length + 1) // 2 for length in sizes[-1][:2]), width))
        flat, embedding = math.prod(sizes[-1]), self.embedding or n_clusters
        down = {f"block{i + 1}": self._down(*pair) for i, pair in enumerate(pairwise(sizes))}
        up = {f"block{i + 1}": self._up(*pair) for i, pair in enumerate(pairwise(sizes[::-1]))}
        up[f"block{len(up)}"].pop(-1)  # no ReLU: pixels may be negative
        encoder = OrderedDict(image=_MoveAxis(-3, -1), **down, flat=nn.Flatten(),
                              embedding=uninitialized(Linear, flat, embedding))
        decoder = OrderedDict(spread=uninitialized(LinearReLU, embedding, flat),
                              image=nn.Unflatten(1, sizes[-1]), **up,
                              shown=_MoveAxis(-1, -3), flat=nn.Flatten())
        return nn.ModuleDict({"encoder": nn.Sequential(encoder),
                              "decoder": nn.Sequential(decoder)})

    def _down(self, large: tuple[int, ...], small: tuple[int, ...]) -> nn.Sequential:
        convolution = Convolution(large[-1], small[-1], 2)
        return nn.Sequential(convolution, nn.ReLU(), *self._residuals(small[-1]))

    def _up(self, small: tuple[int, ...], large: tuple[int, ...]) -> nn.Sequential:
        convolution = TransposedConvolution(small[-1], large[-1], *large[:2])
        return nn.Sequential(*self._residuals(small[-1]), convolution, nn.ReLU())

    def _residuals(self, width: int) -> list[nn.Module]:
        return [Residual(width) for _ in range(self.residuals)]

    def blocks(self, net: Any) -> dict[str, tuple[str, ...]]:
        names = {name: layers_of(net, f"encoder.{name}")
                 for name, _ in net.encoder.named_children()}
        return {block: layers for block, layers in names.items() if layers}
