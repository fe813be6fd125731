"""Tables within pages that are written by hand: a block between two comments is what the records say.

    <!-- records: best -->
    …
    <!-- end of records -->
"""

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
        all_repetitions(reader, *PUBLISHED, *PREPARED), "Replicas that learn from each other, or not, ACC")),
    "variations": lambda reader: markdown(variants_table(
        all_repetitions(reader, "best-variations"), "What might lift it further, ACC")),
    "n-init": lambda reader: markdown(n_init_table(pools(all_repetitions(reader, *PUBLISHED)))),
}
_BLOCK = re.compile(r"(<!-- records: (\S+) -->\n).*?(<!-- end of records -->)", re.DOTALL)


def filled(text: str, reader: StoreReader) -> str:
    """A page with what stands in its blocks written anew."""

    def block(found: re.Match[str]) -> str:
        if found[2] not in BLOCKS:
            raise ValueError(f"There are no records named {found[2]!r} to be filled in: choose among {', '.join(BLOCKS)}.")
        return f"{found[1]}\n{BLOCKS[found[2]](reader)}\n{found[3]}"

    return _BLOCK.sub(block, text)


def fill(path: str | os.PathLike[str], reader: StoreReader) -> Path:
    path = Path(path)
    write_text(path, filled(path.read_text(encoding="utf-8"), reader))
    return path
