"""What a training step spends its time on beside matrix products: written in torch, and for a GPU once more in Triton.

Shapes: r replicas, B batch, o outputs of a layer.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from .exceptions import first_line, warn


def bias_relu_(y: Tensor, bias: Tensor) -> Tensor:
    """max(y + bias, 0) in place: y (..., B, o), bias (..., o)."""
    fast = triton(y)
    if fast is not None:
        fast.bias_relu_(y, bias)
        return y
    return y.add_(bias.unsqueeze(-2)).relu_()


def relu_backward(grad: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """From the gradient of a ReLU's output y (..., B, o): that of its input, and the sum of that over the batch (..., o)."""
    fast = triton(y)
    if fast is not None:
        return fast.relu_backward(grad.contiguous(), y)
    through = torch.ops.aten.threshold_backward(grad, y, 0)
    return through, through.sum(-2)


def squared_norms(gradients: list[Tensor]) -> Tensor:
    """Sum of squares over all (r, ...) by replica: (r,)."""
    fast = triton(gradients[0])
    if fast is not None:
        return fast.squared_norms(gradients)
    norms = [torch.linalg.vector_norm(gradient.flatten(1), dim=1, dtype=_exact(gradient)) for gradient in gradients]
    return torch.stack(norms).square().sum(0)


def squared_error(made: Tensor, x: Tensor) -> Tensor:
    """Sum of squared differences by replica: (r, ...), (r, ...) -> (r,)."""
    fast = triton(made)
    if fast is not None:
        return fast.squared_error(made.contiguous(), x.contiguous())
    return (made.to(x.dtype) - x).square().flatten(1).sum(1)


def squared_error_backward(made: Tensor, x: Tensor, grad: Tensor) -> Tensor:
    """Its gradient for `made`, given that of the sums, (r,)."""
    fast = triton(made)
    if fast is not None:
        return fast.squared_error_backward(made.contiguous(), x.contiguous(), grad)
    return (made.to(x.dtype) - x).mul_(2 * grad.reshape(-1, *[1] * (x.ndim - 1))).to(made.dtype)


def _exact(like: Tensor) -> torch.dtype:
    return torch.promote_types(like.dtype, torch.float32)


def triton(like: Tensor) -> ModuleType | None:
    """The Triton kernels, where they can be used for such a tensor."""
    return _load() if like.is_cuda else None


@cache
def _load() -> ModuleType | None:
    """The Triton kernels, tried once: they need a compiler that not every machine has."""
    try:
        from . import triton_kernels

        triton_kernels.bias_relu_(torch.zeros(1, 1, 1, device="cuda"), torch.zeros(1, 1, device="cuda"))
    except Exception as error:  # whatever is missing, torch's own kernels do the same
        warn(f"Triton cannot be used here, so training is slower but equally right: {first_line(error)}")
        return None
    return triton_kernels
