"""reclust reproduce: the pages and figures of the reproduction, from committed records."""

from __future__ import annotations

import argparse

DESCRIPTION = ("Write reproduction.md, our numbers beside the paper's, its claims one by one and its figures, from all stores "
               "*.sqlite of a folder. Remarks are read from OUTPUT/reproduction_remarks.toml.")


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("reproduce", help="the paper's tables, claims and figures from records",
                                 description=DESCRIPTION)
    parser.add_argument("records", metavar="FOLDER", nargs="?", default="results", help="(default: %(default)s)")
    parser.add_argument("-o", "--output", metavar="FOLDER", default="docs", help="(default: %(default)s)")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from ..studies.reproduction import reproduce

    written = reproduce(arguments.records, arguments.output)
    print(f"{arguments.output}: {len(written)} files written")
    return 0
