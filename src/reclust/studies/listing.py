"""The catalog as a CSV file, which tools/catalog.py writes: listing it does not import torch."""

import csv
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

PUBLISHED = ("acc-table", "contrastive")  # studies that follow the paper's protocols


def listed() -> list[dict[str, Any]]:
    """List the named studies, with their numbers of runs and those of their small forms."""
    return [{"name": row["name"], "runs": int(row["runs"]), "mini": int(row["mini"]),
             "about": row["about"]} for row in _rows()]


def as_published(study: str, protocol: Mapping[str, Any] | None) -> bool:
    """Tell whether a stored study can be compared: a custom one if its protocol is the paper's."""
    known = {row["name"]: json.loads(row["protocol"]) for row in _rows()}
    candidates = [known[study]] if study in known else [known[name] for name in PUBLISHED]
    # Older files lack newer fields, which had their default values.
    return protocol is not None and any(
        protocol["kind"] == one["kind"] and protocol["fields"].items() <= one["fields"].items()
        for one in candidates)


def _rows() -> list[dict[str, str]]:
    text = (files(__package__) / "catalog.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
