"""Image files: decoding strangers' files with care, and a folder of them as one array."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import DataError, reading, require

OnError = Literal["raise", "skip"]
T = TypeVar("T")
# Formats that are nothing but pixels; Pillow would start Ghostscript for an EPS file.
FORMATS = ("PNG", "JPEG", "PPM", "BMP", "GIF", "TIFF", "WEBP")
SUFFIXES = {".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".pbm", ".bmp", ".gif", ".tif", ".tiff", ".webp"}
_MOST_PIXELS = 1 << 26
_ORIENTATION = 0x0112
_GREY = {"1", "L", "LA", "I", "I;16", "I;16B"}
_LOG = logging.getLogger(__name__)


def decode(content: bytes, where: str, *, formats: Sequence[str] = FORMATS) -> Any:
    """A Pillow image, completely read, of at most 67 million pixels."""
    image = require("PIL.Image", purpose="Reading images")
    with reading(where):
        opened = image.open(io.BytesIO(content), formats=list(formats))
        if opened.width * opened.height > _MOST_PIXELS:
            raise DataError(
                f"{where} is refused: {opened.width} x {opened.height} pixels, at most {_MOST_PIXELS} are read."
            )
        opened.load()
        return opened


def read_image_folder(
    folder: Path, *, size: Sequence[int] | None = None, on_error: OnError = "raise"
) -> tuple[NDArray[np.uint8], list[str]]:
    """All images below `folder` in the order of their names: (n, h, w) if all are grey, else (n, h, w, 3); their names.

    They are resized (bilinear) to `size` (h, w), by default the size they all have, or 28 x 28 grey and 32 x 32 colour
    where sizes differ; a size (h, w, channels) makes them all grey (1) or colour (3). Files that cannot be read raise an
    error naming them, or with on_error="skip" are left out and logged.
    """
    if size is not None and (len(size) not in (2, 3) or min(size) < 1 or tuple(size[2:]) not in ((), (1,), (3,))):
        raise ValueError(f"size={tuple(size)}; needed: (height, width) or (height, width, channels), 1 or 3 channels.")
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error={on_error!r}; needed: 'raise' or 'skip'.")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not paths:
        raise DataError(f"{folder} holds no images; looked for {', '.join(sorted(SUFFIXES))}.")
    headers, unreadable = _each(paths, _header)
    pixels: dict[Path, NDArray[np.uint8]] = {}
    while headers:
        grey = size[2] == 1 if size is not None and len(size) == 3 else all(is_grey for is_grey, _ in headers.values())
        sizes = {found for _, found in headers.values()}
        height, width = size[:2] if size else sizes.pop() if len(sizes) == 1 else (28, 28) if grey else (32, 32)
        pixels, broken = _each(headers, partial(_pixels, size=(height, width), grey=grey))
        unreadable += broken
        # Rare: a good header and broken pixels. Such a file must not have a say in the mode and size of the others.
        if not broken or on_error == "raise":
            break
        headers = {path: headers[path] for path in pixels}
    _report(unreadable, len(paths), folder, on_error)
    return np.stack(list(pixels.values())), [path.relative_to(folder).as_posix() for path in pixels]


def _each(paths: Iterable[Path], do: Callable[[Path], T]) -> tuple[dict[Path, T], list[str]]:
    """What `do` makes of every path, and the errors of those where it fails."""
    made, errors = {}, []
    for path in paths:
        try:
            made[path] = do(path)
        except DataError as error:
            errors.append(str(error))
    return made, errors


def _header(path: Path) -> tuple[bool, tuple[int, int]]:
    """Whether an image is grey, and its (h, w) the right way up."""
    image = require("PIL.Image", purpose="Reading images")
    with reading(path), image.open(path, formats=list(FORMATS)) as opened:
        if opened.mode == "F":
            raise DataError(f"{path} has floating-point pixels, whose range is unknown; save it with 8 or 16 bits.")
        # Asked only where it is in the header already: otherwise Pillow would decode the image to look behind it.
        known = opened.format == "TIFF" or "exif" in opened.info
        turned = known and opened.getexif().get(_ORIENTATION, 1) >= 5
        return opened.mode in _GREY, (opened.width, opened.height) if turned else (opened.height, opened.width)


def _pixels(path: Path, *, size: tuple[int, int], grey: bool) -> NDArray[np.uint8]:
    image = require("PIL.Image", purpose="Reading images")
    transpose = require("PIL.ImageOps", purpose="Reading images").exif_transpose
    with reading(path):
        if path.stat().st_size > _MOST_PIXELS * 8:
            raise DataError(f"{path} is refused: {path.stat().st_size} bytes are too many for an image.")
        opened = transpose(decode(path.read_bytes(), str(path)))  # cameras store which way up an image is
        if opened.mode.startswith("I"):  # 16 bits; Pillow's own conversion to 8 would cut off at 255
            values = np.asarray(opened).astype(np.int64)
            if values.min() < 0 or values.max() > 65535:
                raise DataError(f"{path} has values {values.min()}..{values.max()}; needed: 8 or 16 bits.")
            opened = image.fromarray((values // 257).astype(np.uint8))
        converted = opened.convert("L" if grey else "RGB")
        if (converted.height, converted.width) != size:
            converted = converted.resize(size[::-1], image.Resampling.BILINEAR)
        return np.asarray(converted)


def _report(unreadable: list[str], n: int, folder: Path, on_error: OnError) -> None:
    if not unreadable:
        return
    shown = " ".join(unreadable[:5]) + (" …" if len(unreadable) > 5 else "")
    if on_error == "raise":
        remedy = "Remove them, or leave them out with on_error='skip' (on the command line --skip-broken)."
        raise DataError(f"{len(unreadable)} of {n} images in {folder} cannot be read. {remedy} {shown}")
    if len(unreadable) == n:
        raise DataError(f"None of the {n} images in {folder} can be read. {shown}")
    _LOG.warning("%d of %d images in %s cannot be read and are left out: %s", len(unreadable), n, folder, shown)
