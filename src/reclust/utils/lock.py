"""Locks between processes that the system takes back even from one that was killed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path


@contextmanager
def only_one(lock: Path, refusal: str) -> Iterator[None]:
    """Hold the lock that is this file; where another process does, a RuntimeError says `refusal`."""
    with ExitStack() as stack:
        try:
            held = stack.enter_context(closing(sqlite3.connect(lock, timeout=0, isolation_level=None)))
            held.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if "is locked" in str(error):
                raise RuntimeError(refusal) from error
            raise OSError(f"{lock} could not be locked ({error}): use a folder that can be written to, on a file system that "
                          "has locks.") from error
        if not lock.exists():  # whoever held it before removed it while this one came
            raise RuntimeError(refusal)
        yield
