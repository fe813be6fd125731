"""Write the pages and figures of the reproduction: python -m reproduction results -o docs."""

from __future__ import annotations

import argparse
import sys

from . import custom_studies, reproduce


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument("records", metavar="FOLDER", nargs="?", default="results",
                        help="folder of stores (default: %(default)s)")
    parser.add_argument("-o", "--output", metavar="FOLDER", default="docs",
                        help="folder of the pages (default: %(default)s)")
    parser.add_argument("--fill", nargs="+", default=[], metavar="PAGE", help="hand-written pages "
                        "with blocks between <!-- records: NAME --> and <!-- end of records -->")
    arguments = parser.parse_args()
    written = reproduce(arguments.records, arguments.output, pages_to_fill=arguments.fill)
    others = custom_studies(arguments.records)
    if others:
        print(f"not on the pages: {', '.join(others)}; see `reclust report`", file=sys.stderr)
    print(f"{arguments.output}: {len(written)} files written")


if __name__ == "__main__":
    main()
