"""`reclust data`: list, download and check the named data sets."""

from __future__ import annotations

import argparse
import os
from typing import Any

from .. import data
from .arguments import add_command, add_options
from .output import show


def add(commands: argparse._SubParsersAction) -> None:
    parser = add_command(commands, "data", _list, "list, download and check the named data sets")
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = add_command(actions, "list", _list, "list the named data sets and where they are")
    fetch = add_command(actions, "fetch", _load, "download missing data sets", download=True)
    check = add_command(actions, "check", _load, "check data sets", download=False)
    for action in (fetch, check):
        action.add_argument("sets", nargs="*", metavar="SET", help="data sets (default: all)")
    for action in (listing, fetch, check):
        add_options(action, "--folder", "--json")


def _list(arguments: argparse.Namespace) -> int:
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
    return 0


def _load(arguments: argparse.Namespace) -> int:
    rows = [status(name, arguments.folder, download=arguments.download)
            for name in arguments.sets or data.names()]
    show(rows, as_json=arguments.json)
    return 0 if all(row["state"] == "complete" for row in rows) else 1


def status(name: str, folder: str | os.PathLike[str] | None, *, download: bool) -> dict[str, Any]:
    """Read a data set to find out whether it is complete, missing or broken."""
    from ..data.sets.load import SETS, local_files

    try:
        found = data.load(name, folder=folder, download=download)
    except (data.DataError, ImportError) as error:
        here = name in SETS and local_files(name, folder=folder) is not None
        state = "broken" if here and isinstance(error, data.DataError) else "missing"
        return {"name": name, "state": state, "samples": 0, "note": str(error)}
    return {"name": name, "state": "complete", "samples": len(found), "note": found.licence}
