"""Options that several commands share, and reading the data that they name."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..data import Dataset

OPTIONS: dict[str, dict[str, Any]] = {
    "--algorithms": {"nargs": "+", "metavar": "NAME", "help": "only these algorithms"},
    "--datasets": {"nargs": "+", "metavar": "SET", "help": "only these data sets"},
    "--device": {"default": "auto", "help": "auto, cpu, cuda, … (default: %(default)s)"},
    "--drop": {"nargs": "+", "action": "extend", "metavar": "NAME",
               "help": "columns of a table to ignore"},
    "--folder": {"metavar": "FOLDER", "help":
                 "data set folder (default: $RECLUST_DATA, or the user's cache folder)"},
    "--ids": {"metavar": "NAME", "help": "column with sample names"},
    "--image-shape": {"type": int, "nargs": "+", "metavar": "N",
                      "help": "height width [channels] of images stored as flat rows"},
    "--json": {"action": "store_true", "help": "print JSON"},
    "--key": {"metavar": "NAME", "help": "array to read from a file with several"},
    "--labels": {"metavar": "NAME", "help":
                 "column or array with true classes, used only for scoring; `folder` takes them "
                 "from the names of image folders"},
    "--light": {"choices": ("kept", "removed"), "help":
                "remove brightness from color images, for photos taken in sun and shadow "
                "(default: kept)"},
    "--minutes": {"type": float, "metavar": "M",
                  "help": "stop after this time; run the same command again to continue"},
    "--no-standardize": {"dest": "standardize", "action": "store_false",
                         "help": "do not scale features, for example principal components"},
    "--seed": {"type": int, "metavar": "N", "help": "random seed, for reproducible results"},
    "--size": {"type": int, "nargs": "+", "metavar": "N", "help":
               "resize image files to height width [channels] (default: their size if it is the "
               "same, else 28 28 for gray and 32 32 for color images)"},
    "--skip-broken": {"action": "store_true", "help": "skip images that cannot be read"},
    "--mini": {"action": "store_true",
               "help": "a small version on the embedded digits: minutes on two cores"},
    "--store": {"default": "studies.sqlite", "metavar": "FILE",
                "help": "file with the results (default: %(default)s)"},
    "--variants": {"nargs": "+", "metavar": "NAME", "help": "only these variants"},
    "--work": {"metavar": "FOLDER",
               "help": "folder for pretrained models and checkpoints (default: STORE.work)"},
    "data": {"metavar": "DATA", "help":
             ".npy, .npz, .csv, .tsv, .txt, .csv.gz, .parquet, .h5, .h5ad, an image, a folder of "
             "images, or the name of a data set (see `reclust data list`)"},
    "store": {"metavar": "STORE", "help": "results of `reclust study run`"},
    "study": {"metavar": "NAME_OR_FILE", "help": "name from `reclust study list`, or a TOML file"},
}
ALIASES = {"--seed": "--random-state", "--datasets": "--sets", "--folder": "--data"}
DATA = ("data", "--labels", "--ids", "--drop", "--key", "--skip-broken")
PREPARATION = ("--light", "--no-standardize", "--image-shape", "--size")
STUDY = ("study", "--mini")
CONDITIONS = ("--store", "--work", "--folder", "--device", "--minutes")


def add_command(
    commands: argparse._SubParsersAction, name: str, run: Callable[[argparse.Namespace], int],
    summary: str, details: str = "", **defaults: Any,
) -> argparse.ArgumentParser:
    description = f"{summary[0].upper()}{summary[1:]}. {details}".strip()
    parser = commands.add_parser(name, help=summary, description=description)
    parser.set_defaults(run=run, **defaults)
    return parser


def add_options(parser: argparse._ActionsContainer, *names: str) -> None:
    for name in names:
        parser.add_argument(*filter(None, (name, ALIASES.get(name))), **OPTIONS[name])


def read_data(arguments: argparse.Namespace) -> Dataset:
    """Load the named data set, or read the file or folder."""
    from ..data import load, names, read

    if arguments.data in names() and not Path(arguments.data).exists():
        options = [f"--{name}" for name in ("labels", "ids", "drop", "key", "skip-broken", "size")
                   if getattr(arguments, name.replace("-", "_"))]
        if options:
            raise ValueError(f"{', '.join(options)} cannot be used with the data set "
                             f"{arguments.data}, only with files.")
        return load(arguments.data)
    return read(arguments.data, key=arguments.key, labels=arguments.labels, ids=arguments.ids,
                size=arguments.size, on_error="skip" if arguments.skip_broken else "raise",
                drop=arguments.drop)
