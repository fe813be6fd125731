"""Exceptions and warnings of the library, and imports of optional packages."""

import importlib
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType

_COLLECTED: ContextVar[tuple[list[str], ...]] = ContextVar("collected", default=())


class ReclustWarning(UserWarning):
    """Base class of every warning that this library gives.

    Examples
    --------
    >>> import warnings, reclust
    >>> warnings.filterwarnings("ignore", category=reclust.ReclustWarning)
    """


class TrainingFailed(RuntimeError):
    """Raised when the loss of every replica is NaN or infinite.

    Examples
    --------
    >>> import reclust
    >>> issubclass(reclust.TrainingFailed, RuntimeError)
    True
    """


class StopTraining(Exception):
    """Raise this in a monitor to stop training after an epoch, once the checkpoint is written.

    Examples
    --------
    >>> import reclust
    >>> def stop_after_ten(snapshot):
    ...     if snapshot.epoch == 10:
    ...         raise reclust.StopTraining("ten epochs are enough")
    """


def warn(message: str) -> None:
    """Give a `ReclustWarning` that points at the user's line, however deep the call is."""
    skipped, frame, level = ("reclust", "torch", "sklearn", "contextlib"), sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in skipped:
        frame, level = frame.f_back, level + 1
    for messages in _COLLECTED.get():
        messages.append(printable(message))
    warnings.warn(printable(message), ReclustWarning, stacklevel=level)


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect the messages of this library's warnings, which are given all the same."""
    messages: list[str] = []
    before = _COLLECTED.set((*_COLLECTED.get(), messages))
    try:
        yield messages
    finally:
        _COLLECTED.reset(before)


def printable(text: str) -> str:
    """Escape control characters, which a terminal would obey, except line ends."""
    return re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", lambda match: f"\\x{ord(match[0]):02x}", text)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its class if it has none."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def require(module: str, *, purpose: str, extra: str = "data") -> ModuleType:
    """Import an optional module, or raise an ImportError that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{purpose} needs {package}: pip install 'reclust[{extra}]' "
                          f"(or {package} alone).") from error
