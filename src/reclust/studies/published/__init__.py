"""What the paper and the field report, in percent and seconds: to stand beside one's own numbers.

paper.csv is tidy: one row for each number of the paper's tables, under the name of the study that repeats it and with the
variant's name there. Where the paper confuses two columns (native reclustering of DEC from scratch) they are put right.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

MAIN = "acc-table"
"""Where variants of other studies are found too, if they are the same there."""

OTHERWISE = MappingProxyType({"without-augmentation": "without-augmentation", "voronoi": "voronoi",
                              "dec-in-float32": "without-augmentation"})
"""Studies whose variants of the same names are other runs than those -> the study that the paper has of them."""

BEST = "-best"
"""Ends the name of a study where the paper gives the best run and not the mean."""


@dataclass(frozen=True)
class Published:
    """One number of the paper, with its standard error or standard deviation where there is one."""

    mean: float
    stderr: float | None = None
    std: float | None = None


Key = tuple[str, str, str, str, str, str]


def find(study: str, cell: Mapping[str, Any], metric: str) -> Published | None:
    """The paper's number for a cell of a study's table: dataset, algorithm, variant and pretrained (bool) tell which."""
    pretrained = "yes" if cell["pretrained"] else "no"
    tables = (OTHERWISE[study],) if study in OTHERWISE else (study,) if study.endswith(BEST) else (study, MAIN)
    for table in tables:
        found = paper().get((table, cell["dataset"], pretrained, cell["algorithm"], cell["variant"], metric))
        if found is not None:
            return found
    return None


def others(study: str, known: Collection[str], metric: str) -> dict[tuple[str, str], Published]:
    """(algorithm, data set) -> number, of methods in the paper's table that are none of the known algorithms."""
    return {(key[3], key[1]): number for key, number in paper().items()
            if key[0] == study and key[3] not in known and key[5] == metric}


@lru_cache(maxsize=1)
def paper() -> Mapping[Key, Published]:
    """(study, dataset, pretrained yes or no, algorithm, variant, metric) -> number."""
    made: dict[Key, Published] = {}
    for row in _rows("paper.csv"):
        key = row["table"], row["dataset"], row["pretrained"], row["algorithm"], row["variant"], row["metric"]
        made[key] = Published(float(row["mean"]), *(float(row[name]) if row[name] else None for name in ("stderr", "std")))
    return MappingProxyType(made)


@lru_cache(maxsize=1)
def field() -> tuple[Mapping[str, str], ...]:
    """The best that others report: dataset, method, acc in percent, augmentation (yes, no, unknown), trained_from_scratch,
    and a note."""
    return tuple(MappingProxyType(row) for row in _rows("field.csv"))


def _rows(name: str) -> list[dict[str, str]]:
    text = (files(__package__) / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
