"""In which precision a run computes, and on which units."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Arithmetic:
    """precision: "float32", "float64" or "bf16", in which weights, losses and centres stay float32."""

    device: torch.device
    precision: str

    @classmethod
    def choose(cls, device: torch.device, wanted: str) -> Arithmetic:
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
        """Around a network's forward pass."""
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
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)


def _has_bf16_units(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    return device.type == "cpu" and "amx" in torch.backends.cpu.get_cpu_capability().lower()
