"""Write the file that `reclust study list` reads: `python tools/catalog.py`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from reclust.studies import named, names
from reclust.utils.values import to_json

PATH = Path(__file__).parents[1] / "src/reclust/studies/published/catalog.csv"


def rows() -> list[dict[str, str]]:
    return [{"name": study.name, "runs": str(len(study.planned())), "mini": str(len(study.mini().planned())), "about": study.about,
             "protocol": json.dumps(to_json(study.protocol))} for study in map(named, names())]


if __name__ == "__main__":
    with PATH.open("w", encoding="utf-8", newline="") as file:
        studies = rows()
        writer = csv.DictWriter(file, list(studies[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(studies)
