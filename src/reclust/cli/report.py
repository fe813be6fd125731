"""reclust report: a store as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from .. import studies
from .output import progress

SHOWN = {"scenes": (24, "embeddings"), "sheets": (24, "samples around centres"), "confusions": (200, "classes in clusters")}
"""Of at most how many runs, as `Limits` says, and what."""


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("report", help="a store as one HTML file", description=(
        "Write tables, curves, embeddings, samples around centres, figures of the paper that can be drawn, and the settings "
        "and provenance of every number as one file that opens offline."))
    parser.add_argument("store", metavar="STORE", help="the file that studies were run into")
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="(default: %(default)s)")
    parser.add_argument("--title", help="(default: the name of the store)")
    parser.add_argument("--data", metavar="FOLDER", help="where data sets are, for images and true classes "
                        "(default: RECLUST_DATA, or your cache); nothing is downloaded")
    for name, (default, what) in SHOWN.items():
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N",
                            help=f"show {what} of at most so many runs (default: %(default)s)")
    parser.add_argument("--no-figures", dest="figures", action="store_false",
                        help="leave out the figures of the paper, each of which takes up to a few seconds")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from ..studies.html.report import Limits, report

    if arguments.store.endswith(".reclust"):
        raise ValueError(f"{arguments.store} is a model, and this command reports stores of studies. That of a fit needs its "
                         f"data: `reclust predict {arguments.store} DATA --report FILE`.")
    limits = Limits(**{name: getattr(arguments, name) for name in SHOWN})
    with studies.StoreReader(arguments.store) as store:
        report(store, arguments.output, data=arguments.data, title=arguments.title, limits=limits, figures=arguments.figures,
               progress=progress())
    print(f"{arguments.output}: {Path(arguments.output).stat().st_size / 1e6:.1f} MB")
    return 0
