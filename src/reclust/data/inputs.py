"""Samples as training reads them: taken by row number, scaled, on the training device."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from .. import draws
from .dataset import dense_rows
from .preprocess import Prepared

RUN_SIZE = 2**22  # numbers in a run of neighboring samples that are read together
RUNS_PER_GROUP = 16  # runs that are shuffled into each other


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

    def take(self, rows: Tensor) -> Tensor:
        """(...) row numbers -> (..., *sample_shape)."""

    def take_each(self, blocks: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield each block of row numbers with its samples, possibly read ahead."""

    def normalize(self, x: Tensor) -> Tensor: ...

    def to(self, device: torch.device, dtype: torch.dtype) -> "Inputs": ...


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

    def to(self, device: torch.device, dtype: torch.dtype) -> "ResidentInputs":
        tensors = {name: t.to(device, dtype) for name, t in vars(self).items() if t is not None}
        return replace(self, **tensors)


@dataclass(frozen=True)
class StreamedInputs:
    """Inputs that load and scale samples when they are taken; only the order is held in memory."""

    samples: Any  # (n, ...), can be indexed by row numbers
    load: Callable[[np.ndarray], np.ndarray]  # dense raw rows -> float32 (B, *sample_shape)
    shift: Tensor | None = None
    scale: Tensor | None = None
    device: torch.device = torch.device("cpu")
    dtype: torch.dtype = torch.float32

    @property
    def n_samples(self) -> int:
        return int(self.samples.shape[0])

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return tuple(self.load(dense_rows(self.samples, slice(0, 1))).shape[1:])

    def order(self, key: Tensor) -> Tensor:
        """Shuffle runs of neighbors, then samples within groups of runs: reads stay local."""
        n = self.n_samples
        length = max(1, RUN_SIZE // max(1, int(np.prod(self.sample_shape))))
        runs = torch.arange(n, device=key.device) // length
        return torch.stack([_shuffle(k, runs) for k in key.reshape(-1)]).reshape(*key.shape, n)

    def take(self, rows: Tensor) -> Tensor:
        wanted = rows.cpu().numpy()
        loaded = torch.from_numpy(self.load(dense_rows(self.samples, wanted.reshape(-1))))
        return loaded.to(self.device, self.dtype).reshape(*wanted.shape, *loaded.shape[1:])

    def take_each(self, blocks: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Read the next block while the current one is used."""
        with ThreadPoolExecutor(max_workers=1) as reader:
            taken: Iterator[Any] = ((rows, reader.submit(self.take, rows)) for rows in blocks)
            for (rows, samples), _ in pairwise(chain(taken, [(None, None)])):
                yield rows, samples.result()

    def normalize(self, x: Tensor) -> Tensor:
        return x if self.shift is None or self.scale is None else (x - self.shift) / self.scale

    def to(self, device: torch.device, dtype: torch.dtype) -> "StreamedInputs":
        moved = {name: None if tensor is None else tensor.to(device, dtype)
                 for name, tensor in (("shift", self.shift), ("scale", self.scale))}
        return replace(self, device=device, dtype=dtype, **moved)  # type: ignore[arg-type]


def _shuffle(key: Tensor, runs: Tensor) -> Tensor:
    place = draws.permutation(draws.fold(key, "runs"), int(runs[-1]) + 1).argsort()
    group = place[runs] // RUNS_PER_GROUP << 47
    within = (draws.bits(draws.fold(key, "rows"), (len(runs),)) >> 16) & (2**47 - 1)
    return (group | within).argsort()


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
