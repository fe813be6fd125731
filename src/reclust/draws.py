"""Counter-based random numbers: a draw is a pure function of integer keys, equal on all devices.

A key is an int64 tensor of any shape; `fold` derives new keys from it, and each key yields an
independent stream. There is no state to save or to lock, and torch's generators are not used. Keys
may be on a GPU, so draws can be captured into CUDA graphs. Integers are used until the last
conversion, so uniform draws are equal bit for bit on all devices, and normal draws up to rounding.

Examples
--------
>>> from reclust import draws
>>> keys = draws.fold(draws.key([0, 1]), "noise", 3)
>>> draws.normal(keys, (5,)).shape
torch.Size([2, 5])
"""

import math
import zlib
from collections.abc import Sequence

import torch
from torch import Tensor

# The multipliers and the increment of splitmix64 as signed 64-bit integers.
_FIRST, _SECOND, _INCREMENT = -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15, -0x61C8864680B583EB


def key(seed: int | Sequence[int], *, device: torch.device | str = "cpu") -> Tensor:
    """Return the key of one seed, shape (), or of several, shape (r,)."""
    return _mix(torch.as_tensor(seed, dtype=torch.int64, device=device) + _INCREMENT)


def fold(key: Tensor, *values: int | str | Tensor) -> Tensor:
    """Derive keys from `key` and integers, names or tensors, which broadcast; order matters."""
    for value in values:
        if isinstance(value, str):
            value = zlib.crc32(value.encode())
        if not isinstance(value, Tensor):
            value = torch.full((), value, dtype=torch.int64, device=key.device)
        key = _combine(key, value)
    return key


def bits(key: Tensor, shape: Sequence[int] = ()) -> Tensor:
    """Draw 64 random bits each: int64 of shape (*key.shape, *shape)."""
    counter = torch.arange(math.prod(shape), device=key.device)
    return _combine(key.unsqueeze(-1), counter).reshape((*key.shape, *shape))


def uniform(key: Tensor, shape: Sequence[int] = (), *,
            dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw numbers in [0, 1) with 24 random bits, the same in every floating type."""
    return (_shift(bits(key, shape), 40).to(torch.float32) * 2.0**-24).to(dtype)


def normal(key: Tensor, shape: Sequence[int] = (), *, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw standard normal numbers, by Box-Muller in float64."""
    radius, angle = uniform(key, (*shape, 2), dtype=torch.float64).unbind(-1)
    return (torch.sqrt(-2 * torch.log1p(-radius)) * torch.cos(2 * math.pi * angle)).to(dtype)


def integers(key: Tensor, high: int, shape: Sequence[int] = ()) -> Tensor:
    """Draw integers in [0, high), high < 2**31, with a bias below high / 2**63."""
    return _shift(bits(key, shape), 1) % high


def permutation(key: Tensor, n: int) -> Tensor:
    """Draw a permutation of 0..n-1 for each key, shape (*key.shape, n)."""
    return bits(key, (n,)).argsort(dim=-1, stable=True)


def subset(key: Tensor, n: int, m: int) -> Tensor:
    """Draw m different numbers of 0..n-1, or all if m is larger, in ascending order, (m,)."""
    if n <= 2**22 or n <= m:
        return permutation(key, n)[:m].sort().values
    starts = torch.arange(m + 1, device=key.device) * n // m  # one of each of m equal parts
    return starts[:-1] + _shift(bits(key, (m,)), 1) % starts.diff()


def _combine(key: Tensor, value: Tensor) -> Tensor:
    return _mix(key + _INCREMENT + _mix(value + _INCREMENT))


def _mix(x: Tensor) -> Tensor:
    x = (x ^ _shift(x, 30)) * _FIRST  # products wrap modulo 2**64
    x = (x ^ _shift(x, 27)) * _SECOND
    return x ^ _shift(x, 31)


def _shift(x: Tensor, places: int) -> Tensor:
    """Shift right without copying the sign bit."""
    return (x >> places) & ((1 << (64 - places)) - 1)
