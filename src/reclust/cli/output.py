"""Terminal output: tables or JSON, progress, warnings."""

from __future__ import annotations

import json
import logging
import math
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..utils.progress import ProgressCallback, ProgressOption

if TYPE_CHECKING:
    from ..training.monitors.base import Snapshot

PROGRESS_SECONDS = 30.0
"""Time between two progress lines if stderr is not a terminal."""


def show(rows: Sequence[Mapping[str, Any]], *, as_json: bool, empty: str = "nothing") -> None:
    """Print rows with the same keys as a table or as a JSON list."""
    if as_json:
        print(json.dumps([{name: _json(cell) for name, cell in row.items()} for row in rows],
                         indent=2))
    elif not rows:
        print(empty)
    else:
        names = list(rows[0])
        numeric = {name for name in names
                   if all(isinstance(row[name], (int, float)) for row in rows)}
        lines = [names, *([_text(row[name]) for name in names] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            cells = (cell.rjust(width) if name in numeric else cell.ljust(width)
                     for name, cell, width in zip(names, line, widths, strict=True))
            print("  ".join(cells).rstrip())


def _text(cell: Any) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _json(cell: Any) -> Any:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def duration(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings without the line of code that issued them."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: print(f"reclust: warning: {message}",
                                                               file=sys.stderr)
        yield


class ProgressLines(ProgressCallback):
    """Print progress as lines, at most one every `PROGRESS_SECONDS`."""

    def __init__(self) -> None:
        self._start = self._last = time.monotonic()

    def say(self, text: str) -> None:
        if time.monotonic() - self._last >= PROGRESS_SECONDS:
            self._last = time.monotonic()
            print(f"reclust: {text}", file=sys.stderr, flush=True)

    def monitor(self, snapshot: Snapshot) -> None:
        if snapshot.moment == "epoch":
            self.say(f"{snapshot.phase}, epoch {snapshot.epoch + 1} of {snapshot.epochs}")

    def report(self, done: float, task: str) -> None:
        if done:
            left = duration((time.monotonic() - self._start) * (1 - done) / done)
            self.say(f"{task}: {done:.0%}, about {left} left")


def progress(*, quiet: bool = False) -> ProgressOption:
    """Nothing if quiet, a progress bar on a terminal, lines elsewhere."""
    return False if quiet else None if sys.stderr.isatty() else ProgressLines()


def log_to_stderr(module: str, *, quiet: bool) -> None:
    """Print the log messages of a module, unless quiet."""
    logger, handler = logging.getLogger(module), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("reclust: %(message)s"))
    logger.handlers = [] if quiet else [handler]
    logger.setLevel(logging.INFO)
