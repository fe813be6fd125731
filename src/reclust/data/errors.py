"""Errors of reading data."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class DataError(ValueError):
    """Raised for data that is missing, damaged or of the wrong kind."""


@contextmanager
def explain_read_errors(path: Path | str) -> Iterator[None]:
    """Turn whatever a parser raises on a broken file into a DataError that names the file."""
    try:
        yield
    except (DataError, ImportError):
        raise
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except Exception as error:
        raise DataError(
            f"{path} is damaged, truncated, too large for the memory or not in the format its name "
            f"says ({type(error).__name__}: {error!s:.1000}).") from error


def check_size(path: Path | str, content: int, size: int, times: int = 1100) -> None:
    """Raise if a file of `size` bytes claims more content than DEFLATE, or `times`, explains."""
    if content > 2**23 + times * size:
        raise DataError(f"{path} has {size} bytes but claims to hold {content}: it is damaged, or "
                        "holds the same value almost everywhere.")


def listed(words: Iterable[str]) -> str:
    """Join the first ten words, of which long ones are cut."""
    first = [f"{word:.80}" for word in words]
    return ", ".join(first[:10]) + " …" * (len(first) > 10)
