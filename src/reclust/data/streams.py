"""Samples that stay where they are: memory-mapped files, huge arrays and sparse rows, read block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import draws

NEIGHBOURS = 2**22
"""Numbers in a run of neighbouring samples that are read together."""
TOGETHER = 16
"""How many such runs are shuffled into each other."""


@dataclass(frozen=True)
class StreamedInputs:
    """Row numbers in, scaled samples on the training device out; nothing of the whole but its order is ever in memory.

    samples: (n, ...) anything that is indexed by row numbers and keeps its rows on disk or packed: mapped, sparse.
    load: dense raw rows -> float32 rows as augmentation sees them, (B, *sample_shape).
    shift, scale: as in `ResidentInputs`.
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
        """Runs of neighbours in random order, some of them at a time shuffled into each other: reading stays local."""
        n = self.n_samples
        length = max(1, NEIGHBOURS // max(1, int(np.prod(self.sample_shape))))
        runs = torch.arange(n, device=key.device) // length
        orders = [self._order_of(one, runs, n) for one in key.reshape(-1)]
        return torch.stack(orders).reshape(*key.shape, n)

    def _order_of(self, key: Tensor, runs: Tensor, n: int) -> Tensor:
        place = draws.permutation(draws.fold(key, "runs"), int(runs[-1]) + 1).argsort()
        within = (draws.bits(draws.fold(key, "rows"), (n,)) >> 16) & (2**47 - 1)  # below the bits that name the group
        return ((place[runs] // TOGETHER << 47) | within).argsort()

    def take(self, rows: Tensor) -> Tensor:
        wanted = rows.cpu().numpy()
        loaded = torch.from_numpy(self.load(dense_rows(self.samples, wanted.reshape(-1))))
        return loaded.to(self.device, self.dtype).reshape(*wanted.shape, *loaded.shape[1:])

    def take_each(self, blocks: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """The next block is read while the last one is used."""
        with ThreadPoolExecutor(max_workers=1) as reader:
            waiting = None
            for rows in blocks:
                coming = (rows, reader.submit(self.take, rows))
                if waiting is not None:
                    yield waiting[0], waiting[1].result()
                waiting = coming
            if waiting is not None:
                yield waiting[0], waiting[1].result()

    def normalize(self, x: Tensor) -> Tensor:
        if self.shift is None or self.scale is None:
            return x
        return (x - self.shift) / self.scale

    def to(self, device: torch.device, dtype: torch.dtype) -> StreamedInputs:
        moved = {name: getattr(self, name).to(device, dtype) for name in ("shift", "scale") if getattr(self, name) is not None}
        return replace(self, device=device, dtype=dtype, **moved)


def dense_rows(samples: Any, rows: Any) -> np.ndarray:
    """Some rows of an array or a sparse matrix, as an array."""
    chosen = samples[rows]
    return chosen if isinstance(chosen, np.ndarray) else chosen.toarray()
