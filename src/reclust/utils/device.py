"""Devices, their memory, and the precision to compute in."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch


def choose_device(name: str) -> torch.device:
    """Return the named device; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"device={name!r} cannot be used here ({str(error).splitlines()[0]}). "
                         "Use 'cpu', or 'auto' for a GPU if there is one.") from error
    return device


def resident_limit(device: torch.device) -> float:
    """Return how many bytes of samples may stay on the device; larger data is streamed."""
    return torch.cuda.mem_get_info(device)[0] / 2 if device.type == "cuda" else 2**29


def memory_limit(device: torch.device) -> float:
    """Return how many bytes networks may use: GPUs raise by themselves, a CPU may kill instead."""
    known = {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(getattr(os, "sysconf_names", ()))
    if device.type != "cpu" or not known:
        return math.inf
    return 0.75 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Precision:
    """Compute in "float32", "float64" or "bf16", which keeps weights and losses in float32."""

    device: torch.device
    precision: str

    @classmethod
    def choose(cls, device: torch.device, wanted: str) -> Precision:
        """Resolve "auto": bf16 on GPUs built for it, float32 elsewhere.

        Never bf16 on a CPU, so that a seed gives the same labels on every processor.
        """
        if wanted != "auto":
            return cls(device, wanted)
        has_bf16 = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
        return cls(device, "bf16" if has_bf16 else "float32")

    @property
    def dtype(self) -> torch.dtype:
        """Type of everything that is stored."""
        return torch.float64 if self.precision == "float64" else torch.float32

    @property
    def products(self) -> torch.dtype:
        """Type of the weights in matrix products."""
        return torch.bfloat16 if self.precision == "bf16" else self.dtype

    def network(self) -> AbstractContextManager[None]:
        """Return the autocast context for a forward pass."""
        if self.precision != "bf16":
            return nullcontext()
        # A cache of cast weights would outlive a step captured in a CUDA graph.
        return torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False)

    @contextmanager
    def training(self) -> Iterator[None]:
        """Use TF32 products on a GPU inside the block, then restore the caller's setting."""
        with _TF32 if self.device.type == "cuda" else nullcontext():
            yield


class _Tf32:
    """Process-wide setting shared by threads: the first one sets it, the last one restores it."""

    def __init__(self) -> None:
        self._lock, self._users, self._before = threading.Lock(), 0, ""

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._before = torch.get_float32_matmul_precision()
                torch.set_float32_matmul_precision("high")
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                torch.set_float32_matmul_precision(self._before)


_TF32 = _Tf32()
