"""A lock between processes, released by the system even if its holder is killed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def exclusive_lock(path: Path, message: str) -> Iterator[None]:
    """Hold the lock file `path`; raise a RuntimeError with `message` if another process does."""
    try:
        connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        reason = (message if "is locked" in str(error) else
                  f"{path} could not be locked ({error}): use a writable folder on a file system "
                  "that supports locks.")
        raise RuntimeError(reason) from error
    with closing(connection):
        yield
