"""A linear layer that is as fast stacked as alone."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class Linear(nn.Linear):
    """`nn.Linear`, but mapped over replicas its weight's gradient comes out in the weight's own memory layout.

    torch's rule for a mapped linear layer leaves the gradient transposed, and copies it, as large as all weights, at each step.
    """

    def forward(self, x: Tensor) -> Tensor:
        return _Linear.apply(x, self.weight, self.bias)


class _Linear(torch.autograd.Function):
    """x (B, i), weight (o, i), bias (o,) -> (B, o)."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return nn.functional.linear(x, weight, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        to_x = grad @ weight if ctx.needs_input_grad[0] else None
        return to_x, grad.mT @ x, grad.sum(-2)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
        stacked = [tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
                   for tensor, dim in zip(inputs, in_dims, strict=True)]
        return _StackedLinear.apply(*stacked), 0


class _StackedLinear(_Linear):
    """The same for stacks: x (r, B, i), weight (r, o, i), bias (r, o) -> (r, B, o)."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.baddbmm(bias.unsqueeze(-2), x, weight.mT)
