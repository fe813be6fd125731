"""What is said of runs: how far a study is, what failed, how long runs trained, and how their scores spread."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from . import schema


@dataclass(frozen=True)
class Status:
    """How far a study is. seconds: what its finished runs took."""

    study: str
    planned: int
    finished: int
    failed: int
    seconds: float

    @property
    def waiting(self) -> int:
        return self.planned - self.finished - self.failed


@dataclass(frozen=True)
class Failure:
    """A run that did not finish: what it was, and why."""

    study: str
    run: str
    dataset: str
    algorithm: str
    variant: str
    pretrained: bool
    seed: int
    error: str


@lru_cache(maxsize=256)  # most runs of a study have the same few settings
def clustered_for(settings: str) -> int:
    """Epochs; read here since SQLite refuses numbers that are not finite, such as an infinite clip_norm."""
    clustering = json.loads(settings)["fields"].get("clustering")
    return clustering["fields"]["epochs"] if clustering else 0


def times(epochs: bytes, shape: str, points: bytes, position: int) -> int:
    """At how many epochs a curve of marks has one for the run at this position of its group."""
    return int(np.count_nonzero(schema.unpack_curve(epochs, shape, points)[1][:, position] == 1))


def spread(values: Sequence[float | None]) -> dict[str, float]:
    known = [value for value in values if value is not None]
    if not known:
        return dict.fromkeys(("mean", "std", "stderr", "best"), math.nan)
    mean = math.fsum(known) / len(known)
    squares = np.square(np.subtract(known, mean)).tolist()
    std = math.sqrt(math.fsum(squares) / (len(known) - 1)) if len(known) > 1 else math.nan
    return {"mean": mean, "std": std, "stderr": std / math.sqrt(len(known)), "best": max(known)}


def over_one_epoch(epochs: NDArray[np.int64], looked: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the epochs have a change of labels over one epoch; looked: those at whose end labels were looked at, ascending.

    A change is since the last look, and one over more epochs cannot be compared with the others. Where there is one of the
    first epoch, labels were looked at in all, also if a compact store has left out some.
    """
    return np.isin(epochs - 1, looked) if len(looked) and looked[0] > 0 else np.ones(len(epochs), dtype=bool)
