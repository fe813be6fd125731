"""Write the pages and figures of the reproduction from committed records: python -m reproduction results -o docs."""

from __future__ import annotations

import argparse
import sys

from . import not_on_the_page, reproduce


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument("records", metavar="FOLDER", nargs="?", default="results", help="(default: %(default)s)")
    parser.add_argument("-o", "--output", metavar="FOLDER", default="docs", help="(default: %(default)s)")
    parser.add_argument("--fill", nargs="+", default=[], metavar="PAGE",
                        help="pages whose blocks between <!-- records: NAME --> and its end are rewritten")
    arguments = parser.parse_args()
    written = reproduce(arguments.records, arguments.output, pages_to_fill=arguments.fill)
    others = not_on_the_page(arguments.records)
    if others:
        print(f"not on the page: {', '.join(others)}; `reclust report` shows them", file=sys.stderr)
    print(f"{arguments.output}: {len(written)} files written")


if __name__ == "__main__":
    main()
