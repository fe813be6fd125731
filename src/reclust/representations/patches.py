"""Convolutions as matrix products: images are taken apart into patches, which linear layers see, and put together again.

Replicas that are mapped share one batched product, instead of taking turns as torch's convolutions would.

Images are (B, h, w, c): channels come last, so that a row of a patch lies together in memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad, relu

from .layers import Linear, uninitialized

SIDE = 3
"""Of a patch, in pixels."""


def patches(x: Tensor, stride: int) -> Tensor:
    """PeriodicMonitor every stride-th pixel, zeros beyond the border: (B, h, w, c) -> (B, ⌈h / stride⌉, ⌈w / stride⌉, 9 c)."""
    return _Patches.apply(x, stride)


def overlaid(x: Tensor, stride: int, height: int, width: int) -> Tensor:
    """Patches added up where they overlap, the transpose of `patches`: (B, ⌈h / stride⌉, ⌈w / stride⌉, 9 c) -> (B, h, w, c)."""
    return _Overlaid.apply(x, stride, height, width)


class _Patches(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, stride: int) -> Tensor:
        padded = pad(x, (0, 0, 1, 1, 1, 1))
        windows = padded.unfold(-3, SIDE, stride).unfold(-3, SIDE, stride)  # (..., ⌈h / stride⌉, ⌈w / stride⌉, c, 3, 3)
        return windows.movedim(-3, -1).flatten(-3)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, ctx.stride = inputs
        ctx.size = x.shape[-3:-1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return overlaid(grad, ctx.stride, *ctx.size), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int, ...], x: Tensor, stride: int) -> tuple[Tensor, int]:
        return _Patches.apply(x.movedim(in_dims[0], 0), stride), 0


class _Overlaid(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, stride: int, height: int, width: int) -> Tensor:
        *_, rows, columns, wide = x.shape
        whole = x.new_zeros(*x.shape[:-3], height + 2, width + 2, wide // SIDE**2)
        for place, part in enumerate(x.unflatten(-1, (SIDE**2, -1)).unbind(-2)):
            row, column = divmod(place, SIDE)
            whole[..., row : row + stride * rows : stride, column : column + stride * columns : stride, :] += part
        return whole[..., 1:-1, 1:-1, :].contiguous()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.stride = inputs[1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        return patches(grad, ctx.stride), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int, ...], x: Tensor, stride: int, height: int, width: int) -> tuple[Tensor, int]:
        return _Overlaid.apply(x.movedim(in_dims[0], 0), stride, height, width), 0


class Convolution(nn.Module):
    """Of 3 × 3 pixels: (B, h, w, wide) -> (B, ⌈h / stride⌉, ⌈w / stride⌉, narrow).

    The ReLU behind it is a layer of its own: the kernel of `LinearReLU` is made for batches, and there are many more pixels.
    """

    def __init__(self, wide: int, narrow: int, stride: int = 1) -> None:
        super().__init__()
        self.stride, self.linear = stride, uninitialized(Linear, SIDE**2 * wide, narrow)

    def forward(self, x: Tensor) -> Tensor:
        return _by_pixel(self.linear, patches(x, self.stride))


class Enlargement(nn.Module):
    """A transposed convolution of 3 × 3: (B, ⌈h / 2⌉, ⌈w / 2⌉, wide) -> (B, h, w, narrow)."""

    def __init__(self, wide: int, narrow: int, height: int, width: int) -> None:
        super().__init__()
        self.size, self.linear = (height, width), uninitialized(Linear, wide, SIDE**2 * narrow)

    def forward(self, x: Tensor) -> Tensor:
        return overlaid(_by_pixel(self.linear, x), 2, *self.size)


class Residual(nn.Module):
    """x and what two convolutions add to it, then ReLU: (B, h, w, width) -> the same."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = Convolution(width, width), Convolution(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return relu(x + self.second(relu(self.first(x))))


def _by_pixel(layer: nn.Module, x: Tensor) -> Tensor:
    return layer(x.flatten(0, -2)).unflatten(0, x.shape[:-1])
