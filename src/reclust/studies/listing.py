"""The catalog as a file, for who only wants to know what there is: studies come with torch, which takes seconds to import."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Any

COLUMNS = ("name", "runs", "mini", "about")


def listed() -> list[dict[str, Any]]:
    """The named studies: name, how many runs it has, how many its small form, and what it is about. A test holds the file equal
    to `computed`; tools/catalog.py writes it."""
    rows = csv.DictReader((files(__package__) / "catalog.csv").read_text(encoding="utf-8").splitlines())
    return [{**row, "runs": int(row["runs"]), "mini": int(row["mini"])} for row in rows]


def computed() -> list[dict[str, Any]]:
    """The same from the studies themselves."""
    from .catalog import named, names

    each = [named(name) for name in names()]
    return [dict(zip(COLUMNS, (one.name, one.n_runs, one.mini().n_runs, one.about), strict=True)) for one in each]
