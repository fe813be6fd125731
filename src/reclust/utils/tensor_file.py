"""Files of tensors with a JSON header and a checksum, as docs/reference/files.md describes."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors.torch import load, save
from torch import Tensor

from .files import write_bytes

MOST_LISTS = 2**18  # with three for each tensor, which takes about 1.3 KB of memory
FORMAT = 2  # format 1 had no checksum
_LENGTH = 8  # bytes at the start of a file that hold the length of its header
_BLANK = "0" * 64


def write(path: str | os.PathLike[str], kind: str, header: dict[str, Any],
          tensors: dict[str, Tensor], *, previous: Path | None = None) -> None:
    """Write the file atomically, keeping the old one at `previous` if given."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {"format": FORMAT, "kind": kind, **header}
    content = bytearray(save(plain, {"reclust": json.dumps(header), "sha256": _BLANK}))
    start = content.index(_field(_BLANK), _LENGTH, _header_end(content))
    checksum = _field(hashlib.sha256(content).hexdigest())
    content[start : start + len(checksum)] = checksum
    write_bytes(path, content, previous=previous)


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the header and the tensors that `write` stored as this kind of content."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    content = path.read_bytes()
    with explain_errors(path, "is damaged or not a reclust file"):
        start = content[_LENGTH : _header_end(content)]
        if start.count(b"[") + start.count(b"{") > MOST_LISTS:
            raise ValueError("its header holds too many lists")
        tensors = load(content)
        metadata = json.loads(start)["__metadata__"]
        header = json.loads(metadata["reclust"])
        stored_format, stored_kind = header["format"], header["kind"]
    if stored_format not in (1, FORMAT):
        raise ValueError(f"{path} has format {stored_format!r}; this reclust reads {FORMAT}.")
    if stored_format > 1 and not _is_intact(content, metadata.get("sha256", "")):
        raise ValueError(f"{path} is damaged or not a reclust file: its checksum does not match.")
    if stored_kind != kind:
        raise ValueError(f"{path} holds a {stored_kind}, not a {kind}: `reclust.load` reads "
                         "models, `Result.load` results.")
    return header, tensors


@contextmanager
def explain_errors(path: str | os.PathLike[str], problem: str = "cannot be used") -> Iterator[None]:
    """Turn whatever is raised while the content of a file is interpreted into a ValueError."""
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:  # a malformed file may raise anything
        reason = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"{path} {problem}: {str(reason):.1000}") from error


def _field(checksum: str) -> bytes:
    return b'"sha256":"%s"' % checksum.encode()  # quotes elsewhere in the header are escaped


def _header_end(content: bytes | bytearray) -> int:
    return _LENGTH + int.from_bytes(content[:_LENGTH], "little")


def _is_intact(content: bytes, checksum: str) -> bool:
    """Compare the checksum with that of the file before the checksum was filled in."""
    end = _header_end(content)
    digest = hashlib.sha256(content[:end].replace(_field(checksum), _field(_BLANK), 1))
    digest.update(memoryview(content)[end:])
    return digest.hexdigest() == checksum
