"""Operations of a training step (r replicas, B batch, o outputs) in torch or, on a GPU, Triton."""

from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from .exceptions import first_line, warn


def bias_relu_(y: Tensor, bias: Tensor) -> Tensor:
    """Compute max(y + bias, 0) in place: y (..., B, o), bias (..., o)."""
    if fast := triton(y):
        fast.bias_relu_(y, bias)
        return y
    return y.add_(bias.unsqueeze(-2)).relu_()


def relu_backward(grad: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient of a ReLU's input, and its sum over the batch, given its output y."""
    if fast := triton(y):
        return fast.relu_backward(grad.contiguous(), y)
    through = torch.ops.aten.threshold_backward(grad, y, 0)
    return through, through.sum(-2)


def squared_norms(gradients: list[Tensor]) -> Tensor:
    """Sum the squares of all (r, ...) for each replica: (r,)."""
    if fast := triton(gradients[0]):
        return fast.squared_norms(gradients)
    exact = torch.promote_types(gradients[0].dtype, torch.float32)
    norms = [torch.linalg.vector_norm(one.flatten(1), dim=1, dtype=exact) for one in gradients]
    return torch.stack(norms).square().sum(0)


def squared_error(made: Tensor, x: Tensor) -> Tensor:
    """Sum squared differences for each replica: (r, ...), (r, ...) -> (r,)."""
    if fast := triton(made):
        return fast.squared_error(made.contiguous(), x.contiguous())
    return (made.to(x.dtype) - x).square().flatten(1).sum(1)


def squared_error_backward(made: Tensor, x: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient of `squared_error` for `made`, given that of the sums, (r,)."""
    if fast := triton(made):
        return fast.squared_error_backward(made.contiguous(), x.contiguous(), grad)
    scale = 2 * grad.reshape(-1, *[1] * (x.ndim - 1))
    return (made.to(x.dtype) - x).mul_(scale).to(made.dtype)


def triton(like: Tensor) -> ModuleType | None:
    return _load() if like.is_cuda else None


@cache
def _load() -> ModuleType | None:
    """Try the Triton kernels once: they need a compiler that not every machine has."""
    try:
        from . import triton_kernels

        zeros = torch.zeros(1, 1, 1, device="cuda")
        triton_kernels.bias_relu_(zeros, zeros[0])
    except Exception as error:  # whatever is missing, torch computes the same
        warn("Triton cannot be used here, so training is slower, with the same results: "
             f"{first_line(error)}")
        return None
    return triton_kernels
