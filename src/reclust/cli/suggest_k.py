"""`reclust suggest-k`: suggest a number of clusters."""

from __future__ import annotations

import argparse
from typing import Any

from .arguments import DATA, PREPARATION, add_command, add_options, read_data
from .output import progress, show


def add(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands, "suggest-k", _run, "suggest a number of clusters",
        "Clusters two halves of DATA into different numbers of clusters and reports for which of "
        "these the halves agree. Takes minutes on a CPU.", seed=0)
    add_options(parser, *DATA, *PREPARATION)
    option = parser.add_argument
    option("--from", dest="least", type=int, default=2, metavar="K",
           help="smallest number of clusters to try (default: %(default)s)")
    option("--to", dest="most", type=int, metavar="K",
           help="largest number to try (default: depends on the number of samples)")
    option("--n-init", type=int, default=3, metavar="N", help="models per half (default: 3)")
    option("--splits", type=int, default=2, metavar="N", help="random splits (default: 2)")
    add_options(parser, "--device", "--seed", "--json")


def _run(arguments: argparse.Namespace) -> int:
    from ..data import Lens
    from ..estimators.suggest_k import largest_k, suggest_k

    dataset = read_data(arguments)
    most = largest_k(len(dataset)) if arguments.most is None else arguments.most
    suggestion = suggest_k(
        dataset, range(arguments.least, most + 1), n_init=arguments.n_init, splits=arguments.splits,
        image_shape=arguments.image_shape, standardize=arguments.standardize,
        lens=None if arguments.light is None else Lens(light=arguments.light),
        device=arguments.device, random_state=arguments.seed,
        progress=progress(quiet=arguments.json))
    if not arguments.json:
        print(suggestion)
        return 0
    rows = []
    for i, k in enumerate(suggestion.ks):
        row: dict[str, Any] = {"k": k, "suggested": suggestion.k,
                               "plausible": k in suggestion.plausible}
        for name in ("strength", "agreement", "resets", "silhouette"):
            row[name], row[f"{name}_error"] = map(float, getattr(suggestion, name)[i])
        rows.append(row)
    show(rows, as_json=True)
    return 0
