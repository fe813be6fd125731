"""Options, reading of data, and terminal output that several commands share."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..utils.exceptions import printable
from ..utils.files import check_writable, is_stream
from ..utils.progress import ProgressOption, duration

if TYPE_CHECKING:
    from ..data import Dataset
    from ..training.monitors.base import Snapshot

GENERATOR = b'<meta name="generator" content="reclust">'
LABEL_COLUMNS = ("id", "cluster", "confidence")
PROGRESS_SECONDS = 30.0  # between two progress lines if stderr is not a terminal
OPTIONS: dict[str, dict[str, Any]] = {
    "--algorithms": {"nargs": "+", "metavar": "NAME", "help": "only these algorithms"},
    "--datasets": {"nargs": "+", "metavar": "SET", "help": "only these data sets"},
    "--device": {"default": "auto", "help": "auto, cpu, cuda, … (default: %(default)s)"},
    "--drop": {"nargs": "+", "action": "extend", "metavar": "NAME", "help": "columns to ignore"},
    "--folder": {"metavar": "FOLDER", "help": "data folder (default: $RECLUST_DATA, or a cache)"},
    "--ids": {"metavar": "NAME", "help": "column with sample names"},
    "--image-shape": {"type": int, "nargs": "+", "metavar": "N", "help":
                      "height width [channels] of images stored as flat rows"},
    "--json": {"action": "store_true", "help": "print JSON"},
    "--key": {"metavar": "NAME", "help": "array to read from a file that holds several"},
    "--labels": {"metavar": "NAME", "help": "column or array with true classes, used only for "
                 "scoring; `folder` takes them from the names of image folders"},
    "--light": {"choices": ("kept", "removed"), "help": "remove brightness from color images, for "
                "photos taken in sun and shadow (default: kept)"},
    "--minutes": {"type": float, "metavar": "M",
                  "help": "stop after this time: reclust votes with the members it has, other "
                  "commands continue when run again"},
    "--no-standardize": {"dest": "standardize", "action": "store_false", "help":
                         "do not scale features, for example principal components"},
    "--seed": {"type": int, "metavar": "N", "help": "random seed, for reproducible results"},
    "--size": {"type": int, "nargs": "+", "metavar": "N", "help": "resize image files to height "
               "width [channels] (default: their size, or if it varies 28 28 gray, 32 32 color)"},
    "--skip-broken": {"action": "store_true", "help": "skip images that cannot be read"},
    "--mini": {"action": "store_true", "help": "a small version on scikit-learn's digits"},
    "--store": {"default": "studies.sqlite", "metavar": "FILE", "help": "(default: %(default)s)"},
    "--variants": {"nargs": "+", "metavar": "NAME", "help": "only these variants"},
    "--work": {"metavar": "FOLDER", "help": "for models and checkpoints (default: STORE.work)"},
    "data": {"metavar": "DATA", "help":
             ".npy, .npz, .csv, .tsv, .txt, .csv.gz, .parquet, .h5, .h5ad, an image, a folder of "
             "images, or the name of a data set (see `reclust data list`)"},
    "model": {"metavar": "MODEL", "help": "model.reclust of `reclust fit`, or its folder"},
    "store": {"metavar": "STORE", "help": "results of `reclust study run`"},
    "study": {"metavar": "NAME_OR_FILE", "help": "name from `reclust study list`, or a TOML file"},
}
ALIASES = {"--seed": "--random-state", "--datasets": "--sets", "--folder": "--data"}
DATA = ("data", "--labels", "--ids", "--drop", "--key", "--skip-broken")
PREPARATION = ("--light", "--no-standardize", "--image-shape", "--size")
STUDY = ("study", "--mini")
CONDITIONS = ("--store", "--work", "--folder", "--device", "--minutes")


def add_command(commands: argparse._SubParsersAction, name: str,
                run: Callable[[argparse.Namespace], int | None], summary: str, details: str = "",
                **defaults: Any) -> argparse.ArgumentParser:
    """Add the parser of a command that runs `run`, which returns the exit code or None."""
    description = f"{summary[0].upper()}{summary[1:]}. {details}".strip()
    parser = commands.add_parser(name, help=summary, description=description)
    parser.set_defaults(run=run, **defaults)
    return parser


def add_options(parser: argparse._ActionsContainer, *names: str) -> None:
    for name in names:
        parser.add_argument(*filter(None, (name, ALIASES.get(name))), **OPTIONS[name])


def check_paths(inputs: Iterable[str], outputs: Iterable[str | Path | None],
                folder: Path | None = None) -> None:
    """Raise unless outputs, and a folder made for them, differ from inputs and from each other."""
    from ..data.formats.images import find_images

    beside = ("", "-wal", "-shm", "-journal")  # files of a store
    given = [Path(f"{path}{end}").expanduser() for path in inputs for end in beside]
    images = [image for path in given if path.is_dir() for image in find_images(path)]
    made = None if folder is None else Path(os.path.realpath(folder))
    taken = {made, *map(Path, map(os.path.realpath, given + images))}  # also links to themselves
    for path in (output for output in outputs if output is not None):
        output = Path(os.path.realpath(path))
        if output in taken and not is_stream(path):
            raise FileExistsError(f"{path} is an input or another output of this command and "
                                  "would be overwritten: choose another name.")
        taken.add(output)
        if output.parent != made or made.exists():
            check_writable(path)


def is_ours(file: Path) -> bool:
    """Return whether a file has the columns of labels.csv, or is a page of this library."""
    with open(file, "rb") as content:
        start = content.read(200)
    return start.splitlines()[:1] == [",".join(LABEL_COLUMNS).encode()] or GENERATOR in start


def read_data(arguments: argparse.Namespace) -> Dataset:
    from ..data import load, names, read

    if not arguments.data:
        raise ValueError("The name of the data is empty.")
    if arguments.data in names() and not Path(arguments.data).exists():
        options = ", ".join(f"--{name}" for name in (
            "labels", "ids", "drop", "key", "skip-broken", "size")
            if getattr(arguments, name.replace("-", "_")))
        if options:
            raise ValueError(f"{options} cannot be used with the data set {arguments.data}.")
        return load(arguments.data)
    return read(arguments.data, key=arguments.key, labels=arguments.labels, ids=arguments.ids,
                size=arguments.size, on_error="skip" if arguments.skip_broken else "raise",
                drop=arguments.drop)


def show(rows: Sequence[Mapping[str, Any]], *, as_json: bool, empty: str = "nothing") -> None:
    """Print rows with the same keys as a table or as a JSON list."""
    if as_json:
        finite = [{name: None if isinstance(cell, float) and not math.isfinite(cell) else cell
                   for name, cell in row.items()} for row in rows]
        print(json.dumps(finite, indent=2))
    elif not rows:
        print(empty)
    else:
        lines = [list(rows[0]), *([f"{cell:.4g}" if isinstance(cell, float) else str(cell)
                                   for cell in row.values()] for row in rows)]
        numeric = [all(isinstance(row[name], (int, float)) for row in rows) for name in rows[0]]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            cells = (cell.rjust(width) if right else cell.ljust(width)
                     for cell, width, right in zip(line, widths, numeric, strict=True))
            print(printable("  ".join(cells).rstrip()))


def tell(text: str, stream: TextIO) -> None:
    """Print; if the reader has closed the stream, discard this and all later output."""
    try:
        print(printable(text), file=stream, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class ProgressLines:
    """Print progress as lines, at most one every `PROGRESS_SECONDS`."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._first: tuple[float, float] | None = None

    def say(self, text: str) -> None:
        if time.monotonic() - self._last >= PROGRESS_SECONDS:
            self._last = time.monotonic()
            tell(f"reclust: {text}", sys.stderr)

    def monitor(self, snapshot: Snapshot) -> None:
        if snapshot.moment == "epoch":
            self.say(f"{snapshot.phase}, epoch {snapshot.epoch + 1} of {snapshot.epochs}")

    def __call__(self, done: float) -> None:
        now = time.monotonic()
        start, share = self._first = self._first or (now, done)  # networks are trained before
        if done > share:
            left = duration((now - start) * (1 - done) / (done - share))
            self.say(f"{done:.0%} done, about {left} left")


def progress(*, quiet: bool = False) -> ProgressOption:
    return False if quiet else None if sys.stderr.isatty() else ProgressLines()
