"""Samples as training reads them: taken by row number, scaled, on the training device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from .. import draws
from .preprocess import Prepared
from .streams import dense_rows


@runtime_checkable
class Inputs(Protocol):
    """n samples: `take` gives them as augmentation sees them, `normalize` as the network does."""

    @property
    def n_samples(self) -> int: ...

    @property
    def sample_shape(self) -> tuple[int, ...]: ...

    @property
    def device(self) -> torch.device: ...

    def order(self, key: Tensor) -> Tensor:
        """Return the row numbers in the order of one epoch, (*key.shape, n)."""
        ...

    def take(self, rows: Tensor) -> Tensor:
        """(...) row numbers -> (..., *sample_shape)."""
        ...

    def take_each(self, blocks: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield each block of row numbers with its samples, possibly read ahead."""
        ...

    def normalize(self, x: Tensor) -> Tensor: ...

    def to(self, device: torch.device, dtype: torch.dtype) -> Inputs: ...


@dataclass(frozen=True)
class ResidentInputs:
    """All samples in one tensor; `shift` and `scale` broadcast to a sample, None to skip them."""

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
        if rows.is_cuda:
            return self.samples[rows]
        # On a CPU, index_select copies whole rows and is faster.
        taken = self.samples.index_select(0, rows.flatten())
        return taken.reshape(*rows.shape, *self.sample_shape)

    def take_each(self, blocks: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        return ((rows, self.take(rows)) for rows in blocks)

    def normalize(self, x: Tensor) -> Tensor:
        return x if self.shift is None or self.scale is None else (x - self.shift) / self.scale

    def to(self, device: torch.device, dtype: torch.dtype) -> ResidentInputs:
        tensors = {name: t.to(device, dtype) for name, t in vars(self).items() if t is not None}
        return replace(self, **tensors)


def as_inputs(data: Inputs | Prepared | Tensor | np.ndarray) -> Inputs:
    """Convert arrays and tensors (n, *sample_shape), taken as scaled, and prepared data sets."""
    if isinstance(data, Prepared):
        samples = torch.from_numpy(dense_rows(data.samples, slice(None)))
        return ResidentInputs(samples, torch.from_numpy(data.mean), torch.from_numpy(data.std))
    if isinstance(data, np.ndarray):
        data = torch.from_numpy(np.ascontiguousarray(data))
    if isinstance(data, Tensor):
        if not data.sum().isfinite() and not data.isfinite().all():
            raise ValueError("The data contain NaN or infinity: impute them or drop their rows.")
        return ResidentInputs(data.detach())
    if not isinstance(data, Inputs):
        raise TypeError("train() needs a scaled array or tensor (n, …) or prepare(dataset), got "
                        f"{type(data).__name__}; an estimator's fit takes tables and files.")
    return data
