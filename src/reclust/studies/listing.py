"""The catalog as a file, for who only wants to know what there is: studies come with torch, which takes seconds to import."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

COLUMNS = ("name", "runs", "mini", "about", "protocol")
PUBLISHED = ("acc-table", "contrastive")
"""Studies whose protocols are the paper's."""


def listed() -> list[dict[str, Any]]:
    """The named studies: name, how many runs it has, how many its small form, and what it is about."""
    return [{"name": row["name"], "runs": int(row["runs"]), "mini": int(row["mini"]), "about": row["about"]} for row in _rows()]


def as_published(study: str, protocol: Mapping[str, Any] | None) -> bool:
    """Whether a study of this name has the protocol, as plain JSON, that one of the catalog has, or a study of one's own one
    of the paper's: a shorter training is nothing to hold against the paper's numbers."""
    known = {row["name"]: json.loads(row["protocol"]) for row in _rows()}
    # Older files lack newer fields, which were at their defaults.
    return protocol is not None and any(
        protocol["kind"] == one["kind"] and protocol["fields"].items() <= one["fields"].items()
        for one in ([known[study]] if study in known else [known[name] for name in PUBLISHED]))


def _rows() -> list[dict[str, str]]:
    """A test holds the file equal to `computed`; tools/catalog.py writes it."""
    return list(csv.DictReader((files(__package__) / "catalog.csv").read_text(encoding="utf-8").splitlines()))


def computed() -> list[dict[str, str]]:
    """The same from the studies themselves."""
    from ..utils.values import to_json
    from .catalog import named, names

    each = [named(name) for name in names()]
    return [dict(zip(COLUMNS, (one.name, str(one.n_runs), str(one.mini().n_runs), one.about,
                               json.dumps(to_json(one.protocol))), strict=True)) for one in each]
