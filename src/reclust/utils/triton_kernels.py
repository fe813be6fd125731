"""GPU kernels that fuse several operations of torch; `kernels.py` has the same in torch."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024
NORM_BLOCK = 8192
COLUMN_BLOCK, MOST_ROWS = 8192, 2048  # numbers in a block of whole columns, and their length
LEAVES = 32  # tensors of each kind that one launch takes


@triton.jit
def _bias_relu(y, bias, numel, batch, width, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < numel
    row = at // width
    shift = tl.load(bias + (row // batch) * width + at % width, inside)
    value = tl.load(y + at, inside) + shift
    tl.store(y + at, tl.where(value <= 0, 0, value), inside)  # written so that NaN stays


def bias_relu_(y: Tensor, bias: Tensor) -> None:
    batch, width = y.shape[-2:]
    _bias_relu[(triton.cdiv(y.numel(), BLOCK),)](y, bias.contiguous(), y.numel(), batch, width,
                                                 BLOCK=BLOCK)


@triton.jit
def _column_block(batch, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return where some whole columns of a replica lie, and what is computed for each of them."""
    replica = tl.program_id(1).to(tl.int64)
    row, column = tl.arange(0, ROWS), tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    at = (replica * batch + row)[:, None] * width + column[None, :]
    known = column < width
    return at, (row < batch)[:, None] & known[None, :], replica * width + column, known


def _by_columns(kernel: Any, like: Tensor, *tensors: Tensor | None, **constants: float) -> None:
    batch, width = like.shape[-2:]
    rows = triton.next_power_of_2(batch)
    columns = max(1, min(32, COLUMN_BLOCK // rows))
    grid = (triton.cdiv(width, columns), like.numel() // (batch * width))
    kernel[grid](*tensors, batch, width, ROWS=rows, COLUMNS=columns, EXACT=_exact(like),
                 num_warps=8, **constants)


@triton.jit
def _relu_backward(grad, y, through, sums, batch, width, ROWS: tl.constexpr,
                   COLUMNS: tl.constexpr, EXACT: tl.constexpr):
    at, inside, place, known = _column_block(batch, width, ROWS, COLUMNS)
    passed = tl.load(grad + at, inside, other=0)
    if y is not None:
        passed = tl.where(tl.load(y + at, inside, other=0) <= 0, 0, passed)
        tl.store(through + at, passed, inside)
    tl.store(sums + place, tl.sum(passed.to(EXACT), 0), known)


def relu_backward(grad: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    through, sums = torch.empty_like(y), _sums(y)
    _by_columns(_relu_backward, y, grad, y, through, sums)
    return through, sums


def column_sums(grad: Tensor) -> Tensor:
    sums = _sums(grad)
    _by_columns(_relu_backward, grad, grad, None, None, sums)
    return sums


def _sums(like: Tensor) -> Tensor:
    exact = torch.promote_types(like.dtype, torch.float32)
    return torch.empty(*like.shape[:-2], like.shape[-1], dtype=exact, device=like.device)


@triton.jit
def _batch_norm_relu(y, weight, bias, running_mean, running_var, out, means, scales, batch, width,
                     MOMENTUM: tl.constexpr, EPS: tl.constexpr, ROWS: tl.constexpr,
                     COLUMNS: tl.constexpr, EXACT: tl.constexpr):
    at, inside, place, known = _column_block(batch, width, ROWS, COLUMNS)
    value = tl.load(y + at, inside, other=0).to(EXACT)
    mean = tl.sum(value, 0) / batch
    centered = tl.where(inside, value - mean[None, :], 0)
    var = tl.sum(centered * centered, 0) / batch
    scale = 1 / tl.sqrt(var + EPS)
    tl.store(means + place, mean, known)
    tl.store(scales + place, scale, known)
    moved = tl.load(running_mean + place, known, other=0)
    tl.store(running_mean + place, moved + MOMENTUM * (mean - moved), known)
    moved = tl.load(running_var + place, known, other=0)
    tl.store(running_var + place, moved + MOMENTUM * (var * batch / (batch - 1) - moved), known)
    factor, shift = tl.load(weight + place, known, other=0), tl.load(bias + place, known, other=0)
    value = centered * scale[None, :] * factor[None, :] + shift[None, :]
    tl.store(out + at, tl.where(value <= 0, 0, value), inside)  # written so that NaN stays


@triton.jit
def _batch_norm_relu_backward(grad, y, weight, bias, means, scales, y_grad, weight_grad, bias_grad,
                              batch, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
                              EXACT: tl.constexpr):
    at, inside, place, known = _column_block(batch, width, ROWS, COLUMNS)
    factor, shift = tl.load(weight + place, known, other=0), tl.load(bias + place, known, other=0)
    mean, scale = tl.load(means + place, known, other=0), tl.load(scales + place, known, other=0)
    normal = (tl.load(y + at, inside, other=0).to(EXACT) - mean[None, :]) * scale[None, :]
    passed = normal * factor[None, :] + shift[None, :] > 0
    through = tl.where(passed, tl.load(grad + at, inside, other=0).to(EXACT), 0)
    total, product = tl.sum(through, 0), tl.sum(through * normal, 0)
    tl.store(bias_grad + place, total, known)
    tl.store(weight_grad + place, product, known)
    shared = (total[None, :] + normal * product[None, :]) / batch
    tl.store(y_grad + at, (through - shared) * (factor * scale)[None, :], inside)


def batch_norm_relu(y: Tensor, weight: Tensor, bias: Tensor, running_mean: Tensor,
                    running_var: Tensor, *, momentum: float,
                    eps: float) -> tuple[Tensor, Tensor, Tensor]:
    out, mean, scale = torch.empty_like(y), torch.empty_like(weight), torch.empty_like(weight)
    _by_columns(_batch_norm_relu, y, y, weight.contiguous(), bias.contiguous(), running_mean,
                running_var, out, mean, scale, MOMENTUM=momentum, EPS=eps)
    return out, mean, scale


def batch_norm_relu_backward(grad: Tensor, y: Tensor, weight: Tensor, bias: Tensor, mean: Tensor,
                             scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    y_grad, weight_grad, bias_grad = (torch.empty_like(tensor) for tensor in (y, weight, bias))
    _by_columns(_batch_norm_relu_backward, y, grad, y, weight.contiguous(), bias.contiguous(), mean,
                scale, y_grad, weight_grad, bias_grad)
    return y_grad, weight_grad, bias_grad


@triton.jit
def _which(starts, block):
    """Return which of several tensors a block of a launch belongs to, given their first blocks."""
    found = 0
    for i in tl.static_range(1, len(starts)):
        found += (block >= starts[i]).to(tl.int32)
    return found


@triton.jit
def _number(numbers, which):
    found = tl.zeros((), tl.int64) + numbers[0]  # a sum, because triton makes constants of ones
    for i in tl.static_range(1, len(numbers)):
        found = tl.where(which == i, tl.zeros((), tl.int64) + numbers[i], found)
    return found


@triton.jit
def _pointer(pointers, which):
    found = pointers[0]
    for i in tl.static_range(1, len(pointers)):
        found = tl.where(which == i, pointers[i], found)
    return found


@triton.jit
def _squared_norm(gradients, sizes, starts, sums, stride, BLOCK: tl.constexpr, STEP: tl.constexpr,
                  EXACT: tl.constexpr):
    replica, block = tl.program_id(1).to(tl.int64), tl.program_id(0)
    which = _which(starts, block)
    gradient, size = _pointer(gradients, which), _number(sizes, which)
    total = tl.zeros((STEP,), EXACT)
    for start in range(0, BLOCK, STEP):
        at = (block - _number(starts, which)) * BLOCK + start + tl.arange(0, STEP)
        value = tl.load(gradient + replica * size + at, at < size, other=0).to(EXACT)
        total += value * value
    tl.store(sums + replica * stride + block, tl.sum(total, 0))


def squared_norms(gradients: list[Tensor]) -> Tensor:
    # Partial sums are stored and added afterwards: atomics would add in another order each time.
    exact, sums = torch.promote_types(gradients[0].dtype, torch.float32), []
    for part in _launches([(gradient.contiguous(),) for gradient in gradients]):
        (tensors,) = zip(*part, strict=True)
        sizes, starts, blocks = _blocks(tensors, NORM_BLOCK)
        own = torch.empty(len(tensors[0]), blocks, device=tensors[0].device, dtype=exact)
        _squared_norm[(blocks, len(own))](tensors, sizes, starts, own, blocks, BLOCK=NORM_BLOCK,
                                          STEP=1024, EXACT=_exact(gradients[0]))
        sums.append(own.sum(1))
    return sums[0] if len(sums) == 1 else torch.stack(sums).sum(0)


def _launches(tensors: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Group tuples of tensors by dtypes, of which one launch takes up to LEAVES."""
    groups = defaultdict(list)
    for each in tensors:
        groups[tuple(None if tensor is None else tensor.dtype for tensor in each)].append(each)
    for group in groups.values():
        for first in range(0, len(group), LEAVES):
            yield group[first : first + LEAVES]


def _blocks(tensors: Sequence[Tensor],
            block: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return sizes of one replica's tensors, their first blocks and the number of all blocks."""
    sizes = tuple(tensor[0].numel() for tensor in tensors)
    ends = list(accumulate(triton.cdiv(size, block) for size in sizes))
    return sizes, (0, *ends[:-1]), ends[-1]


@triton.jit
def _squared_error(output, x, sums, size, stride, BLOCK: tl.constexpr, STEP: tl.constexpr,
                   EXACT: tl.constexpr):
    replica, block = tl.program_id(1).to(tl.int64), tl.program_id(0)
    total = tl.zeros((STEP,), EXACT)
    for start in range(0, BLOCK, STEP):
        at = block * BLOCK + start + tl.arange(0, STEP)
        inside, place = at < size, replica * size + at
        target = tl.load(x + place, inside, other=0).to(EXACT)
        off = tl.load(output + place, inside, other=0).to(EXACT) - target
        total += off * off
    tl.store(sums + replica * stride + block, tl.sum(total, 0))


def squared_error(output: Tensor, x: Tensor) -> Tensor:
    size = output[0].numel()
    blocks = triton.cdiv(size, NORM_BLOCK)
    exact = torch.promote_types(x.dtype, torch.float32)
    sums = torch.empty(len(output), blocks, device=output.device, dtype=exact)
    _squared_error[(blocks, len(output))](output, x, sums, size, blocks, BLOCK=NORM_BLOCK,
                                          STEP=1024, EXACT=_exact(x))
    return sums.sum(1)


@triton.jit
def _squared_error_backward(output, x, grad, output_grad, size, BLOCK: tl.constexpr,
                            EXACT: tl.constexpr):
    replica = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside, place = at < size, replica * size + at
    target = tl.load(x + place, inside, other=0).to(EXACT)
    off = tl.load(output + place, inside, other=0).to(EXACT) - target
    tl.store(output_grad + place, 2 * tl.load(grad + replica).to(EXACT) * off, inside)


def squared_error_backward(output: Tensor, x: Tensor, grad: Tensor) -> Tensor:
    size, output_grad = output[0].numel(), torch.empty_like(output)
    grid = (triton.cdiv(size, BLOCK), len(output))
    _squared_error_backward[grid](output, x, grad.contiguous(), output_grad, size, BLOCK=BLOCK,
                                  EXACT=_exact(x))
    return output_grad


@triton.jit
def _adam(weights, workings, gradients, firsts, seconds, counts, sizes, starts, lr, squared_norm,
          LOG_BETA1: tl.constexpr, LOG_BETA2: tl.constexpr, BETA1: tl.constexpr,
          BETA2: tl.constexpr, EPS: tl.constexpr, DECAY: tl.constexpr, CLIP: tl.constexpr,
          BLOCK: tl.constexpr):
    replica, block = tl.program_id(1).to(tl.int64), tl.program_id(0)
    which = _which(starts, block)
    size = _number(sizes, which)
    at = (block - _number(starts, which)) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    at += replica * size
    weight, first, second = (_pointer(weights, which), _pointer(firsts, which),
                             _pointer(seconds, which))
    dtype = weight.dtype.element_ty
    # In double precision, since 1 - beta2^t loses half of its digits at the first steps.
    count = tl.load(_pointer(counts, which) + replica).to(tl.float64)
    speed = tl.load(lr)
    rate = (speed / (1 - tl.exp(count * LOG_BETA1))).to(dtype)
    root = tl.sqrt(1 - tl.exp(count * LOG_BETA2)).to(dtype)
    g = tl.load(_pointer(gradients, which) + at, inside, other=0).to(dtype)
    if CLIP > 0:
        norm = tl.sqrt(tl.load(squared_norm + replica))
        g *= tl.minimum(CLIP / (norm + 1e-6), 1).to(dtype)
    m = tl.load(first + at, inside, other=0)
    m += (1 - BETA1) * (g - m)
    v = tl.load(second + at, inside, other=0) * BETA2 + (1 - BETA2) * g * g
    w = tl.load(weight + at, inside, other=0)
    if DECAY > 0:
        w -= (speed * DECAY).to(dtype) * w
    w -= rate * m / (tl.sqrt(v) / root + EPS)
    tl.store(first + at, m, inside)
    tl.store(second + at, v, inside)
    tl.store(weight + at, w, inside)
    if workings is not None:
        tl.store(_pointer(workings, which) + at, w, inside)


def adam_(leaves: Iterable[tuple[Tensor | None, ...]], *, lr: Tensor, betas: tuple[float, float],
          eps: float, decay: float, clip: tuple[float, Tensor] | None) -> None:
    """Update leaves: weight (r, ...), copy in lower precision, gradient, moments and steps (r,).

    clip: largest norm, squared norms (r,).
    """
    largest, squared = (0.0, lr) if clip is None else clip
    for part in _launches(leaves):
        weights, workings, gradients, *state = zip(*part, strict=True)
        sizes, starts, blocks = _blocks(weights, BLOCK)
        _adam[(blocks, len(weights[0]))](
            weights, None if workings[0] is None else workings,
            tuple(gradient.contiguous() for gradient in gradients), *state, sizes, starts, lr,
            squared, LOG_BETA1=math.log(betas[0]), LOG_BETA2=math.log(betas[1]), BETA1=betas[0],
            BETA2=betas[1], EPS=eps, DECAY=decay, CLIP=largest, BLOCK=BLOCK)


def _exact(like: Tensor) -> tl.dtype:
    return tl.float64 if like.dtype == torch.float64 else tl.float32
