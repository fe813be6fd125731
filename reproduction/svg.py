"""Figures of pages as small files with the same bytes on every machine."""

import hashlib
import re
from pathlib import Path

from reclust.utils.files import write_text

LONG_PATH = 400  # characters from which the coordinates of a path are rounded to tenths
_COORDINATES, _DIGITS = re.compile(r'\b(?:d|x|y)="[^"]*"'), re.compile(r"-?\d+\.\d{3,}")
_IDENTIFIER = re.compile(r'(?<=["#])([A-Za-z]\w*)[0-9a-f]{10}(?=["()])')


def rewrite(path: Path) -> None:
    write_text(path, renumber(shorten(path.read_text(encoding="utf-8"))))


def shorten(svg: str) -> str:
    """Round coordinates to hundredths of a point, and to tenths in long paths: half the size."""

    def rounded(path: re.Match[str]) -> str:
        digits = 1 if len(path[0]) > LONG_PATH else 2
        return _DIGITS.sub(lambda number: f"{float(number[0]):.{digits}f}", path[0])

    return _COORDINATES.sub(rounded, svg)


def renumber(svg: str) -> str:
    """Replace identifiers, which are digests of coordinates and so depend on the processor."""
    seen: dict[str, int] = {}
    picture = hashlib.sha256(_IDENTIFIER.sub(r"\1", svg).encode()).hexdigest()[:8]
    return _IDENTIFIER.sub(
        lambda match: f"{match[1]}{seen.setdefault(match[0], len(seen))}_{picture}", svg)
