"""Atomic writes, where a reader finds the old file or the new one, and locks between processes."""

import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an OSError if `path` cannot be written: call it before long work."""
    path = Path(os.path.realpath(path))
    folder = path.parent
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it.")
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder} to write {path.name} into: make it "
                                "first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"The folder {folder} is read-only, {path.name} cannot be written "
                              "into it: choose another one.")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8, keeping line ends and undecodable bytes of file names."""
    write_bytes(path, text.encode("utf-8", "surrogateescape"))


def write_bytes(path: str | os.PathLike[str], content: bytes | bytearray | memoryview, *,
                previous: Path | None = None) -> None:
    """Write a temporary file beside `path` and rename it; keep the old one at `previous`.

    The new file gets the mode of the old one. If `path` is a link, its target is written.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file() and not path.is_dir():  # /dev/stdout, a pipe
        path.write_bytes(content)
        return
    try:
        with _temporary(path) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if path.exists():
                shutil.copymode(path, file.name)
                if previous is not None:
                    _keep(path, previous)
            if fcntl is None:  # Windows cannot rename an open file
                file.close()
            os.replace(file.name, path)
    except OSError as error:
        raise type(error)(error.errno, f"{path} could not be written, its old content is intact: "
                          f"{error.strerror or error}") from error


def _keep(path: Path, previous: Path) -> None:
    """Make `previous` another name of `path`, or a copy, without ever removing `path`."""
    previous.unlink(missing_ok=True)
    try:
        os.link(path, previous)
    except OSError:  # a file system without links
        shutil.copyfile(path, previous)


@contextmanager
def _temporary(path: Path) -> Iterator[BinaryIO]:
    """Open a locked file beside `path`, and delete those that killed processes left there."""
    for left in path.parent.glob(".*.tmp"):
        if _TEMPORARY.fullmatch(left.name):
            with suppress(OSError), open(left, "rb") as file:
                _lock(file, wait=False)
                left.unlink()
    while True:
        with open(path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp"), "xb") as file:
            _lock(file, wait=True)
            if os.fstat(file.fileno()).st_nlink == 0:  # another process deleted it before the lock
                continue
            try:
                yield file
            finally:
                with suppress(OSError):
                    os.unlink(file.name)
            return


def _lock(file: BinaryIO, *, wait: bool) -> None:
    if fcntl is not None:  # Windows does not delete open files
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


@contextmanager
def exclusive_lock(path: Path, message: str) -> Iterator[None]:
    """Hold a lock file, which ends with its holder; raise with `message` if another has it."""
    try:
        connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        other = f"{path} could not be locked ({error}): use a writable folder that supports locks."
        raise RuntimeError(message if "is locked" in str(error) else other) from error
    with closing(connection):
        yield
