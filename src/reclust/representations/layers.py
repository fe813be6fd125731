"""Linear layers and BatchNorm that are as fast stacked as alone, and dropout by key."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils import skip_init

from .. import draws
from ..utils import kernels


class Linear(nn.Linear):
    """`nn.Linear` whose gradient on a GPU under vmap needs no copy, as torch's does."""

    def forward(self, x: Tensor) -> Tensor:
        arguments = _cast(x, self.weight, self.bias)
        return _Linear.apply(*arguments) if x.is_cuda else nn.functional.linear(*arguments)


class LinearReLU(Linear):
    def forward(self, x: Tensor) -> Tensor:
        if x.is_cuda:
            return _LinearReLU.apply(*_cast(x, self.weight), self.bias)
        return super().forward(x).relu_()


class KeyedDropout(nn.Dropout):
    """Dropout by key, which is a buffer: a seed repeats a run, and a checkpoint continues it."""

    key: Tensor

    def __init__(self, p: float) -> None:
        super().__init__(p)
        self.register_buffer("key", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        kept = draws.uniform(draws.fold(self.key.add_(1), "dropout"), x.shape) >= self.p
        return x * kept / max(1 - self.p, torch.finfo(x.dtype).tiny)


class BatchNormReLU(nn.BatchNorm1d):
    """BatchNorm and ReLU, whose statistics under vmap need no transposed copy, as torch's do."""

    def forward(self, x: Tensor) -> Tensor:
        if torch.overrides.has_torch_function((x,)) or not (  # statistics shared by ranks
                x.is_cuda or torch._C._are_functorch_transforms_active()):
            return super().forward(x.to(self.weight.dtype)).relu_()
        statistics = self.running_mean, self.running_var
        assert statistics[0] is not None and statistics[1] is not None
        if self.training:
            self.num_batches_tracked.add_(1)  # type: ignore[operator, union-attr]
            return _BatchNormReLU.apply(x, self.weight, self.bias, *statistics)[0]
        scale = self.weight * (statistics[1] + self.eps).rsqrt()
        return (x * scale + (self.bias - statistics[0] * scale)).relu_()


def _signed(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Cache the signature, which torch inspects at every call."""
    forward.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    return forward


class _Linear(torch.autograd.Function):
    """Linear layer: x (B, i), weight (o, i), bias (o,) -> (B, o)."""

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
        return *_gradients(ctx, grad, x, weight), kernels.column_sums(grad)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
        return _StackedLinear.apply(*_stack(info, in_dims, inputs)), 0


class _StackedLinear(_Linear):
    """Stacked linear layers: x (r, B, i), weight (r, o, i), bias (r, o) -> (r, B, o)."""

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
        grad, bias_grad = kernels.relu_backward(grad, output)
        return *_gradients(ctx, grad, x, weight), bias_grad

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
        return _LinearReLU.apply(*_stack(info, in_dims, inputs)), 0


class _BatchNormReLU(torch.autograd.Function):
    """Normalized samples of a batch, their mean and 1 / deviation; moves running statistics."""

    @staticmethod
    @_signed
    def forward(x: Tensor, weight: Tensor, bias: Tensor, running_mean: Tensor,
                running_var: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return kernels.batch_norm_relu(x, weight, bias, running_mean, running_var)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[:3], *output[1:])
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        return *kernels.batch_norm_relu_backward(grad, *ctx.saved_tensors), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...],
             *inputs: Tensor) -> tuple[tuple[Tensor, ...], tuple[int, int, int]]:
        return _BatchNormReLU.apply(*_stack(info, in_dims, inputs)), (0, 0, 0)


def _cast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Cast to autocast's precision, if it is enabled."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    return tuple(tensor.to(torch.get_autocast_dtype(device)) for tensor in tensors)


def _gradients(ctx: Any, grad: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor | None, Tensor]:
    return grad @ weight if ctx.needs_input_grad[0] else None, grad.mT @ x


def _stack(info: Any, in_dims: tuple[int | None, ...], inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """Move the replicas' axis to the front, and expand shared tensors."""
    return [tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            for tensor, dim in zip(inputs, in_dims, strict=True)]


def uninitialized(kind: type[nn.Module], *sizes: int) -> nn.Module:
    """Make a layer without drawing its weights, on torch's default device."""
    return skip_init(kind, *sizes, device=torch.empty(0).device)


def mean_squared_error(output: Tensor, x: Tensor) -> Tensor:
    if kernels.triton(output) is not None:
        return _SquaredError.apply(output.unsqueeze(0), x.unsqueeze(0)).squeeze(0) / x.numel()
    return nn.functional.mse_loss(output.to(x.dtype), x)


class _SquaredError(torch.autograd.Function):
    """Sum of squared differences in one pass, (r, B, i), (r, B, i) -> (r,); x gets no gradient."""

    @staticmethod
    def forward(output: Tensor, x: Tensor) -> Tensor:
        return kernels.triton(x).squared_error(output.contiguous(), x.contiguous())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        output, x = ctx.saved_tensors
        fast = kernels.triton(x)
        return fast.squared_error_backward(output.contiguous(), x.contiguous(), grad), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
        # Tensors of each replica are stacks of one.
        stacks = (tensor.squeeze(1) for tensor in _stack(info, in_dims, inputs))
        return _SquaredError.apply(*stacks).unsqueeze(1), 0
