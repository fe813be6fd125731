"""reclust figure: the figures of the paper, from a store."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .. import studies
from .output import add_json, show

if TYPE_CHECKING:
    from ..studies.figures import Choice


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("figure", help="the figures of the paper", description=(
        "Draw one figure, or all that the store has runs for. The ending of the file says the format: .pdf, .svg or .png."))
    parser.add_argument("store", metavar="STORE", nargs="?", help="the file that studies were run into")
    parser.add_argument("name", metavar="FIGURE", nargs="?", help="(default: all that can be drawn, into the folder -o)")
    parser.add_argument("-o", "--output", metavar="FILE", default="figures", help="a file, or a folder (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="the figures, and the studies that feed them")
    parser.add_argument("--study", metavar="NAME", help="(default: of its studies the one that has most of what it shows)")
    parser.add_argument("--datasets", "--sets", nargs="+", metavar="SET", help="the data sets to show")
    parser.add_argument("--algorithms", nargs="+", metavar="NAME", help="the algorithms to show")
    parser.add_argument("--variants", nargs="+", metavar="NAME", help="the variants to show")
    parser.add_argument("--epoch", type=int, metavar="E", help="which reset to look at, for figures of one")
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from ..studies.figures import FIGURES, Choice, draw

    if arguments.list:
        rows = [{"figure": name, "studies": ", ".join(own.studies), "about": own.about} for name, own in FIGURES.items()]
        show(rows, as_json=arguments.json)
        return 0
    if arguments.store is None:
        raise ValueError("Name the store to draw from: reclust figure STORE [FIGURE]; --list tells the figures.")
    datasets, algorithms, variants = (None if given is None else tuple(given)
                                      for given in (arguments.datasets, arguments.algorithms, arguments.variants))
    choice = Choice(arguments.study, datasets=datasets, algorithms=algorithms, variants=variants, epoch=arguments.epoch)
    with studies.StoreReader(arguments.store) as store:
        if arguments.name is not None:
            path = Path(arguments.output)
            if not path.suffix:
                path.mkdir(parents=True, exist_ok=True)
                path = path / f"{arguments.name}.pdf"
            draw(store, arguments.name, path, choice)
            print(path)
            return 0
        return _draw_all(store, Path(arguments.output), choice)


def _draw_all(store: studies.StoreReader, folder: Path, choice: Choice) -> int:
    from ..studies.figures import FIGURES, MissingData, draw

    folder.mkdir(parents=True, exist_ok=True)
    missing = []
    for name in FIGURES:
        try:
            draw(store, name, folder / f"{name}.pdf", choice)
        except MissingData:
            missing.append(name)
    if missing:
        print(f"left out for lack of records: {', '.join(missing)}; `reclust figure {store.path} {missing[0]}` says what "
              "it needs", file=sys.stderr)
    print(f"{folder}: {len(FIGURES) - len(missing)} figures")
    return 0 if len(missing) < len(FIGURES) else 1
