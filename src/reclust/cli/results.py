"""`reclust table`, `reclust figure` and `reclust report`: show the results in a store."""

import argparse
import sys
from pathlib import Path

from .. import studies
from .common import OPTIONS, add_command, add_options, progress, show

EXTENSIONS = {"csv": "csv", "markdown": "md", "latex": "tex", "text": "txt"}


def add(commands: argparse._SubParsersAction) -> None:
    table = add_command(
        commands, "table", _table, "print the tables of a study",
        "Means over seeds beside the paper's, and BRB compared with its baseline seed by seed.")
    add_options(table, "store")
    option = table.add_argument
    option("--study", metavar="NAME", help="(default: all studies but baselines)")
    option("--format", choices=list(EXTENSIONS), default="text", help="(default: %(default)s)")
    option("-o", "--output", metavar="FILE", help="write to a .csv, .md, .tex or .txt file")
    figure = add_command(
        commands, "figure", _figure, "draw the figures of the paper",
        "Draws one figure, or all that the store has runs for, as .pdf, .svg or .png.")
    option = figure.add_argument
    option("store", nargs="?", **OPTIONS["store"])
    option("name", metavar="FIGURE", nargs="?", help="(default: all)")
    option("-o", "--output", metavar="FILE", default="figures", help="or folder (default: figures)")
    option("--list", action="store_true", help="list the figures and their studies")
    option("--epoch", type=int, metavar="E", help="reset to show, in figures of a single one")
    option("--study", metavar="NAME", help="(default: the one with most of the required runs)")
    add_options(figure, "--datasets", "--algorithms", "--variants", "--json")
    report = add_command(
        commands, "report", _report, "write an HTML report of a store",
        "One file that opens offline, with the settings and provenance behind every number.")
    add_options(report, "store", "--folder")
    option = report.add_argument
    option("-o", "--output", default="report.html", metavar="FILE", help="(default: %(default)s)")
    option("--title", help="(default: the name of the store)")
    option("--no-figures", dest="figures", action="store_false", help="omit the paper's figures")


def _table(arguments: argparse.Namespace) -> int:
    from ..studies.tables import render, tables, write

    with studies.StoreReader(arguments.store) as store:
        names = [arguments.study] if arguments.study else [
            status.study for status in store.status()
            if status.finished and not status.study.startswith("baselines")]
        made = [table for name in names for table in tables(store, name)]
    if not made:
        print(f"reclust: error: {arguments.store} has no finished runs yet", file=sys.stderr)
        return 1
    if arguments.output:
        write(made, arguments.output)
        print(f"{arguments.output}: {len(made)} tables")
    else:
        bold = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("*", "*")
        print(render(made, EXTENSIONS[arguments.format], bold=bold), end="")
    return 0


def _figure(arguments: argparse.Namespace) -> int:
    from ..studies.figures import FIGURES, Choice, MissingData, draw

    if arguments.list or arguments.store is None:
        show([{"figure": name, "studies": ", ".join(figure.studies), "about": figure.about}
              for name, figure in FIGURES.items()], as_json=arguments.json)
        return 0
    choice = Choice(arguments.study, datasets=arguments.datasets, variants=arguments.variants,
                    algorithms=arguments.algorithms, epoch=arguments.epoch)
    path = Path(arguments.output)
    if not (arguments.name and path.suffix):
        path.mkdir(parents=True, exist_ok=True)
    with studies.StoreReader(arguments.store) as store:
        if arguments.name:
            path = path if path.suffix else path / f"{arguments.name}.pdf"
            draw(store, arguments.name, path, choice)
            print(path)
            return 0
        missing = []
        for name in FIGURES:
            try:
                draw(store, name, path / f"{name}.pdf", choice)
            except MissingData:
                missing.append(name)
    if missing:
        print(f"no runs for: {', '.join(missing)}; `reclust figure {arguments.store} {missing[0]}` "
              "tells which study to run", file=sys.stderr)
    print(f"{path}: {len(FIGURES) - len(missing)} figures")
    return 0 if len(missing) < len(FIGURES) else 1


def _report(arguments: argparse.Namespace) -> None:
    from ..studies.html.report import report

    with studies.StoreReader(arguments.store) as store:
        report(store, arguments.output, data=arguments.folder, title=arguments.title,
               figures=arguments.figures, progress=progress())
    print(f"{arguments.output}: {Path(arguments.output).stat().st_size / 1e6:.1f} MB")
