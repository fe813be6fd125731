"""Samples that stay on disk or packed (memory-mapped, sparse) and are read block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import draws

RUN_SIZE = 2**22
"""Numbers in a run of neighboring samples that are read together."""
RUNS_PER_GROUP = 16
"""Runs that are shuffled into each other."""


@dataclass(frozen=True)
class StreamedInputs:
    """Inputs that load and scale samples when they are taken; only the order is held in memory.

    samples (n, ...) can be indexed by row numbers; load: dense raw rows -> float32 rows as
    augmentation sees them (B, *sample_shape); shift and scale as in `ResidentInputs`.
    """

    samples: Any
    load: Callable[[np.ndarray], np.ndarray]
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
        return torch.stack([_shuffle(one, runs) for one in key.reshape(-1)]).reshape(*key.shape, n)

    def take(self, rows: Tensor) -> Tensor:
        wanted = rows.cpu().numpy()
        loaded = torch.from_numpy(self.load(dense_rows(self.samples, wanted.reshape(-1))))
        return loaded.to(self.device, self.dtype).reshape(*wanted.shape, *loaded.shape[1:])

    def take_each(self, blocks: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Read the next block while the current one is used."""
        with ThreadPoolExecutor(max_workers=1) as reader:
            current = None
            for rows in blocks:
                following = (rows, reader.submit(self.take, rows))
                if current is not None:
                    yield current[0], current[1].result()
                current = following
            if current is not None:
                yield current[0], current[1].result()

    def normalize(self, x: Tensor) -> Tensor:
        return x if self.shift is None or self.scale is None else (x - self.shift) / self.scale

    def to(self, device: torch.device, dtype: torch.dtype) -> StreamedInputs:
        moved = {name: None if tensor is None else tensor.to(device, dtype)
                 for name, tensor in (("shift", self.shift), ("scale", self.scale))}
        return replace(self, device=device, dtype=dtype, **moved)  # type: ignore[arg-type]


def _shuffle(key: Tensor, runs: Tensor) -> Tensor:
    place = draws.permutation(draws.fold(key, "runs"), int(runs[-1]) + 1).argsort()
    group = place[runs] // RUNS_PER_GROUP << 47
    within = (draws.bits(draws.fold(key, "rows"), (len(runs),)) >> 16) & (2**47 - 1)
    return (group | within).argsort()


def dense_rows(samples: Any, rows: Any) -> np.ndarray:
    """Return some rows of an array or a sparse matrix as an array."""
    chosen = samples[rows]
    return chosen if isinstance(chosen, np.ndarray) else chosen.toarray()
