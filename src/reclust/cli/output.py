"""What commands print: a table for people, JSON for programs."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..utils.progress import Listener, Shown

BETWEEN_LINES = 30.0
"""Seconds from one line about how far something is to the next, where there is no terminal for a progress bar."""


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def show(rows: Sequence[Mapping[str, Any]], *, as_json: bool, empty: str = "nothing") -> None:
    """Rows with the same names, as a table or as a JSON list."""
    if as_json:
        print(json.dumps([{name: _plain(cell) for name, cell in row.items()} for row in rows], indent=2))
    elif not rows:
        print(empty)
    else:
        names = list(rows[0])
        numeric = {name for name in names if all(isinstance(row[name], (int, float)) for row in rows)}
        lines = [names, *([_text(row[name]) for name in names] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            cells = (cell.rjust(width) if name in numeric else cell.ljust(width)
                     for name, cell, width in zip(names, line, widths, strict=True))
            print("  ".join(cells).rstrip())


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings as lines for people, without where in the program they come from."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *rest, **named: print(f"reclust: warning: {message}", file=sys.stderr)
        yield


class NowAndThen(Listener):
    """Lines about how far something is."""

    def __init__(self) -> None:
        self._begun = self._last = time.monotonic()

    def say(self, text: str) -> None:
        if time.monotonic() - self._last >= BETWEEN_LINES:
            self._last = time.monotonic()
            print(f"reclust: {text}", file=sys.stderr, flush=True)

    def hear(self, done: float, of: str) -> None:
        """With the time that the rest will take if it is like what is done."""
        if done:
            left = duration((time.monotonic() - self._begun) * (1 - done) / done)
            self.say(f"{of}: {done:.0%}, about {left} left")


def progress(*, quiet: bool = False) -> Shown:
    """How to show it: nothing, a bar where somebody watches a terminal, lines where not."""
    return False if quiet else None if sys.stderr.isatty() else NowAndThen()


@contextmanager
def logged(module: str, *, shown: bool) -> Iterator[None]:
    """What a module of the library logs, as lines for people."""
    import logging

    logger, handler = logging.getLogger(module), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("reclust: %(message)s"))
    before = logger.level
    if shown:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def _text(cell: Any) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _plain(cell: Any) -> Any:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def positive(text: str) -> float:
    """A number above 0, of an argument."""
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"must be above 0, got {text}")
    return number
