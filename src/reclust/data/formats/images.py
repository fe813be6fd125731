"""Image files: decoding strangers' files with care, and a folder of them as one array."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...utils.exceptions import warn
from ..errors import DataError, reading, require

OnError = Literal["raise", "skip"]
T = TypeVar("T")
# Formats that are nothing but pixels; Pillow would start Ghostscript for an EPS file.
FORMATS = ("PNG", "JPEG", "PPM", "BMP", "GIF", "TIFF", "WEBP")
SUFFIXES = {".png", ".jpg", ".jpeg", ".jfif", ".ppm", ".pgm", ".pbm", ".bmp", ".gif", ".tif", ".tiff", ".webp"}
UNREAD = {".heic", ".heif", ".avif", ".jxl", ".cr2", ".cr3", ".nef", ".arw", ".dng"}
"""Endings of photos for which Pillow needs plugins, and of raw ones, of which it would read a preview."""
_MOST_PIXELS = 1 << 26
_LARGE = 1 << 14
"""Pixels of images that are told to be large: a network's first layer has a weight for each of them, five hundred times."""
_ORIENTATION, _PHOTOMETRIC, _SAMPLE_FORMAT = 0x0112, 262, 339
_GREY = {"1", "L", "LA", "I", "I;16", "I;16B"}
_PAGED = {"GIF", "TIFF", "WEBP", "PNG"}  # not JPEG: behind the photographs of many telephones are previews of them
_LOG = logging.getLogger(__name__)


class _Header(NamedTuple):
    """size: (h, w) the right way up. paged: whether more images follow the first. halved: whether Pillow reads 8 of 16 bits."""

    grey: bool
    size: tuple[int, int]
    paged: bool
    halved: bool


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


def holds_images(path: str | os.PathLike[str]) -> bool:
    """Whether there is a folder, or a file that is named as an image."""
    path = Path(path).expanduser()
    return path.is_dir() or (path.suffix.lower() in SUFFIXES and path.is_file())


def read_images(
    place: Path, *, size: Sequence[int] | None = None, on_error: OnError = "raise"
) -> tuple[NDArray[Any], list[str]]:
    """All images below a folder in the order of their names: (n, h, w) if all are grey, else (n, h, w, 3); their names. Or a
    single image, if the place is a file.

    Values are 0..255, as bytes, or as float32 with fractions where an image has 16 bits: nothing is lost, and a model fitted
    on either kind can take the other. What is transparent is white. They are resized (bilinear) to `size` (h, w), by default
    the size they all have, or 28 x 28 grey and 32 x 32 colour where sizes differ; a size (h, w, channels) makes them all
    grey (1) or colour (3). Files that cannot be read raise an error naming them, or with on_error="skip" are left out and
    logged; those whose names start with a dot are not looked at.
    """
    if size is not None and (len(size) not in (2, 3) or min(size) < 1 or tuple(size[2:]) not in ((), (1,), (3,))):
        raise ValueError(f"size={tuple(size)}; needed: (height, width) or (height, width, channels), 1 or 3 channels.")
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error={on_error!r}; needed: 'raise' or 'skip'.")
    folder, found = (place, sorted(_found(place))) if place.is_dir() else (place.parent, [place])
    paths = [path for path in found if path.suffix.lower() not in UNREAD]
    unread = [path for path in found if path.suffix.lower() in UNREAD]
    if not paths:
        raise DataError(f"{folder} holds no images; looked for {', '.join(sorted(SUFFIXES))}." + _left_out(unread, folder))
    if unread:
        warn(_left_out(unread, folder).strip())
    headers, unreadable = _each(paths, _header)
    pixels: dict[Path, NDArray[Any]] = {}
    while headers:
        grey = size[2] == 1 if size is not None and len(size) == 3 else all(found.grey for found in headers.values())
        sizes = {found.size for found in headers.values()}
        height, width = size[:2] if size else sizes.pop() if len(sizes) == 1 else (28, 28) if grey else (32, 32)
        pixels, broken = _each(headers, partial(_pixels, size=(height, width), grey=grey))
        unreadable += broken
        # Rare: a good header and broken pixels. Such a file must not have a say in the mode and size of the others.
        if not broken or on_error == "raise":
            break
        headers = {path: headers[path] for path in pixels}
    _report(unreadable, len(paths), folder, on_error)
    names = [path.relative_to(folder).as_posix() for path in pixels]
    _warn_of_losses(names, [headers[path] for path in pixels], folder)
    if size is None and height * width > _LARGE:
        warn(f"The images in {folder} are kept at their size of {height} x {width}, which takes much time and memory: a "
             "smaller one, such as size=(64, 64), on the command line --size 64 64, often shows as much.")
    return np.stack(list(pixels.values())), names  # bytes and floats together become floats


def _found(folder: Path) -> Iterator[Path]:
    """Files named as images below a folder, also by links, which may lead nowhere. Those whose names begin with a dot are put
    there by programs for themselves: by macOS its ._x.png, which are no images, by Jupyter its copies of files."""
    for place, folders, files in os.walk(folder, followlinks=True):
        here = Path(place)
        folders[:] = [name for name in folders if not name.startswith(".")
                      and (here / name).resolve() not in (here.resolve(), *here.resolve().parents)]  # no link into itself
        for path in (here / name for name in files if not name.startswith(".")):
            if path.suffix.lower() in SUFFIXES | UNREAD and (path.is_file() or path.is_symlink()):
                yield path


def _left_out(unread: Sequence[Path], folder: Path) -> str:
    if not unread:
        return ""
    endings = ", ".join(sorted({path.suffix.lower() for path in unread}))
    return (f" {len(unread)} photos in {folder} are left out, in formats that are not read ({endings}): convert them to JPEG "
            "or PNG first.")


def _each(paths: Iterable[Path], do: Callable[[Path], T]) -> tuple[dict[Path, T], list[str]]:
    """What `do` makes of every path, and the errors of those where it fails."""
    made, errors = {}, []
    for path in paths:
        try:
            made[path] = do(path)
        except DataError as error:
            errors.append(str(error))
    return made, errors


def _header(path: Path) -> _Header:
    image = require("PIL.Image", purpose="Reading images")
    with reading(path), image.open(path, formats=list(FORMATS)) as opened:
        if opened.mode == "F":
            raise DataError(f"{path} has floating-point pixels, whose range is unknown; save it with 8 or 16 bits.")
        if opened.format == "TIFF" and opened.mode == "L" and opened.tag_v2.get(_SAMPLE_FORMAT) == (2,):
            raise DataError(f"{path} has signed pixels of 8 bits, which are read as unsigned; add 128 and save it as such.")
        # Asked only where it is in the header already: otherwise Pillow would decode the image to look behind it.
        known = opened.format == "TIFF" or "exif" in opened.info
        turned = known and opened.getexif().get(_ORIENTATION, 1) >= 5
        size = (opened.width, opened.height) if turned else (opened.height, opened.width)
        halved = not opened.mode.startswith("I") and ";16" in str(opened.tile)
        paged = opened.format in _PAGED and bool(opened.is_animated)
        return _Header(opened.mode in _GREY, size, paged, halved)


def _pixels(path: Path, *, size: tuple[int, int], grey: bool) -> NDArray[Any]:
    """(h, w) or (h, w, 3) in 0..255: bytes, or float32 where an image has 16 bits."""
    image = require("PIL.Image", purpose="Reading images")
    transpose = require("PIL.ImageOps", purpose="Reading images").exif_transpose
    with reading(path):
        if path.stat().st_size > _MOST_PIXELS * 8:
            raise DataError(f"{path} is refused: {path.stat().st_size} bytes are too many for an image.")
        decoded = decode(path.read_bytes(), str(path))
        # Of 8 bits Pillow turns these over itself.
        white_is_zero = decoded.format == "TIFF" and decoded.tag_v2.get(_PHOTOMETRIC) == 0
        opened = transpose(decoded)  # cameras store which way up an image is
        deep = opened.mode.startswith("I")
        converted = (image.fromarray(_sixteen_bits(opened, path, white_is_zero)) if deep
                     else _on_white(opened).convert("L" if grey else "RGB"))
        if (converted.height, converted.width) != size:
            converted = converted.resize(size[::-1], image.Resampling.BILINEAR)
        values = np.asarray(converted)
        if not deep:
            return values
        values = values.clip(0, 255)  # resizing floats rounds
        return values if grey else np.repeat(values[..., None], 3, axis=2)


def _sixteen_bits(opened: Any, path: Path, white_is_zero: bool) -> NDArray[np.float32]:
    """Grey values of 16 bits in 0..255, all 65536 of them apart; Pillow's own conversion to 8 bits would cut off at 255."""
    values = np.asarray(opened).astype(np.int64)
    if values.min() < 0 or values.max() > 65535:
        raise DataError(f"{path} has values {values.min()}..{values.max()}; needed: 0..65535. Save it with others, or give an "
                        "array (n, h, w) of what was read in another way, in which any numbers are fine.")
    return (65535 - values if white_is_zero else values).astype(np.float32) / np.float32(257)


def _on_white(opened: Any) -> Any:
    """The image as it is seen on white paper: what colour lies under full transparency is arbitrary."""
    image = require("PIL.Image", purpose="Reading images")
    if opened.mode not in ("RGBA", "LA", "PA") and "transparency" not in opened.info:
        return opened
    visible = opened.convert("RGBA")
    return image.alpha_composite(image.new("RGBA", visible.size, "white"), visible)


def _warn_of_losses(names: Sequence[str], headers: Sequence[_Header], folder: Path) -> None:
    for losing, what in (
        ([found.paged for found in headers], "hold several pages or frames, of which only the first is read; save the others "
                                             "as files of their own if they are samples too"),
        ([found.halved for found in headers], "have 16 bits a colour, of which Pillow reads the upper 8; save them in grey, or "
                                              "read them otherwise and give an array, if the lower ones matter"),
    ):
        if any(losing):
            warn(f"{sum(losing)} of {len(names)} images in {folder} {what}. The first is {names[losing.index(True)]}.")


def _report(unreadable: list[str], n: int, folder: Path, on_error: OnError) -> None:
    if not unreadable:
        return
    shown = " ".join(unreadable[:5]) + (" …" if len(unreadable) > 5 else "")
    if len(unreadable) == n:
        raise DataError(f"None of the {n} images in {folder} can be read. {shown}")
    if on_error == "raise":
        remedy = "Remove them, or leave them out with on_error='skip' (on the command line --skip-broken)."
        raise DataError(f"{len(unreadable)} of {n} images in {folder} cannot be read. {remedy} {shown}")
    _LOG.warning("%d of %d images in %s cannot be read and are left out: %s", len(unreadable), n, folder, shown)
