"""Samples as training reads them: gathers by row number, scaled, on the training device."""

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

    def take_each(self, blocks: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Each block of row numbers with its samples, perhaps read ahead."""
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
        if rows.is_cuda:
            return self.samples[rows]
        # On a CPU indexing goes number by number, this by rows.
        return self.samples.index_select(0, rows.flatten()).reshape(*rows.shape, *self.sample_shape)

    def take_each(self, blocks: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        return ((rows, self.take(rows)) for rows in blocks)

    def normalize(self, x: Tensor) -> Tensor:
        if self.shift is None or self.scale is None:
            return x
        return (x - self.shift) / self.scale

    def to(self, device: torch.device, dtype: torch.dtype) -> ResidentInputs:
        moved = {name: tensor.to(device, dtype) for name, tensor in vars(self).items() if tensor is not None}
        return replace(self, **moved)


def as_inputs(data: Inputs | Prepared | Tensor | np.ndarray) -> Inputs:
    """Arrays and tensors (n, *sample_shape) are taken as they are: scaled already. Prepared sets bring their z-score."""
    if isinstance(data, Prepared):
        samples = torch.from_numpy(dense_rows(data.samples, slice(None)))
        return ResidentInputs(samples, torch.from_numpy(data.mean), torch.from_numpy(data.std))
    if isinstance(data, np.ndarray):
        data = torch.from_numpy(np.ascontiguousarray(data))
    if isinstance(data, Tensor):
        if not data.sum().isfinite() and not data.isfinite().all():
            raise ValueError("The data hold NaN or infinity, from which nothing is learned: fill such values in or leave their "
                             "rows out first.")
        return ResidentInputs(data.detach())
    if not isinstance(data, Inputs):
        raise TypeError(f"The data must be an array or a tensor (n, …) of scaled numbers, or what prepare(dataset) gives, got "
                        f"{type(data).__name__}: an estimator's fit takes frames, lists and sets as they are.")
    return data
