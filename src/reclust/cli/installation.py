"""`reclust data`, `reclust doctor` and `reclust completion`: data sets, checks and shell setup."""

import argparse
import os
import platform
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from typing import Any

from .. import data
from ..utils.exceptions import require
from ..utils.version import __version__
from .common import add_command, add_options, show

PATH_METAVARS = ("FILE", "STORE", "DATA", "MODEL", "FOLDER", "NAME_OR_FILE")


def add(commands: argparse._SubParsersAction) -> None:
    parser = add_command(commands, "data", _list, "list, download and check the named data sets")
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = add_command(actions, "list", _list, "list the named data sets and where they are")
    fetch = add_command(actions, "fetch", _load, "download missing data sets", download=True)
    check = add_command(actions, "check", _load, "check data sets", download=False)
    for action in (fetch, check):
        action.add_argument("sets", nargs="*", metavar="SET", help="data sets (default: all)")
    doctor = add_command(commands, "doctor", _doctor,
                         "check this installation: versions, devices, extras",
                         "The exit code is 1 if something required is broken.")
    for action in (listing, fetch, check):
        add_options(action, "--folder")
    for action in (listing, fetch, check, doctor):
        add_options(action, "--json")
    completion = add_command(commands, "completion", _completion, "print a shell completion script",
                             "For bash: reclust completion bash >> ~/.bash_completion")
    completion.add_argument("shell", choices=("bash", "zsh", "tcsh"))


def _list(arguments: argparse.Namespace) -> None:
    from ..data.sets.download import data_folder
    from ..data.sets.load import SETS, local_files

    rows = []
    for name, known in SETS.items():
        channels, height, width = known.image_shape
        files = local_files(name, folder=arguments.folder)
        where = "not here" if files is None else ", ".join(map(str, files)) or "embedded"
        rows.append({"name": name, "samples": sum(known.counts), "classes": known.n_clusters,
                     "size": f"{height}×{width}×{channels}", "where": where})
    show(rows, as_json=arguments.json)
    if not arguments.json:
        print(f"\ndata folder: {data_folder(arguments.folder)}")


def _load(arguments: argparse.Namespace) -> int:
    rows = [_state(name, arguments.folder, download=arguments.download)
            for name in arguments.sets or data.names()]
    show(rows, as_json=arguments.json)
    return 0 if all(row["state"] == "complete" for row in rows) else 1


def _state(name: str, folder: str | os.PathLike[str] | None, *, download: bool) -> dict[str, Any]:
    from ..data.sets.load import SETS, local_files

    try:
        dataset = data.load(name, folder=folder, download=download)
    except (data.DataError, ImportError) as error:
        here = name in SETS and local_files(name, folder=folder) is not None
        state = "broken" if here and isinstance(error, data.DataError) else "missing"
        return {"name": name, "state": state, "samples": 0, "note": str(error)}
    return {"name": name, "state": "complete", "samples": len(dataset), "note": dataset.licence}


# Name, state ("fine", "missing" for optional things, or "broken") and note of each check.
Found = Iterator[tuple[str, str, str]]


def _doctor(arguments: argparse.Namespace) -> int:
    checks = examine()
    show(checks, as_json=arguments.json)
    broken = [check["name"] for check in checks if check["state"] == "broken"]
    if not arguments.json:
        print(f"\nbroken: {', '.join(broken)}" if broken else "\nnothing is broken")
    return 1 if broken else 0


def examine() -> list[dict[str, str]]:
    areas = {"versions": _versions(), "devices": _devices(), "extras": _extras()}
    return [{"area": area, "name": name, "state": state, "note": note}
            for area, checks in areas.items() for name, state, note in checks]


def _versions() -> Found:
    system = f"{platform.system()} {platform.machine()}"
    yield "reclust", "fine", __version__
    yield "python", "fine", f"{platform.python_version()} on {system}"
    for package in _requirements().get("", []):
        version = _version(package)
        missing = f"not installed: pip install {package}"
        yield package, "fine" if version else "broken", version or missing


def _devices() -> Found:
    import torch

    yield "cpu", "fine", (f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, "
                          f"{torch.backends.cpu.get_cpu_capability()}")
    for i in range(torch.cuda.device_count()):
        try:
            torch.ones(1, device=f"cuda:{i}").sum().item()
            gpu = torch.cuda.get_device_properties(i)
            yield f"cuda:{i}", "fine", f"{gpu.name}, {gpu.total_memory / 2**30:.0f} GiB"
        except RuntimeError as error:
            advice = "use device='cpu', or a torch built for this driver"
            yield f"cuda:{i}", "broken", f"{str(error).splitlines()[0]}: {advice}"
    if not torch.cuda.device_count():
        yield "cuda", "missing", "no GPU: everything runs on the CPU"


def _extras() -> Found:
    for extra, packages in sorted(_requirements().items()):
        missing = ", ".join(package for package in packages if _version(package) is None)
        if extra and missing:
            yield extra, "missing", f"without {missing}: pip install 'reclust[{extra}]'"
        elif extra:
            yield extra, "fine", ", ".join(f"{name} {_version(name)}" for name in packages)


def _requirements() -> dict[str, list[str]]:
    """Group required packages by extra, with "" for the core."""
    required: dict[str, list[str]] = {}
    with suppress(metadata.PackageNotFoundError):  # not installed, only on the path
        for line in metadata.requires("reclust") or []:
            extra, package = re.search(r"extra == ['\"]([\w-]+)", line), re.match(r"[\w.-]+", line)
            if package and package[0] != "reclust" and "python_version" not in line:
                required.setdefault(extra[1] if extra else "", []).append(package[0])
    return required


def _version(package: str) -> str | None:
    return next((copy.version for copy in metadata.distributions(name=package)), None)


def _completion(arguments: argparse.Namespace) -> None:
    shtab = require("shtab", purpose="Shell completion", extra="cli")
    _complete_paths(arguments.root, shtab.FILE)
    print(shtab.complete(arguments.root, arguments.shell))


def _complete_paths(parser: argparse.ArgumentParser, rule: object) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                _complete_paths(child, rule)
        elif action.metavar in PATH_METAVARS:
            action.complete = rule  # type: ignore[attr-defined]
