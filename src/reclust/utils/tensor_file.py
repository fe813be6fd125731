"""One file of tensors with a JSON header (safetensors), written whole or not at all, read without pickle.

docs/files.md describes the format. A checksum over the whole file tells damage; nothing in a file is ever executed, and no
more memory is taken than a small multiple of the file's own size.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors.torch import load, save
from torch import Tensor

from .files import check_folder, write_bytes

FORMAT = 2
READABLE = (1, 2)
"""Format 1 had no checksum."""

_LENGTH = 8
"""Bytes at the start of a file that say how long its header is."""


def write(path: str | os.PathLike[str], kind: str, header: dict[str, Any], tensors: dict[str, Tensor], *,
          previous: Path | None = None) -> None:
    """Whole or not at all. previous: where to keep what was at `path` before."""
    check_folder(path)
    content = bytearray(save(
        {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
        metadata={"reclust": json.dumps({"format": FORMAT, "kind": kind, **header}), "sha256": _BLANK},
    ))
    end = _header_end(content)
    start = content.index(_field(_BLANK), _LENGTH, end)
    content[start : start + len(_field(_BLANK))] = _field(hashlib.sha256(content).hexdigest())
    write_bytes(path, content, previous=previous)


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and the tensors of a file that `write` made for the same kind of content."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    content = path.read_bytes()
    try:
        tensors = load(content)  # checks that names, shapes and sizes go with the content before it takes memory
        metadata = json.loads(content[_LENGTH : _header_end(content)]).get("__metadata__", {})
        header = json.loads(metadata.get("reclust", "null"))
    except MemoryError:
        raise
    except Exception as error:  # of a hostile file, every step may raise anything
        raise ValueError(f"{path} is damaged or not a reclust file: {error}") from error
    if not isinstance(header, dict) or "kind" not in header:
        raise ValueError(f"{path} is not a reclust file: it has no reclust header.")
    if header.get("format") not in READABLE:
        raise ValueError(f"{path} has format {header.get('format')!r}; this version of reclust reads format {FORMAT}.")
    if header["format"] > 1 and not _is_sealed(content, metadata.get("sha256", "")):
        raise ValueError(f"{path} is damaged or not a reclust file: its checksum is not that of its content.")
    if header["kind"] != kind:
        raise ValueError(f"{path} holds a {header['kind']}, not a {kind}: `reclust.load` reads models, `Result.load` results.")
    return header, tensors


@contextmanager
def understood(path: str | os.PathLike[str]) -> Iterator[None]:
    """PeriodicMonitor whatever is made of the content of a file: what cannot be understood is one kind of error, with its cause."""
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:  # of a hostile file, every step may raise anything
        said = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"{path} cannot be used: {said}") from error


_BLANK = "0" * 64


def _field(checksum: str) -> bytes:
    """How the checksum stands in the header. The same words within the other metadata would have backslashes."""
    return b'"sha256":"%s"' % checksum.encode()


def _header_end(content: bytes | bytearray) -> int:
    return _LENGTH + int.from_bytes(content[:_LENGTH], "little")


def _is_sealed(content: bytes, checksum: str) -> bool:
    """Whether the checksum is that of the file as it was before the checksum was filled in."""
    end = _header_end(content)
    digest = hashlib.sha256(content[:end].replace(_field(checksum), _field(_BLANK), 1))
    digest.update(memoryview(content)[end:])
    return digest.hexdigest() == checksum
