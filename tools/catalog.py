"""Write the file that `reclust study list` reads: `python tools/catalog.py`."""

from __future__ import annotations

import csv
from pathlib import Path

from reclust.studies.listing import COLUMNS, computed

PATH = Path(__file__).parents[1] / "src/reclust/studies/catalog.csv"

if __name__ == "__main__":
    with PATH.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(computed())
