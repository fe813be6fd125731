"""`reclust doctor`: check this installation without using the network."""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from ..data import names
from ..version import __version__
from .arguments import add_command, add_options
from .data import status
from .output import show


@dataclass(frozen=True)
class Check:
    """One line of the output; `missing` things are optional."""

    area: Literal["versions", "devices", "folders", "data", "extras"]
    name: str
    state: Literal["fine", "missing", "broken"]
    note: str


def add(commands: argparse._SubParsersAction) -> None:
    parser = add_command(commands, "doctor", _doctor,
                         "check this installation: versions, devices, folders, data, extras",
                         "The exit code is 1 if something required is broken.")
    add_options(parser, "--folder", "--json")


def _doctor(arguments: argparse.Namespace) -> int:
    checks = examine(folder=arguments.folder)
    show([asdict(check) for check in checks], as_json=arguments.json)
    broken = [check.name for check in checks if check.state == "broken"]
    if not arguments.json:
        print(f"\nbroken: {', '.join(broken)}" if broken else "\nnothing is broken")
    return 1 if broken else 0


def examine(*, folder: str | os.PathLike[str] | None = None) -> list[Check]:
    return [*_versions(), *_devices(), *_folders(folder), *_data(folder), *_extras()]


def _versions() -> Iterator[Check]:
    system = f"{platform.system()} {platform.machine()}"
    yield Check("versions", "reclust", "fine", __version__)
    yield Check("versions", "python", "fine", f"{platform.python_version()} on {system}")
    for package in _requirements().get("", []):
        version = _version(package)
        yield Check("versions", package, "broken" if version is None else "fine",
                    version or f"not installed: pip install {package}")


def _devices() -> Iterator[Check]:
    import torch

    yield Check("devices", "cpu", "fine", f"{os.cpu_count()} cores, {torch.get_num_threads()} "
                f"threads, {torch.backends.cpu.get_cpu_capability()}")
    for i in range(torch.cuda.device_count()):
        try:
            torch.ones(1, device=f"cuda:{i}").sum().item()
            gpu = torch.cuda.get_device_properties(i)
            note = f"{gpu.name}, {gpu.total_memory / 2**30:.0f} GiB"
            yield Check("devices", f"cuda:{i}", "fine", note)
        except RuntimeError as error:
            yield Check("devices", f"cuda:{i}", "broken", f"{str(error).splitlines()[0]}: use "
                        "device='cpu', or a torch built for this driver")
    if not torch.cuda.device_count():
        yield Check("devices", "cuda", "missing", "no GPU: everything runs on the CPU")
    triton = _version("triton")
    yield Check("devices", "triton", "fine" if triton else "missing",
                triton or "faster on a GPU, not required")
    compiler = next(filter(shutil.which, ("c++", "g++", "clang++")), None)
    yield Check("devices", "torch.compile", "fine" if compiler else "missing",
                compiler or "no C++ compiler: residual networks train without torch.compile")


def _folders(folder: str | os.PathLike[str] | None) -> Iterator[Check]:
    from ..data.sets.download import data_folder

    for name, path in (("data", data_folder(folder)), ("work", Path.cwd()),
                       ("temporary", Path(tempfile.gettempdir()))):
        existing = next(parent for parent in (path, *path.parents) if parent.exists())
        try:
            with tempfile.TemporaryFile(dir=existing):
                pass
            note = str(path) if path.exists() else f"{path} (created when needed)"
            yield Check("folders", name, "fine", note)
        except OSError as error:
            variable = "set RECLUST_DATA to another folder" if name == "data" else "use another"
            note = f"cannot write to {path} ({error.strerror}): {variable}"
            yield Check("folders", name, "broken", note)


def _data(folder: str | os.PathLike[str] | None) -> Iterator[Check]:
    for name in names():
        found = status(name, folder, download=False)
        state, note = found["state"], found["note"]
        if state == "complete":
            yield Check("data", name, "fine", f"{found['samples']} samples")
        else:
            delete = "delete it, then run" if state == "broken" else "to download it"
            yield Check("data", name, state, f"{note} ({delete}: reclust data fetch {name})")


def _extras() -> Iterator[Check]:
    for extra, packages in sorted(_requirements().items()):
        if not extra:
            continue
        missing = [package for package in packages if _version(package) is None]
        yield Check("extras", extra, "missing" if missing else "fine",
                    f"without {', '.join(missing)}: pip install 'reclust[{extra}]'" if missing else
                    ", ".join(f"{package} {_version(package)}" for package in packages))


def _requirements() -> dict[str, list[str]]:
    """Group required packages by extra, with "" for the core."""
    required: dict[str, list[str]] = {}
    lines: list[str] = []
    with suppress(metadata.PackageNotFoundError):  # not installed, only on the path
        lines = metadata.requires("reclust") or []
    for line in lines:
        extra, package = re.search(r"extra == ['\"]([\w-]+)", line), re.match(r"[\w.-]+", line)
        if package and package[0] != "reclust" and "python_version" not in line:
            required.setdefault(extra[1] if extra else "", []).append(package[0])
    return required


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
