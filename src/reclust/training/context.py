"""The value that a run passes down to its phases."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from ..data.inputs import Inputs
from ..utils.device import Precision
from .engine.replicas import Replicas
from .monitors.base import Monitor
from .settings import Execution, Settings


@dataclass(frozen=True)
class RunContext:
    """Replicas, data, settings and execution of one run."""

    replicas: Replicas
    inputs: Inputs
    settings: list[Settings]
    monitors: Sequence[Monitor]
    execution: Execution
    precision: Precision

    @property
    def common(self) -> Settings:
        """Settings in which all replicas agree, apart from objective and intervention."""
        return self.settings[0]


class Deadline:
    """The end of a time budget that starts now."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def passed(self) -> bool:
        return self._end is not None and time.monotonic() > self._end
