"""Published numbers in percent and seconds, and the catalog, as tables that need no torch.

paper.csv names the study and variant that repeat each number; two columns that the paper swaps
(native reclustering of DEC from scratch) are corrected. tools/catalog.py writes catalog.csv.
"""

import csv
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from operator import itemgetter
from typing import Any

MAIN = "acc-table"  # fallback for variants that other studies share with the main table
FORMS = ("-program", "-tf32")  # suffixes of a study in the reading or precision of the program
BEST = "-best"  # suffix of studies for which the paper gives the best run instead of the mean
# Studies whose variants differ from those of the main table -> the paper's table of them.
WITHOUT_FALLBACK = {"without-augmentation": "without-augmentation", "voronoi": "voronoi",
                    "dec-in-float32": "without-augmentation"}


@dataclass(frozen=True)
class Published:
    mean: float
    stderr: float | None = None
    std: float | None = None


Key = tuple[str, str, str, str, str, str]


def find(study: str, cell: Mapping[str, Any], metric: str) -> Published | None:
    """Return the paper's number of a cell (dataset, algorithm, variant, pretrained) of a study."""
    study = base_name(study)
    pretrained = "yes" if cell["pretrained"] else "no"
    only = WITHOUT_FALLBACK.get(study, study if study.endswith(BEST) else None)
    keys = [(table, cell["dataset"], pretrained, cell["algorithm"], cell["variant"], metric)
            for table in ((study, MAIN) if only is None else (only,))]
    return next((paper()[key] for key in keys if key in paper()), None)


def others(study: str, known: Collection[str], metric: str) -> dict[tuple[str, str], Published]:
    """Map (algorithm, data set) to the number of every method that is not in `known`."""
    return {(key[3], key[1]): number for key, number in paper().items()
            if key[0] == base_name(study) and key[3] not in known and key[5] == metric}


@lru_cache(maxsize=1)
def paper() -> Mapping[Key, Published]:
    """Map (study, dataset, pretrained yes or no, algorithm, variant, metric) to the number."""
    key = itemgetter("table", "dataset", "pretrained", "algorithm", "variant", "metric")
    return {key(row): Published(float(row["mean"]), *(
        float(row[name]) if row[name] else None for name in ("stderr", "std")))
        for row in _rows("paper.csv")}


def base_name(study: str) -> str:
    """Return the name of a study in the catalog, without its form and reading."""
    study = study.removesuffix("-mini")
    return next((study.removesuffix(form) for form in FORMS if study.endswith(form)), study)


def as_published(study: str, protocol: Mapping[str, Any] | None) -> bool:
    """Tell whether a stored study can be compared: a custom one if its protocol is the paper's."""
    known = {row["name"]: json.loads(row["protocol"]) for row in catalog()}
    study = study if study.endswith("-mini") else base_name(study)
    candidates = [known[study]] if study in known else [known[MAIN], known["contrastive"]]
    if protocol is None:
        return False
    # Both readings are of the same paper. Older files lack newer fields, which had their default.
    fields = {name: field for name, field in protocol["fields"].items()
              if name not in ("reading", "images")}
    return any(protocol["kind"] == paper["kind"] and fields.items() <= paper["fields"].items()
               for paper in candidates)


def catalog() -> list[dict[str, str]]:
    """List the named studies: name, runs, mini (runs of the small form), about and protocol."""
    return _rows("catalog.csv")


def _rows(name: str) -> list[dict[str, str]]:
    text = (files(__package__) / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
