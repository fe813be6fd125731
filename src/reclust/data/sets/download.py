"""Where data files live, and how missing ones get there.

Downloads use the standard library alone: `load("mnist")` then works on a bare installation, mirrors are tried in turn,
and a file that is too long, too short or of the wrong checksum never appears under its name.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import time
import urllib.request
import uuid
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from ..errors import DataError

VARIABLE = "RECLUST_DATA"
_LOG = logging.getLogger(__name__)
_BLOCK = 1 << 20
_LARGEST = 1 << 30  # no named set has a file of a gibibyte


@dataclass(frozen=True)
class RemoteFile:
    """A file of a data set: its name, its addresses (the first that answers serves), "md5:…" or "sha256:…" of it."""

    name: str
    urls: tuple[str, ...] = ()
    checksum: str | None = None


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """The data folder: the argument, else the variable RECLUST_DATA, else reclust's folder in the platform's cache."""
    chosen = folder if folder is not None else os.environ.get(VARIABLE)
    return Path(chosen).expanduser() if chosen else _cache_folder()


def check_data_folder(folder: str | os.PathLike[str] | None) -> None:
    """Refuse a folder that was named and is none: a typo would be made and filled with downloads."""
    if folder is None or data_folder(folder).is_dir():
        return
    if data_folder(folder).exists():
        raise DataError(f"{folder} is a file: name the folder that data sets are in.")
    raise DataError(f"There is no folder {folder} to look for data sets in: make it first, or name another one.")


def fetch(file: RemoteFile, folder: Path, *, attempts: int = 3, timeout: float = 30.0, pause: float = 1.0) -> Path:
    """Download `file` into `folder`, whole and with the right checksum or not at all."""
    target, failures = folder / file.name, []
    for attempt in range(attempts):
        if attempt:
            time.sleep(pause * 2 ** (attempt - 1))
        for url in file.urls:
            try:
                return _download(url, target, checksum=file.checksum, timeout=timeout)
            except (
                OSError,
                ValueError,
            ) as error:  # URLError and timeouts are OSErrors; ValueError: wrong length or checksum
                _LOG.info("%s: attempt %d of %d failed: %s", url, attempt + 1, attempts, error)
                failures.append(f"{url}: {error}")
    raise DataError(
        f"{file.name} could not be downloaded: {'; '.join(dict.fromkeys(failures)) or 'it has no address'}."
    )


def _download(url: str, target: Path, *, checksum: str | None, timeout: float) -> Path:
    # Unlike a file of the tempfile module this one gets the user's usual permissions: data folders are often shared.
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    algorithm, _, expected = (checksum or "md5:").partition(":")
    digest, received = hashlib.new(algorithm, usedforsecurity=False), 0
    request = urllib.request.Request(url, headers={"User-Agent": "reclust"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            length = response.headers.get("Content-Length")
            announced = int(length) if length else None
            target.parent.mkdir(parents=True, exist_ok=True)  # not before somebody answers: an empty folder helps nobody
            with (
                open(partial, "xb") as out,
                tqdm(total=announced, unit="B", unit_scale=True, desc=target.name, disable=None, leave=False) as bar,
            ):
                while block := response.read(_BLOCK):
                    received += len(block)
                    if received > _LARGEST:
                        raise ValueError(f"more than {_LARGEST} bytes came")
                    digest.update(block)
                    out.write(block)
                    bar.update(len(block))
        if announced is not None and received != announced:
            raise ValueError(f"{received} of {announced} bytes came")
        if expected and digest.hexdigest() != expected:
            raise ValueError(f"{algorithm} is {digest.hexdigest()}, it should be {expected}")
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def _cache_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "reclust" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "reclust"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reclust"
