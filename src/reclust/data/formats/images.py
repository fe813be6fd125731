"""Image files, one or a folder of them, as one array."""

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...utils.exceptions import printable, require, warn
from ..errors import DataError, check_size, explain_read_errors

OnError = Literal["raise", "skip"]
T = TypeVar("T")
# Pillow would start Ghostscript for an EPS file.
FORMATS = ("PNG", "JPEG", "PPM", "BMP", "GIF", "TIFF", "WEBP")
SUFFIXES = {".png", ".jpg", ".jpeg", ".jfif", ".ppm", ".pgm", ".pbm", ".bmp", ".gif", ".tif",
            ".tiff", ".webp"}
# Photos for which Pillow needs plugins, and raw ones, of which it would read a preview.
UNSUPPORTED = {".heic", ".heif", ".avif", ".jxl", ".cr2", ".cr3", ".nef", ".arw", ".dng"}
_LARGE = 1 << 14  # pixels above which a smaller size is recommended
_ORIENTATION = 0x0112
_GRAY = {"1", "L", "LA", "I", "I;16", "I;16B"}
_PAGED = {"GIF", "TIFF", "WEBP", "PNG"}  # not JPEG: photos of many phones contain previews
_LOG = logging.getLogger(__name__)


class _Header(NamedTuple):
    gray: bool
    deep: bool  # more than 8 bits, read as float32
    size: tuple[int, int]  # upright (h, w)
    paged: bool  # more pages or frames follow


def holds_images(path: str | os.PathLike[str]) -> bool:
    path = Path(path).expanduser()
    return path.is_dir() or (path.suffix.lower() in SUFFIXES and path.is_file())


def read_images(place: Path, *, size: Sequence[int] | None = None,
                on_error: OnError = "raise") -> tuple[NDArray[Any], list[str]]:
    """Read one image, or all images below a folder in the order of their names.

    Returns (n, h, w) if all are gray, else (n, h, w, 3), and the file names. Values are 0..255:
    bytes, or float32 with fractions for images of 16 bits, so that a model fitted on either kind
    takes the other. Transparent pixels are white. Images are resized (bilinear) to `size`, (h, w)
    or (h, w, channels); by default to their common size, or if sizes differ to 28 x 28 (gray) or
    32 x 32 (color). Unreadable files raise an error, or are left out with on_error="skip".
    """
    if size is not None and (len(size) not in (2, 3) or min(size) < 1
                             or tuple(size[2:]) not in ((), (1,), (3,))):
        raise ValueError(f"size={tuple(size)}; needed: (height, width) or (height, width, 1 or 3).")
    paths = _paths(place)
    folder = place if place.is_dir() else place.parent
    headers, errors = _each(paths, _header)
    pixels: dict[Path, NDArray[Any]] = {}
    while headers:
        gray = (size[2] == 1 if size is not None and len(size) == 3
                else all(header.gray for header in headers.values()))
        sizes = {header.size for header in headers.values()}
        common = sizes.pop() if len(sizes) == 1 else (28, 28) if gray else (32, 32)
        height, width = size[:2] if size else common
        if size is None:
            depth = 4 if any(header.deep for header in headers.values()) else 1
            content = len(headers) * height * width * depth * (1 if gray else 3)
            check_size(folder, content, sum(path.stat().st_size for path in headers))
        pixels, broken = _each(headers, partial(_pixels, size=(height, width), gray=gray))
        errors += broken
        # A file with a good header and broken pixels must not decide the mode and size of others.
        if not broken or on_error == "raise":
            break
        headers = {path: headers[path] for path in pixels}
    _report(errors, len(paths), folder, on_error)
    names = [path.relative_to(folder).as_posix() for path in pixels]
    paged = [name for name, path in zip(names, pixels, strict=True) if headers[path].paged]
    if paged:
        warn(f"{len(paged)} of {len(names)} images in {folder} hold several pages or frames, of "
             f"which only the first is read, such as {paged[0]}.")
    if size is None and height * width > _LARGE:
        warn(f"The images in {folder} keep their size of {height} x {width}, which takes much time "
             "and memory: a smaller one often works as well, such as size=(64, 64) (--size 64 64).")
    return np.stack(list(pixels.values())), names  # bytes and floats together become floats


def _paths(place: Path) -> list[Path]:
    paths = sorted(find_images(place)) if place.is_dir() else [place]
    supported = [path for path in paths if path.suffix.lower() not in UNSUPPORTED]
    endings = sorted({path.suffix.lower() for path in paths} & UNSUPPORTED)
    left_out = (f"{len(paths) - len(supported)} photos in {place} are left out because of their "
                f"format ({', '.join(endings)}): convert them to JPEG or PNG first.")
    if not supported:
        raise DataError(f"{place} holds no images; looked for {', '.join(sorted(SUFFIXES))}. "
                        + (left_out if endings else ""))
    if endings:
        warn(left_out)
    return supported


def find_images(folder: Path) -> Iterator[Path]:
    """Find files named as images in each folder once, links followed, hidden ones skipped."""
    waiting, seen = deque([folder]), set()
    while waiting:
        here = waiting.popleft()
        try:
            place = here.stat()
            is_folder = {path: path.is_dir() for path in here.iterdir() if path.name[0] != "."}
        except PermissionError:
            yield here  # which is broken, like an image that cannot be read
            continue
        if (place.st_dev, place.st_ino) in seen:
            continue
        seen.add((place.st_dev, place.st_ino))
        for path in is_folder:
            if is_folder[path]:  # links last, so that a folder keeps its own name
                (waiting.append if path.is_symlink() else waiting.appendleft)(path)
            elif path.suffix.lower() in SUFFIXES | UNSUPPORTED:
                yield path


def _each(paths: Iterable[Path], read: Callable[[Path], T]) -> tuple[dict[Path, T], list[str]]:
    results, errors = {}, []
    for path in paths:
        try:
            results[path] = read(path)
        except DataError as error:
            errors.append(str(error))
    return results, errors


def _header(path: Path) -> _Header:
    image = require("PIL.Image", purpose="Reading images")
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is no regular file, or a folder that may not be opened.")
    with explain_read_errors(path), image.open(path, formats=list(FORMATS)) as opened:
        gray, deep = opened.mode in _GRAY, opened.mode.startswith("I")
        depth = 16 if deep or _has_alpha(opened) else 1 if gray else 4  # while it is converted
        tags = getattr(opened, "tag_v2", {})  # tiles of a TIFF may be larger than the image
        pixels = max(opened.width * opened.height, tags.get(322, 1) * tags.get(323, 1))
        check_size(path, depth * pixels, path.stat().st_size)
        if opened.mode == "F":
            raise DataError(f"{path} has floating-point pixels; save it with 8 or 16 bits.")
        # Without these, getexif() would decode the whole image.
        has_exif = opened.format == "TIFF" or "exif" in opened.info
        turned = has_exif and opened.getexif().get(_ORIENTATION, 1) >= 5
        size = (opened.width, opened.height) if turned else (opened.height, opened.width)
        paged = opened.format in _PAGED and bool(opened.is_animated)
        return _Header(gray, deep, size, paged)


def _pixels(path: Path, *, size: tuple[int, int], gray: bool) -> NDArray[Any]:
    """Return (h, w) or (h, w, 3) in 0..255: bytes, or float32 for images of 16 bits."""
    image = require("PIL.Image", purpose="Reading images")
    upright = require("PIL.ImageOps", purpose="Reading images").exif_transpose
    with explain_read_errors(path), image.open(path, formats=list(FORMATS)) as opened:
        upright(opened, in_place=True)
        shown, deep = opened, opened.mode.startswith("I")
        if _has_alpha(opened):  # on white, since the color under full transparency is arbitrary
            shown = opened.convert("RGBA")
            shown = image.alpha_composite(image.new("RGBA", shown.size, "white"), shown)
        converted = (image.fromarray(_sixteen_bits(opened, path)) if deep
                     else shown.convert("L" if gray else "RGB"))
        if (converted.height, converted.width) != size:
            converted = converted.resize(size[::-1], image.Resampling.BILINEAR)
        values = np.asarray(converted)
        if not deep:
            return values
        values = values.clip(0, 255)  # resizing floats rounds
        return values if gray else np.repeat(values[..., None], 3, axis=2)


def _sixteen_bits(opened: Any, path: Path) -> NDArray[np.float32]:
    """Scale 16 bits to 0..255 without rounding; Pillow's conversion to 8 bits clips at 255."""
    values = np.asarray(opened).astype(np.int64)
    if values.min() < 0 or values.max() > 65535:
        raise DataError(f"{path} has values {values.min()}..{values.max()}; needed: 0..65535. "
                        "Convert it, or read it yourself and give an array (n, h, w).")
    return values.astype(np.float32) / np.float32(257)


def _has_alpha(opened: Any) -> bool:
    return opened.mode in ("RGBA", "LA", "PA") or "transparency" in opened.info


def _report(errors: list[str], n: int, folder: Path, on_error: OnError) -> None:
    if not errors:
        return
    shown = printable(" ".join(errors[:5])) + " …" * (len(errors) > 5)
    if len(errors) == n:
        raise DataError(f"None of the {n} images in {folder} can be read. {shown}")
    if on_error == "raise":
        raise DataError(f"{len(errors)} of {n} images in {folder} cannot be read. Remove them, or "
                        f"use on_error='skip' (on the command line --skip-broken). {shown}")
    _LOG.warning("%d of %d images in %s cannot be read and are left out: %s", len(errors), n,
                 folder, shown)
