"""What this installation has, what it lacks, and whether it can write where it would."""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Literal

import torch

from ..data import DataError, load
from ..data.sets.download import data_folder
from ..data.sets.load import SETS, located
from ..version import __version__

CORE = ("torch", "numpy", "scipy", "scikit-learn", "tqdm", "safetensors", "typing-extensions")


@dataclass(frozen=True)
class Finding:
    """One line of the report: "fine", "missing" (something optional is not here) or "broken", and what to do about it."""

    area: Literal["versions", "devices", "folders", "data", "extras"]
    name: str
    state: Literal["fine", "missing", "broken"]
    note: str


def examine(*, folder: str | os.PathLike[str] | None = None) -> list[Finding]:
    """Everything that can be found out without network, and without importing any extra."""
    return [*_versions(), *_devices(), *_folders(folder), *_data(folder), *_extras()]


def _versions() -> list[Finding]:
    found = [Finding("versions", "reclust", "fine", __version__),
             Finding("versions", "python", "fine", f"{platform.python_version()} on {platform.system()} {platform.machine()}")]
    return found + [Finding("versions", package, "fine", metadata.version(package)) if _installed(package) else
                    Finding("versions", package, "broken", f"not installed: pip install {package}") for package in CORE]


def _devices() -> list[Finding]:
    found = [Finding("devices", "cpu", "fine", f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, "
                     f"{torch.backends.cpu.get_cpu_capability()}")]
    for i in range(torch.cuda.device_count()):
        try:
            torch.ones(1, device=f"cuda:{i}").sum().item()
            card = torch.cuda.get_device_properties(i)
            found.append(Finding("devices", f"cuda:{i}", "fine", f"{card.name}, {card.total_memory / 2**30:.0f} GiB"))
        except RuntimeError as error:
            found.append(Finding("devices", f"cuda:{i}", "broken", f"{str(error).splitlines()[0]}: use device='cpu', or "
                                 "a torch built for this driver"))
    if not torch.cuda.device_count():
        found.append(Finding("devices", "cuda", "missing", "no GPU that torch can use: everything runs on the CPU"))
    has_triton = util.find_spec("triton") is not None
    found.append(Finding("devices", "triton", "fine" if has_triton else "missing",
                         metadata.version("triton") if has_triton else "only of use on a GPU; plain torch takes its place"))
    compiler = next((name for name in ("c++", "g++", "clang++") if shutil.which(name)), None)
    found.append(Finding("devices", "torch.compile", "missing" if compiler is None else "fine",
                         "no C++ compiler: long runs of residual networks go on uncompiled" if compiler is None else compiler))
    return found


def _folders(folder: str | os.PathLike[str] | None) -> list[Finding]:
    places = {"data": data_folder(folder), "work": Path.cwd(), "temporary": Path(tempfile.gettempdir())}
    return [_writable(name, place) for name, place in places.items()]


def _writable(name: str, place: Path) -> Finding:
    """Whether a file could be made there, found out by making one; folders that are not there yet are not made."""
    existing = next(parent for parent in (place, *place.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        remedy = "set RECLUST_DATA to a folder of yours" if name == "data" else "choose another folder, or change its rights"
        return Finding("folders", name, "broken", f"{place} cannot be written to ({error.strerror}): {remedy}")
    return Finding("folders", name, "fine", f"{place}" + ("" if place.exists() else " (made when first needed)"))


def _data(folder: str | os.PathLike[str] | None) -> list[Finding]:
    return [_set(name, folder) for name in SETS]


def _set(name: str, folder: str | os.PathLike[str] | None) -> Finding:
    """Sets that are here are read, which is how one finds out whether they are whole."""
    files = located(name, folder=folder)
    if files is None:
        return Finding("data", name, "missing", f"not here: reclust data fetch {name}")
    try:
        load(name, folder=folder, download=False)
    except ImportError as error:  # of an extra
        return Finding("data", name, "missing", str(error))
    except DataError as error:
        return Finding("data", name, "broken", f"{error} Remove it, then: reclust data fetch {name}")
    return Finding("data", name, "fine", ", ".join(map(str, files)) or "embedded")


def _extras() -> list[Finding]:
    """The packages that each extra of this distribution asks for."""
    asked: dict[str, list[str]] = {}
    for line in (metadata.requires("reclust") or []) if _installed("reclust") else []:
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        package = re.match(r"[\w.-]+", line)
        if extra and package and package[0] != "reclust" and "python_version" not in line:
            asked.setdefault(extra[1], []).append(package[0])
    found = []
    for name, packages in sorted(asked.items()):
        missing = [each for each in packages if not _installed(each)]
        note = ", ".join(f"{each} {metadata.version(each)}" for each in packages if each not in missing)
        found.append(Finding("extras", name, "missing" if missing else "fine", note if not missing else
                             f"without {', '.join(missing)}: pip install 'reclust[{name}]'"))
    return found


def _installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
