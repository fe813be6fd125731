"""Time spent in the parts of a run; a nested part does not count for the outer one."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Timer:
    """Add the time in `with timer("embedding"):` to `timer.seconds["embedding"]`."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._device = torch.device(device)
        self._open: list[str] = []
        self._since = 0.0

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        self._charge()
        self._open.append(part)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    def _charge(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        now = time.perf_counter()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now
