"""Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import Tracker


class WandB(Tracker):
    """Curves of a run that `wandb.init(…)` made, each phase over its own epochs. Its owner finishes it.

    The run is all that is needed, so nothing is imported here; wandb comes with the extra `wandb`.
    """

    def __init__(self, run: Any) -> None:
        self._run = run
        self._phases: set[str] = set()

    def write(self, phase: str, epoch: int, numbers: Mapping[str, float]) -> None:
        if phase not in self._phases:  # wandb's own steps only rise, epochs begin again with each phase
            self._phases.add(phase)
            self._run.define_metric(f"{phase}/*", step_metric=f"{phase}/epoch")
        self._run.log({f"{phase}/epoch": epoch, **numbers})
