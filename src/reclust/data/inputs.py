"""Samples as training reads them: gathers by row number, scaled, on the training device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from .. import draws


class Inputs(Protocol):
    """Shapes: n samples. `take` gives samples as augmentation sees them, `normalize` turns those into what a network sees."""

    @property
    def n_samples(self) -> int: ...

    @property
    def sample_shape(self) -> tuple[int, ...]: ...

    @property
    def device(self) -> torch.device: ...

    def order(self, key: Tensor) -> Tensor:
        """In which order one epoch visits the samples: (*key.shape, n) row numbers."""
        ...

    def take(self, rows: Tensor) -> Tensor:
        """(...) row numbers -> (..., *sample_shape)."""
        ...

    def normalize(self, x: Tensor) -> Tensor: ...

    def to(self, device: torch.device, dtype: torch.dtype) -> Inputs: ...


@dataclass(frozen=True)
class ResidentInputs:
    """All samples in one tensor on the training device. `shift` and `scale` (None: nothing to do) broadcast to a sample."""

    samples: Tensor
    shift: Tensor | None = None
    scale: Tensor | None = None

    @property
    def n_samples(self) -> int:
        return len(self.samples)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return tuple(self.samples.shape[1:])

    @property
    def device(self) -> torch.device:
        return self.samples.device

    def order(self, key: Tensor) -> Tensor:
        return draws.permutation(key, self.n_samples)

    def take(self, rows: Tensor) -> Tensor:
        return self.samples[rows]

    def normalize(self, x: Tensor) -> Tensor:
        if self.shift is None or self.scale is None:
            return x
        return (x - self.shift) / self.scale

    def to(self, device: torch.device, dtype: torch.dtype) -> ResidentInputs:
        moved = {name: tensor.to(device, dtype) for name, tensor in vars(self).items() if tensor is not None}
        return replace(self, **moved)


def as_inputs(data: Inputs | Tensor | np.ndarray) -> Inputs:
    """Arrays and tensors (n, *sample_shape) are taken as they are: scaled already."""
    if isinstance(data, np.ndarray):
        data = torch.from_numpy(np.ascontiguousarray(data))
    return ResidentInputs(data) if isinstance(data, Tensor) else data
