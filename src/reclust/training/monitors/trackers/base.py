"""What every tracker shares: which numbers there are, and what they are called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from ..base import Snapshot


class Tracker(ABC):
    """A monitor that writes each curve's newest number as `phase/column`, `phase/column/replica 3` where several train.

    It sees losses and what the monitors before it measured: give it last. Only single numbers a replica are written.
    """

    def __call__(self, snapshot: Snapshot) -> None:
        numbers = self._numbers(snapshot)
        if numbers:
            self.write(snapshot.phase, snapshot.epoch, numbers)

    @abstractmethod
    def write(self, phase: str, epoch: int, numbers: Mapping[str, float]) -> None:
        """Numbers by their full names; epoch -1 is before the first one."""

    def close(self, failed: bool = False) -> None:  # noqa: B027 - some have nothing to close
        """Everything is written after this. failed: whether what was followed ended in an exception."""

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        self.close(failed=kind is not None)

    def _numbers(self, snapshot: Snapshot) -> dict[str, float]:
        if snapshot.moment == "start" and snapshot.epoch >= 0:  # written by the run that this one resumes
            return {}
        columns = {**snapshot.loss, **snapshot.measured}
        if snapshot.fired.any() and snapshot.moment == "epoch":
            columns["fired"] = snapshot.fired
        replicas = len(snapshot.fired)
        return {f"{snapshot.phase}/{column}" + (f"/replica {i}" if replicas > 1 else ""): float(number)
                for column, values in columns.items() if np.shape(values) == (replicas,)
                for i, number in enumerate(values)}
