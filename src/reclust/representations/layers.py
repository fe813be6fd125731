"""Linear layers that are as fast stacked as alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils import skip_init

from ..utils import kernels


class Linear(nn.Linear):
    """`nn.Linear`, but mapped over replicas its weight's gradient comes out in the weight's own memory layout.

    torch's rule for a mapped linear layer leaves the gradient transposed, and copies it, as large as all weights, at each step.
    """

    def forward(self, x: Tensor) -> Tensor:
        given = _as_computed(x, self.weight, self.bias)
        return nn.functional.linear(*given) if _plain(x) else _Linear.apply(*given)


class LinearReLU(Linear):
    """The layer and the ReLU behind it, in one pass over the layer's output each way."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).relu_() if _plain(x) else _LinearReLU.apply(*_as_computed(x, self.weight), self.bias)


class BatchNorm(nn.BatchNorm1d):
    """In the precision of its own statistics, which torch's wants when it is mapped over replicas."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.to(self.weight.dtype))


def _signed(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorator: torch asks for the signature at every call, where it need not be worked out anew."""
    forward.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    return forward


class _Linear(torch.autograd.Function):
    """x (B, i), weight (o, i), bias (o,) -> (B, o)."""

    @staticmethod
    @_signed
    def forward(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return nn.functional.linear(x, weight, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return *_through(ctx, grad, x, weight), grad.sum(-2)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
        return _StackedLinear.apply(*_stacks(info, in_dims, inputs)), 0


class _StackedLinear(_Linear):
    """The same for stacks: x (r, B, i), weight (r, o, i), bias (r, o) -> (r, B, o)."""

    @staticmethod
    @_signed
    def forward(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.baddbmm(bias.unsqueeze(-2), x, weight.mT)


class _LinearReLU(_Linear):
    @staticmethod
    @_signed
    def forward(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return kernels.bias_relu_(x @ weight.mT, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2], output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight, output = ctx.saved_tensors
        grad, to_bias = kernels.relu_backward(grad, output)
        return *_through(ctx, grad, x, weight), to_bias

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
        return _LinearReLU.apply(*_stacks(info, in_dims, inputs)), 0


def _plain(x: Tensor) -> bool:
    """Whether torch's own layer is faster: on a CPU, not mapped, a function written in Python costs more than it saves."""
    return not (x.is_cuda or torch._C._are_functorch_transforms_active())


def _as_computed(*tensors: Tensor) -> tuple[Tensor, ...]:
    """In the precision that autocast asks for here, if it does."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    return tuple(tensor.to(torch.get_autocast_dtype(device)) for tensor in tensors)


def _through(ctx: Any, grad: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor | None, Tensor]:
    """The gradients of x and of the weight."""
    return grad @ weight if ctx.needs_input_grad[0] else None, grad.mT @ x


def _stacks(info: Any, in_dims: tuple[int | None, ...], inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """The replicas' axis in front, also of what they share."""
    return [tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            for tensor, dim in zip(inputs, in_dims, strict=True)]


def uninitialized(kind: type[nn.Module], *sizes: int) -> nn.Module:
    """A layer whose weights somebody else draws, on the device that tensors are made on by default."""
    return skip_init(kind, *sizes, device=torch.empty(0).device)


def mean_squared_error(made: Tensor, x: Tensor) -> Tensor:
    """Of (B, i) against (B, i): a scalar."""
    if kernels.triton(made) is not None:
        return _SquaredError.apply(made, x) / x.numel()
    return nn.functional.mse_loss(made.to(x.dtype), x)


class _SquaredError(torch.autograd.Function):
    """Sum of squared differences, in one pass over both each way; x gets no gradient."""

    @staticmethod
    def forward(made: Tensor, x: Tensor) -> Tensor:
        return kernels.squared_error(made.unsqueeze(0), x.unsqueeze(0)).squeeze(0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        made, x = ctx.saved_tensors
        return kernels.squared_error_backward(made.unsqueeze(0), x.unsqueeze(0), grad.unsqueeze(0)).squeeze(0), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
        return _StackedSquaredError.apply(*_stacks(info, in_dims, inputs)), 0


class _StackedSquaredError(_SquaredError):
    """(r, B, i), (r, B, i) -> (r,)."""

    @staticmethod
    def forward(made: Tensor, x: Tensor) -> Tensor:
        return kernels.squared_error(made, x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        made, x = ctx.saved_tensors
        return kernels.squared_error_backward(made, x, grad), None
