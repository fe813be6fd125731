"""reclust suggest-k: which number of clusters is found again from half of the data."""

from __future__ import annotations

import argparse

from .fit import (
    add_data,
    add_device,
    add_image_shape,
    add_light,
    add_seed,
    add_size,
    add_standardize,
    read_data,
)
from .output import add_json, progress, show

MOST = 14
"""As `reclust.choosing` has it."""


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "suggest-k", help="how many clusters to look for",
        description="Cluster two halves of DATA into several numbers of clusters, and say which of these are found again. It "
                    "takes minutes on a CPU.")
    add_data(parser)
    add_image_shape(parser)
    add_size(parser)
    add_light(parser)
    add_standardize(parser)
    parser.add_argument("--from", dest="least", type=int, default=2, metavar="K", help="(default: %(default)s)")
    parser.add_argument("--to", dest="most", type=int, metavar="K",
                        help=f"(default: {MOST}, or a quarter of the samples where that is less)")
    parser.add_argument("--n-init", type=int, default=3, metavar="N", help="models on each half (default: %(default)s)")
    parser.add_argument("--splits", type=int, default=2, metavar="N", help="how often to halve (default: %(default)s)")
    add_device(parser)
    add_seed(parser, 0)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from ..data import Lens
    from ..estimators.suggest_k import largest_k, suggest_k

    data = read_data(arguments)
    most = largest_k(len(data)) if arguments.most is None else arguments.most
    if arguments.least > most:
        given = f"--to {most}" if arguments.most is not None else f"{most}, to which these samples are tried without --to"
        raise ValueError(f"--from {arguments.least} is above {given}: give --from the least number of clusters and --to the "
                         "largest.")
    found = suggest_k(data, range(arguments.least, most + 1), n_init=arguments.n_init, splits=arguments.splits,
                      image_shape=arguments.image_shape, standardize=arguments.standardize,
                      lens=None if arguments.light is None else Lens(light=arguments.light), device=arguments.device,
                      random_state=arguments.seed, progress=progress(quiet=arguments.json))
    if not arguments.json:
        print(found)
        return 0
    measures = {name: getattr(found, name) for name in ("strength", "agreement", "resets", "silhouette")}
    show([{"k": k, "suggested": found.k, "plausible": k in found.plausible,
           **{part: float(each[i][j]) for name, each in measures.items() for j, part in enumerate((name, f"{name}_error"))}}
          for i, k in enumerate(found.ks)], as_json=True)
    return 0
