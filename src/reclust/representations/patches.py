"""Convolutions as matrix products on patches of images.

Mapped replicas then share one batched product; with torch's convolutions they would take turns.
Images are (B, h, w, c): with channels last, a row of a patch is contiguous in memory.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad, relu

from .layers import Linear, uninitialized

SIDE = 3  # of a patch, in pixels


def patches(x: Tensor, stride: int) -> Tensor:
    """Extract zero-padded patches: (B, h, w, c) -> (B, ceil(h / s), ceil(w / s), 9 c)."""
    return _Patches.apply(x, stride)


def fold_patches(x: Tensor, stride: int, height: int, width: int) -> Tensor:
    """Add up overlapping patches, the transpose of `patches`: -> (B, h, w, c)."""
    return _FoldPatches.apply(x, stride, height, width)


class _Patches(torch.autograd.Function):
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
