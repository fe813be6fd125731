"""The data folder, and downloads into it."""

import hashlib
import logging
import os
import sys
import time
import urllib.request
import uuid
from dataclasses import dataclass
from pathlib import Path

from ...utils.progress import progress_bar
from ..errors import DataError

VARIABLE = "RECLUST_DATA"
_LOG = logging.getLogger(__name__)
_BLOCK = 1 << 20


@dataclass(frozen=True)
class RemoteFile:
    """A file of a set with its mirrors, tried in turn, and its checksum "md5:…" or "sha256:…"."""

    name: str
    urls: tuple[str, ...] = ()
    checksum: str | None = None

    def verify(self, path: Path) -> None:
        algorithm, _, expected = (self.checksum or "md5:unknown").partition(":")
        found = hashlib.new(algorithm, path.read_bytes(), usedforsecurity=False).hexdigest()
        if found != expected:
            raise DataError(f"{path} is damaged or another file: its {algorithm} is {found}, not "
                            f"{expected}; delete it to download it.")


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the argument, or the folder in RECLUST_DATA, or the platform's cache folder."""
    chosen = folder if folder is not None else os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    home = Path.home()
    if sys.platform == "win32":
        local = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
        return local / "reclust" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "reclust"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "reclust"


def fetch(file: RemoteFile, folder: Path, *, attempts: int = 3, timeout: float = 30.0,
          pause: float = 1.0) -> Path:
    """Download `file` into `folder`, complete and with the right checksum or not at all."""
    failures = []
    for attempt in range(attempts):
        if attempt:
            time.sleep(pause * 2 ** (attempt - 1))
        for url in file.urls:
            try:
                return _download(url, file, folder, timeout)
            except (OSError, DataError) as error:  # URLError and timeouts are OSErrors
                _LOG.info("%s: attempt %d of %d failed: %s", url, attempt + 1, attempts, error)
                failures.append(f"{url}: {error}")
    reasons = "; ".join(dict.fromkeys(failures)) or "it has no address"
    raise DataError(f"{file.name} could not be downloaded: {reasons}.")


def _download(url: str, file: RemoteFile, folder: Path, timeout: float) -> Path:
    # Unlike tempfile's, this file gets the user's default permissions: data folders are shared.
    partial = folder / f".{file.name}.{uuid.uuid4().hex}.part"
    request = urllib.request.Request(url, headers={"User-Agent": "reclust"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            length = int(response.headers.get("Content-Length") or 0)
            folder.mkdir(parents=True, exist_ok=True)  # only once a server has answered
            with open(partial, "xb") as out, progress_bar(
                    length, None, desc=file.name, unit="B", unit_scale=True, leave=False) as bar:
                while block := response.read(_BLOCK):
                    out.write(block)
                    bar.update(len(block))
        if length and partial.stat().st_size != length:
            raise DataError(f"{partial.stat().st_size} of {length} bytes arrived")
        if file.checksum:
            file.verify(partial)
        os.replace(partial, folder / file.name)
    finally:
        partial.unlink(missing_ok=True)
    return folder / file.name
