"""Operations of a training step (r replicas, B batch, o outputs) in torch or, on a GPU, Triton."""

from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from .exceptions import first_line, warn

NORM_MOMENTUM, NORM_EPS = 0.1, 1e-5  # of BatchNorm, the defaults of torch


def bias_relu_(y: Tensor, bias: Tensor) -> Tensor:
    """Compute max(y + bias, 0) in place: y (..., B, o), bias (..., o)."""
    if fast := triton(y):
        fast.bias_relu_(y, bias)
        return y
    return y.add_(bias.unsqueeze(-2)).relu_()


def relu_backward(grad: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient of a ReLU's input, and its sum over the batch, given its output y."""
    if fast := _by_columns(y):
        return fast.relu_backward(grad.contiguous(), y)
    through = torch.ops.aten.threshold_backward(grad, y, 0)
    return through, through.sum(-2)


def column_sums(grad: Tensor) -> Tensor:
    """Sum over the batch: (..., B, o) -> (..., o)."""
    fast = _by_columns(grad)
    return grad.sum(-2) if fast is None else fast.column_sums(grad.contiguous())


def batch_norm_relu(y: Tensor, weight: Tensor, bias: Tensor, running_mean: Tensor,
                    running_var: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize y (..., B, o) over the batch, scale, shift, clip at 0; move running statistics."""
    if fast := _by_columns(y):
        return fast.batch_norm_relu(y.contiguous(), weight, bias, running_mean, running_var,
                                    momentum=NORM_MOMENTUM, eps=NORM_EPS)
    exact = y.to(running_mean.dtype)
    var, mean = torch.var_mean(exact, -2, correction=0)
    running_mean.lerp_(mean, NORM_MOMENTUM)
    running_var.lerp_(var * (y.shape[-2] / (y.shape[-2] - 1)), NORM_MOMENTUM)
    scale = (var + NORM_EPS).rsqrt()
    shifted = (exact - mean.unsqueeze(-2)) * (scale * weight).unsqueeze(-2) + bias.unsqueeze(-2)
    return shifted.relu_().to(y.dtype), mean, scale


def batch_norm_relu_backward(grad: Tensor, y: Tensor, weight: Tensor, bias: Tensor, mean: Tensor,
                             scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of y, weight and bias, given mean and scale of the forward pass."""
    if fast := _by_columns(y):
        return fast.batch_norm_relu_backward(grad.contiguous(), y.contiguous(), weight, bias, mean,
                                             scale)
    normal = (y.to(mean.dtype) - mean.unsqueeze(-2)) * scale.unsqueeze(-2)
    passed = normal * weight.unsqueeze(-2) + bias.unsqueeze(-2) > 0
    through = grad.to(mean.dtype) * passed
    bias_grad, weight_grad = through.sum(-2), (through * normal).sum(-2)
    shared = (bias_grad.unsqueeze(-2) + normal * weight_grad.unsqueeze(-2)) / y.shape[-2]
    y_grad = (through - shared) * (weight * scale).unsqueeze(-2)
    return y_grad.to(y.dtype), weight_grad, bias_grad


def squared_norms(gradients: list[Tensor]) -> Tensor:
    """Sum the squares of all (r, ...) for each replica: (r,)."""
    if fast := triton(gradients[0]):
        return fast.squared_norms(gradients)
    exact = torch.promote_types(gradients[0].dtype, torch.float32)
    norms = [torch.linalg.vector_norm(gradient.flatten(1), dim=1, dtype=exact)
             for gradient in gradients]
    return torch.stack(norms).square().sum(0)


def _by_columns(y: Tensor) -> Any:
    fast = triton(y)
    return None if fast is None or y.shape[-2] > fast.MOST_ROWS else fast


def triton(like: Tensor) -> Any:
    """Return the module `triton_kernels` for tensors on a GPU, None if it cannot be used."""
    return _load() if like.is_cuda else None


@cache
def _load() -> ModuleType | None:
    """Try the Triton kernels once: they need a compiler that not every machine has."""
    try:
        from . import triton_kernels

        zeros = torch.zeros(1, 1, 1, device="cuda")
        triton_kernels.bias_relu_(zeros, zeros[0])
    except Exception as error:  # whatever is missing, torch computes the same
        warn(f"Triton cannot be used here, so training is slower: {first_line(error)}")
        return None
    return triton_kernels
