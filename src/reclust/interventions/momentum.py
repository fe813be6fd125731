"""Momentum resets: the optimizer forgets where the old centres were heading."""

from __future__ import annotations

from typing import ClassVar

from ..utils.values import value
from .steps import Step
from .target import Target


@value
class ResetMomentum(Step):
    """Zeroes the optimizer's moments of the centres, and with `steps=True` its count of their steps as well.

    Where centres are not learned by the optimizer there is nothing to do.
    """

    steps: bool = False
    part: ClassVar[str] = "momentum"

    def __call__(self, target: Target) -> None:
        for tensor in (*target.moments, *(target.step_counts if self.steps else ())):
            tensor.zero_()
