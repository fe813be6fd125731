"""Tables of studies, made from a store: Markdown, LaTeX, CSV, and text for a terminal."""

from collections.abc import Callable
from dataclasses import replace

from ..published import base_name
from ..store.reader import StoreReader
from ..store.schema import explain_errors
from .comparison import Comparison, compare, comparison_table
from .runtime import cell_times, run_times, runtime_tables
from .scores import Layout, score_tables
from .selection import repetitions, selection_tables
from .table import FORMATS, Cell, Row, Table, csv_text, latex, markdown, render, terminal, write

__all__ = [
    "FORMATS", "Cell", "Comparison", "Layout", "Row", "Table", "cell_times", "compare",
    "comparison_table", "csv_text", "latex", "markdown", "render", "repetitions", "run_times",
    "runtime_tables", "score_tables", "selection_tables", "tables", "terminal", "write",
]

Maker = Layout | Callable[[StoreReader, str], list[Table]]

MAIN = (Layout(), Layout(measures=("nmi",)), Layout(measures=("ari",)))
BY_ALGORITHM = Layout(rows=("variant",), columns="algorithm", blocks=(), measures=("ari",),
                      tables=("dataset", "pretrained"))
CONTRASTIVE = Layout(rows=("algorithm", "variant"), blocks=("algorithm",), show="std", average="",
                     also=("pretrained",))
# Tables of the studies that have others than the one of `Layout()`.
STUDY_TABLES: dict[str, tuple[Maker, ...]] = {
    **dict.fromkeys(("acc-table", "from-scratch", "without-augmentation"), MAIN),
    "reclustering-methods": (BY_ALGORITHM,),
    "subsample-size": (replace(BY_ALGORITHM, average=""),),
    "sensitivity": (Layout(rows=("lr", "interval"), columns="keep", blocks=("lr",),
                           tables=("dataset", "algorithm"), average=""),),
    "runtime": (runtime_tables, run_times),
    **dict.fromkeys(("best", "best-of-many-samples", "best-of-few-samples", "best-of-small-images",
                     "best-of-colours", "best-variations"), (selection_tables,)),
    "resnet-blocks": (Layout(rows=("blocks",), columns="mlp", blocks=(), tables=("dataset",),
                             show="std", average="", also=("algorithm", "pretrained", "variant")),),
    "contrastive": (CONTRASTIVE,),
    "self-labeling": (replace(CONTRASTIVE, show="best", measures=("acc", "nmi", "ari")),
                      CONTRASTIVE),
}


def tables(reader: StoreReader, study: str) -> list[Table]:
    """Make the tables of a study, and compare BRB with its baseline if both were run."""
    makers = STUDY_TABLES.get(base_name(study), (Layout(),))
    layouts = [maker for maker in makers if isinstance(maker, Layout)]
    with explain_errors(reader.path):
        result = score_tables(reader, study, *layouts) if layouts else []
        for maker in makers:
            result += [] if isinstance(maker, Layout) else maker(reader, study)
        if all(reader.finished(study, (), ("run",), [name]) for name in ("none", "brb")):
            result.append(comparison_table(reader, study))
    return result
