"""reclust table: the tables of a study, from its store."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .. import studies

ENDINGS = {"csv": "csv", "markdown": "md", "latex": "tex", "text": "txt"}


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("table", help="the tables of a study", description=(
        "Mean and standard error over seeds, the best of each block in bold, the paper's value and the difference beside "
        "ours, and BRB against its baseline by seed."))
    parser.add_argument("store", metavar="STORE", help="the file that studies were run into")
    parser.add_argument("--study", metavar="NAME", help="(default: every study of the store but baselines)")
    parser.add_argument("--format", choices=list(ENDINGS), default="text", help="(default: %(default)s)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to a file, whose ending says the format")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from ..studies.tables import tables, together, write

    with studies.StoreReader(arguments.store) as store:
        wanted = [arguments.study] if arguments.study else [
            one.study for one in store.status() if one.finished and not one.study.startswith("baselines")]
        made = [table for study in wanted for table in tables(store, study)]
        if not made:
            waiting, failed = (sum(getattr(one, what) for one in store.status()) for what in ("waiting", "failed"))
            raise ValueError(f"No run of {arguments.store} is finished yet. {waiting} wait: `reclust study run` goes on with "
                             f"them. {failed} failed: `study status --failures` says why, `study run --retry` tries again.")
    if arguments.output:
        write(made, arguments.output)
        print(f"{arguments.output}: {len(made)} tables, {Path(arguments.output).stat().st_size / 1e3:.0f} kB")
    else:
        bold = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("*", "*")
        print(together(made, ENDINGS[arguments.format], bold=bold), end="")
    return 0
