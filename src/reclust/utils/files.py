"""Atomic file writes: a reader finds the old file or the new one, never a part of one."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an OSError if `path` cannot be written: call it before long work."""
    folder, name = Path(path).parent, Path(path).name
    error: OSError | None = None
    if Path(path).is_dir():
        error = IsADirectoryError(f"{path} is a folder: name a file in it.")
    elif not folder.is_dir():
        error = FileNotFoundError(f"There is no folder {folder} to write {name} into: "
                                  "make it first.")
    elif not os.access(folder, os.W_OK | os.X_OK):
        error = PermissionError(f"The folder {folder} is read-only, {name} cannot be written into "
                                "it: choose another one.")
    if error is not None:
        raise error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8, keeping line ends and undecodable bytes of file names."""
    write_bytes(path, text.encode("utf-8", "surrogateescape"))


def write_bytes(path: str | os.PathLike[str], content: bytes | bytearray, *,
                previous: Path | None = None) -> None:
    """Write a temporary file beside `path`, sync it to disk, and rename it.

    The old content of `path` is kept at `previous`, if given.
    """
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():  # /dev/stdout, a pipe
        path.write_bytes(content)
        return
    temporary = _beside(path)
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if previous is not None and path.exists():
            _keep(path, previous)
        os.replace(temporary, path)
    except OSError as error:
        raise type(error)(error.errno, f"{path} could not be written, its old content is intact: "
                          f"{error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _keep(path: Path, previous: Path) -> None:
    """Link or copy `path` to `previous` without ever removing `path`."""
    temporary = _beside(previous)
    try:
        try:
            os.link(path, temporary)
        except OSError:  # a file system without links
            shutil.copyfile(path, temporary)
        os.replace(temporary, previous)
    finally:
        temporary.unlink(missing_ok=True)  # renaming one link onto another does nothing


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut, on systems that can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
