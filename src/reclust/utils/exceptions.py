"""What can go wrong while training, as types to catch or filter."""

from __future__ import annotations

import sys
import warnings


class ReclustWarning(UserWarning):
    """Something about a fit that its user should know. Every warning of this package is one."""


class TrainingFailed(RuntimeError):
    """No replica is left whose loss is a number."""


class StopTraining(Exception):
    """A monitor may raise this at the end of an epoch: the checkpoint is written, and training ends with this exception."""


_WITHIN = ("reclust", "torch", "sklearn", "contextlib")
"""This package, and those whose functions call it back."""


def warn(message: str) -> None:
    """As a `ReclustWarning` about the line of the user that led here, however deep this is."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _WITHIN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, ReclustWarning, stacklevel=level)


def first_line(error: BaseException) -> str:
    """What an error says, without what it adds."""
    return next(iter(str(error).splitlines()), type(error).__name__)
