"""Summaries of runs: progress, failures, time and spread of scores."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Status:
    """Progress of a study, and the seconds that its finished runs took."""

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
    """A failed run and its error."""

    study: str
    run: str
    dataset: str
    algorithm: str
    variant: str
    pretrained: bool
    seed: int
    error: str


@lru_cache(maxsize=256)  # most runs of a study have the same few settings
def clustering_epochs(settings: str) -> int:
    """Read the epochs in Python, since SQLite refuses JSON with infinities."""
    clustering = json.loads(settings)["fields"].get("clustering")
    return clustering["fields"]["epochs"] if clustering else 0


def spread(values: Sequence[float | None]) -> dict[str, float]:
    """Compute mean, standard deviation, standard error and maximum of the known values."""
    known = [value for value in values if value is not None]
    if not known:
        return dict.fromkeys(("mean", "std", "stderr", "best"), math.nan)
    mean = math.fsum(known) / len(known)
    squares = np.square(np.subtract(known, mean)).tolist()
    std = math.sqrt(math.fsum(squares) / (len(known) - 1)) if len(known) > 1 else math.nan
    return {"mean": mean, "std": std, "stderr": std / math.sqrt(len(known)), "best": max(known)}


def over_one_epoch(epochs: NDArray[np.int64], looked: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Select the epochs whose change of labels is over a single epoch.

    Changes are relative to the previous evaluation, and `looked` are the epochs evaluated. If the
    first epoch was evaluated, all were, even if a compact store has dropped some.
    """
    if len(looked) and looked[0] > 0:
        return np.isin(epochs - 1, looked)
    return np.ones(len(epochs), dtype=bool)
