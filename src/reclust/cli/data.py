"""reclust data: the named sets, where they are, and how to get them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from .. import data
from .output import add_json, show


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("data", help="list, fetch and check the named data sets",
                                 description="The data sets that studies know by name.")
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, run, text in (("list", _list, "what there is, and what is on this machine"),
                            ("fetch", _fetch, "download sets that are missing"),
                            ("check", _check, "read sets and compare them with what they should be")):
        one = actions.add_parser(name, help=text, description=text.capitalize() + ".")
        if name != "list":
            one.add_argument("sets", nargs="*", metavar="SET", help="names of sets (default: all)")
        one.add_argument("--folder", metavar="FOLDER", help="where data lives (default: RECLUST_DATA, or your cache)")
        add_json(one)
        one.set_defaults(run=run)


def _list(arguments: argparse.Namespace) -> int:
    from ..data.sets.download import data_folder
    from ..data.sets.load import SETS, located

    rows = []
    for name in data.names():
        known = SETS[name]
        channels, height, width = known.image_shape
        files = located(name, folder=arguments.folder)
        where = "not here" if files is None else ", ".join(map(str, files)) or "embedded"
        rows.append({"name": name, "samples": sum(known.counts), "classes": known.n_clusters,
                     "size": f"{height}×{width}×{channels}", "where": where})
    show(rows, as_json=arguments.json)
    if not arguments.json:
        print(f"\ndata folder: {data_folder(arguments.folder)}")
    return 0


def _fetch(arguments: argparse.Namespace) -> int:
    return _each(arguments, lambda name: data.load(name, folder=arguments.folder))


def _check(arguments: argparse.Namespace) -> int:
    return _each(arguments, lambda name: data.load(name, folder=arguments.folder, download=False))


def _each(arguments: argparse.Namespace, read: Callable[[str], data.Dataset]) -> int:
    from ..data.sets.load import SETS, located

    rows: list[dict[str, Any]] = []
    for name in arguments.sets or data.names():
        try:
            found = read(name)
            rows.append({"name": name, "state": "complete", "samples": len(found), "note": found.licence})
        except data.DataError as error:
            here = name in SETS and located(name, folder=arguments.folder) is not None
            rows.append({"name": name, "state": "broken" if here else "missing", "samples": 0, "note": str(error)})
    show(rows, as_json=arguments.json)
    return 0 if all(row["state"] == "complete" for row in rows) else 1
