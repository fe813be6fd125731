"""One file of tensors with a JSON header (safetensors), written whole or not at all, read without pickle."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

FORMAT = 1


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise what would stop `write` for want of a folder."""
    folder, name = Path(path).parent, Path(path).name
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder} to write {name} into: make it first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"The folder {folder} is read-only, {name} cannot be written into it: choose another one.")


def write(path: str | os.PathLike[str], kind: str, header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write to a temporary file beside `path`, sync it to the disk, then rename: a crash leaves the old file or the new one."""
    check_folder(path)
    write_bytes(path, save(
        {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
        metadata={"reclust": json.dumps({"format": FORMAT, "kind": kind, **header})},
    ))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """All of the content or nothing, as `write` promises."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and the tensors of a file that `write` made for the same kind of content."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get("reclust", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path} is damaged or not a reclust file: {error}") from error
    if not isinstance(header, dict) or "kind" not in header:
        raise ValueError(f"{path} is not a reclust file: it has no reclust header.")
    if header.get("format") != FORMAT:
        raise ValueError(f"{path} has format {header.get('format')!r}; this version of reclust reads format {FORMAT}.")
    if header["kind"] != kind:
        raise ValueError(f"{path} holds a {header['kind']}, not a {kind}.")
    return header, tensors
