"""In which precision a run computes, and on which units."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Precision:
    """precision: "float32", "float64" or "bf16", in which weights, losses and centres stay float32."""

    device: torch.device
    precision: str

    @classmethod
    def choose(cls, device: torch.device, wanted: str) -> Precision:
        """What "auto" means on this device."""
        return cls(device, ("bf16" if _has_bf16_units(device) else "float32") if wanted == "auto" else wanted)

    @property
    def dtype(self) -> torch.dtype:
        """Of all that is kept."""
        return torch.float64 if self.precision == "float64" else torch.float32

    @property
    def products(self) -> torch.dtype:
        """Of the weights that networks train with."""
        return torch.bfloat16 if self.precision == "bf16" else self.dtype

    def network(self) -> AbstractContextManager[None]:
        """PeriodicMonitor a network's forward pass."""
        if self.precision != "bf16":
            return nullcontext()
        # The cache of cast weights would outlive a captured step.
        return torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False)

    @contextmanager
    def training(self) -> Iterator[None]:
        """TF32 products on a GPU for as long as this lasts; the caller's setting comes back afterwards."""
        if self.device.type != "cuda":
            yield
            return
        with _TF32:
            yield


class _Tf32:
    """The setting is one for the whole process, so threads share it: the first to come switches, the last to go puts back."""

    def __init__(self) -> None:
        self._lock, self._inside, self._before = threading.Lock(), 0, ""

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = torch.get_float32_matmul_precision()
                torch.set_float32_matmul_precision("high")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                torch.set_float32_matmul_precision(self._before)


_TF32 = _Tf32()


def _has_bf16_units(device: torch.device) -> bool:
    """Never on a CPU, so that a seed gives the same labels on every processor."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
