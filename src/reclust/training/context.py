"""Context of a run, which its phases share, and its deadline."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from ..data.inputs import Inputs
from ..utils.device import Precision
from .engine.ranks import Ranks
from .engine.replicas import Replicas
from .monitors.base import Monitor
from .result import Result
from .settings import Execution, Settings


@dataclass(frozen=True)
class RunContext:
    """One run of all replicas or of a group of them; `start` holds one replica for each."""

    replicas: Replicas
    inputs: Inputs
    settings: list[Settings]
    monitors: Sequence[Monitor]
    execution: Execution
    precision: Precision
    start: Result | None
    is_partial_group: bool
    targets: Tensor | None = None
    ranks: Ranks = field(default_factory=Ranks)

    @property
    def common(self) -> Settings:
        """Settings in which all replicas agree, apart from objective and intervention."""
        return self.settings[0]


class Deadline:
    """The end of a time budget that starts now."""

    def __init__(self, seconds: float | None) -> None:
        self._end = time.monotonic() + (math.inf if seconds is None else seconds)

    @property
    def passed(self) -> bool:
        return time.monotonic() > self._end
