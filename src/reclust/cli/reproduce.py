"""reclust reproduce: the pages and figures of the reproduction, from committed records."""

from __future__ import annotations

import argparse
import sys

DESCRIPTION = ("Write reproduction.md, our numbers beside the paper's, its claims one by one and its figures, from all stores "
               "*.sqlite of a folder. Remarks are read from OUTPUT/reproduction_remarks.toml.")


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("reproduce", help="the paper's tables, claims and figures from records",
                                 description=DESCRIPTION)
    parser.add_argument("records", metavar="FOLDER", nargs="?", default="results", help="(default: %(default)s)")
    parser.add_argument("-o", "--output", metavar="FOLDER", default="docs", help="(default: %(default)s)")
    parser.add_argument("--fill", nargs="+", default=[], metavar="PAGE",
                        help="pages of one's own, whose blocks between <!-- records: NAME --> and its end are written anew")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from ..studies.reproduction import not_on_the_page, reproduce

    written = reproduce(arguments.records, arguments.output, pages_to_fill=arguments.fill)
    others = not_on_the_page(arguments.records)
    if others:
        print(f"not on the page, which has the paper's studies alone: {', '.join(others)}; `reclust report` shows them",
              file=sys.stderr)
    print(f"{arguments.output}: {len(written)} files written")
    return 0
