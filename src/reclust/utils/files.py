"""Atomic writes, where a reader finds the old file or the new one, and locks between processes."""

import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

_FORMULA = re.compile(r"[=@\t\r\n]|[+-](?!([\d.]+(e[+-]?\d+)?|inf)$)")


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Tell whether this is a pipe, a device or an open file such as /dev/stdout, not a file."""
    where = os.path.dirname(os.path.abspath(path))
    return os.path.exists(path) and not os.path.isdir(path) and (
        not os.path.isfile(path) or where in ("/dev", "/dev/fd"))


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an OSError if `path` cannot be written: call it before long work."""
    if is_stream(path):
        return
    path = Path(os.path.realpath(path))
    folder = path.parent
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it.")
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder} to write {path.name} into.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"The folder {folder} is read-only: choose another one.")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"{path} is read-only: choose another name.")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8, keeping line ends and undecodable bytes of file names."""
    write_bytes(path, text.encode("utf-8", "surrogateescape"))


def write_bytes(path: str | os.PathLike[str], content: bytes | bytearray | memoryview, *,
                previous: Path | None = None) -> None:
    """Write a temporary file beside `path` (or what it links to) and rename it; keep `previous`."""
    if is_stream(path):
        with open(path, "ab") as stream:
            stream.write(content)
        return
    check_writable(path)
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")  # short: names may be long
    try:
        with _swept(path.parent):
            with open(temporary, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if path.exists():
                shutil.copymode(path, temporary)
                if previous is not None:
                    write_bytes(previous, path.read_bytes())
            os.replace(temporary, path)
    except OSError as error:
        raise type(error)(error.errno, f"{path} could not be written, its old content is intact: "
                          f"{error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Write rows as CSV, quoted as RFC 4180 says and where other programs cut, with line feeds."""
    cells = ([str(no_formula(cell)) for cell in row] for row in rows)
    return "".join(",".join('"' + text.replace('"', '""') + '"' if re.search('[",;\t\r\n]', text)
                            else text for text in row) + "\n" for row in cells)


def no_formula(cell: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would compute as a formula."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


@contextmanager
def _swept(folder: Path) -> Iterator[None]:
    """Delete temporary files that killed processes left, unless another process is writing here."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):  # Windows, or a folder that cannot be listed
        yield
        return
    try:
        with suppress(OSError):  # network file systems do not lock folders
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in folder.glob(f".{'[0-9a-f]' * 16}.tmp"):
                left.unlink(missing_ok=True)
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


@contextmanager
def exclusive_lock(path: Path, message: str) -> Iterator[None]:
    """Hold a lock that a killed process releases; raise with `message` if another one has it."""
    try:
        connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:
        if "is locked" not in str(error):
            message = (f"{path} could not be locked ({error}): use a writable folder that supports "
                       "locks.")
        raise RuntimeError(message) from error
    with closing(connection):
        yield
