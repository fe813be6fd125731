"""Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import Tracker


class WandB(Tracker):
    """Log to a run made by `wandb.init(…)`, with an epoch axis per phase. You finish the run."""

    def __init__(self, run: Any) -> None:
        self._run = run
        self._phases: set[str] = set()

    def write(self, phase: str, epoch: int, numbers: Mapping[str, float]) -> None:
        if phase not in self._phases:  # wandb's steps only increase, epochs restart in each phase
            self._phases.add(phase)
            self._run.define_metric(f"{phase}/*", step_metric=f"{phase}/epoch")
        self._run.log({f"{phase}/epoch": epoch, **numbers})
