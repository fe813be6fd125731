"""The base class of trackers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from ..base import Snapshot


class Tracker(ABC):
    """A monitor that writes the newest value of each curve as `phase/column`.

    With several replicas the name is `phase/column/replica 3`. A tracker sees losses and the
    measurements of monitors before it, so put it last. Only scalars per replica are written.
    """

    def __call__(self, snapshot: Snapshot) -> None:
        numbers = self._numbers(snapshot)
        if numbers:
            self.write(snapshot.phase, snapshot.epoch, numbers)

    @abstractmethod
    def write(self, phase: str, epoch: int, numbers: Mapping[str, float]) -> None:
        """Write numbers by their full names; epoch -1 is before the first one."""

    def close(self, failed: bool = False) -> None:  # noqa: B027 - optional
        """Finish writing. failed: training ended with an exception."""

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        self.close(failed=kind is not None)

    def _numbers(self, snapshot: Snapshot) -> dict[str, float]:
        if snapshot.moment == "start" and snapshot.epoch >= 0:  # written before the run was resumed
            return {}
        columns = {**snapshot.loss, **snapshot.measured}
        if snapshot.fired.any() and snapshot.moment == "epoch":
            columns["fired"] = snapshot.fired
        replicas = len(snapshot.fired)
        return {f"{snapshot.phase}/{column}" + (f"/replica {i}" if replicas > 1 else ""):
                    float(number)
                for column, values in columns.items() if np.shape(values) == (replicas,)
                for i, number in enumerate(values)}
