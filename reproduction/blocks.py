"""Tables inside hand-written pages, between <!-- records: NAME --> and <!-- end of records -->."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from reclust.studies.store.reader import StoreReader
from reclust.studies.tables import markdown
from reclust.studies.tables.selection import pools
from reclust.utils.files import write_text

from .best import PREPARED, PUBLISHED, all_repetitions, best_table
from .selection import n_init_table, variants_table

BLOCKS: Mapping[str, Callable[[StoreReader], str]] = {
    "best": lambda reader: markdown(best_table(reader)),
    "exchange": lambda reader: markdown(variants_table(
        all_repetitions(reader, *PUBLISHED, *PREPARED),
        "Independent and interacting replicas, ACC")),
    "variations": lambda reader: markdown(variants_table(
        all_repetitions(reader, "best-variations"), "Variations that might improve it, ACC")),
    "n-init": lambda reader: markdown(n_init_table(pools(all_repetitions(reader, *PUBLISHED)))),
}
_BLOCK = re.compile(r"(<!-- records: (\S+) -->\n).*?(<!-- end of records -->)", re.DOTALL)


def filled(text: str, reader: StoreReader) -> str:
    """Return a page with its blocks rewritten."""
    return _BLOCK.sub(lambda found: f"{found[1]}\n{BLOCKS[found[2]](reader)}\n{found[3]}", text)


def fill(path: str | os.PathLike[str], reader: StoreReader) -> Path:
    path = Path(path)
    write_text(path, filled(path.read_text(encoding="utf-8"), reader))
    return path
