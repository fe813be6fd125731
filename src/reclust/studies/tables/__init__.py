"""Tables of studies, from the store alone: Markdown, LaTeX, CSV, and text for a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..store.reader import StoreReader
from .comparison import Comparison, compare, comparison
from .rendering import FORMATS, comma_separated, latex, markdown, terminal, together, write
from .runtime import Spent, run_times, runtime, spent
from .scores import Layout, scores
from .selection import Pool, Repetition, chosen, n_init, pools, repetitions, variants
from .table import Cell, Row, Table

__all__ = [
    "Cell", "Comparison", "FORMATS", "Layout", "NATURAL", "Pool", "Repetition", "Row", "Spent", "Table", "chosen",
    "comma_separated", "compare", "comparison", "latex", "markdown", "n_init", "pools", "repetitions", "run_times", "runtime",
    "scores", "spent", "tables", "terminal", "together", "variants", "write",
]

Maker = Layout | Callable[[StoreReader, str], list[Table]]

MAIN = (Layout(), Layout(measures=("nmi",)), Layout(measures=("ari",)))
BY_ALGORITHM = Layout(rows=("variant",), columns="algorithm", blocks=(), tables=("dataset", "pretrained"))
CONTRASTIVE = Layout(rows=("algorithm", "variant"), blocks=("algorithm",), show="std", average="", also=("pretrained",))

NATURAL: dict[str, tuple[Maker, ...]] = {
    "acc-table": MAIN,
    "from-scratch": MAIN,
    "without-augmentation": MAIN,
    "reclustering-methods": (replace(BY_ALGORITHM, measures=("ari",)),),
    "subsample-size": (replace(BY_ALGORITHM, measures=("ari",), average=""),),
    "sensitivity": (Layout(rows=("lr", "interval"), columns="keep", blocks=("lr",), tables=("dataset", "algorithm"),
                           average=""),),
    "runtime": (runtime, lambda reader, study: [run_times(reader, study)]),
    "best": (chosen,),
    "best-of-many-samples": (chosen,),
    "best-of-few-samples": (chosen,),
    "best-of-small-images": (chosen,),
    "best-of-colours": (chosen,),
    "best-variations": (chosen,),
    "resnet-blocks": (Layout(rows=("blocks",), columns="mlp", blocks=(), tables=("dataset",), show="std", average="",
                             also=("algorithm", "pretrained", "variant")),),
    "contrastive": (CONTRASTIVE,),
    "self-labeling": (replace(CONTRASTIVE, show="best", measures=("acc", "nmi", "ari")), CONTRASTIVE),
}
"""Study -> its tables in the paper; all others have the one of `Layout()`."""


def tables(reader: StoreReader, study: str) -> list[Table]:
    """A study's natural tables, those of the paper where it has them, and the comparison of BRB with its baseline."""
    makers = NATURAL.get(study.removesuffix("-mini"), (Layout(),))
    layouts = [maker for maker in makers if isinstance(maker, Layout)]
    made = scores(reader, study, *layouts) if layouts else []
    made += [table for maker in makers if not isinstance(maker, Layout) for table in maker(reader, study)]
    return [*made, comparison(reader, study)] if all(reader.has(study, name) for name in ("none", "brb")) else made
