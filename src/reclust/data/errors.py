"""What goes wrong with data, said in one way: the file, what it holds, what was needed, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..utils.lazy import require as require


class DataError(ValueError):
    """Data that is missing, broken, hostile or of the wrong kind."""


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Turns whatever a parser raises on a broken file into a DataError that names the file.

    Parsers of foreign bytes raise nearly anything (struct.error, KeyError, zlib.error, OverflowError, …), so the net is
    wide; the cause stays chained for whoever has to look deeper.
    """
    try:
        yield
    except (DataError, ImportError):
        raise
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.") from error
    except (PermissionError, IsADirectoryError) as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except MemoryError as error:
        raise DataError(f"{path} is corrupt, or needs more memory than there is ({error or 'no details'}).") from error
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise DataError(f"{path} is corrupt, truncated or not in the format its name says ({reason}).") from error


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Puts the file in front of a DataError that does not name it yet."""
    try:
        yield
    except DataError as error:
        if str(path) in str(error):
            raise
        raise DataError(f"{path}: {error}") from error
