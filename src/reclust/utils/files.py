"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise what would stop `write_bytes` for want of a folder."""
    folder, name = Path(path).parent, Path(path).name
    _refuse_folder(Path(path))
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder} to write {name} into: make it first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"The folder {folder} is read-only, {name} cannot be written into it: choose another one.")


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it.")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """In UTF-8, with the line ends that the text has. Names of files that are no UTF-8 stay the bytes that they are."""
    write_bytes(path, text.encode("utf-8", "surrogateescape"))


def write_bytes(path: str | os.PathLike[str], content: bytes | bytearray, *, previous: Path | None = None) -> None:
    """Write to a temporary file beside `path`, sync it to the disk, then rename: a crash leaves the old file or the new one.

    previous: where to keep what was at `path` before.
    """
    path = Path(path)
    _refuse_folder(path)
    if path.exists() and not path.is_file():  # a terminal, a pipe, /dev/null: nothing to be replaced
        path.write_bytes(content)
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if previous is not None:
            _keep(path, previous)
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise type(error)(error.errno, f"{path} could not be written, what was there before is whole: "
                              f"{error.strerror or error}") from error
        raise


def _keep(path: Path, previous: Path) -> None:
    """Make `previous` what `path` is, while that stays where it is: a file that is missing was removed by somebody."""
    if not path.exists():
        return
    beside = previous.with_name(f".{previous.name}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            os.link(path, beside)
        except OSError:  # a file system without links
            shutil.copyfile(path, beside)
        os.replace(beside, previous)
    finally:
        beside.unlink(missing_ok=True)  # where both were one file already, renaming does nothing


def _sync_folder(folder: Path) -> None:
    """Make renames last; not every system can, and none needs it for the files to be whole."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
