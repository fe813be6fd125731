"""The registry of named studies, and the steps of the paper's interventions."""

from dataclasses import replace
from typing import Any

from ...interventions import Every, KaimingNoise, Recluster, ResetMomentum, SoftReset, Step
from ..published import base_name
from ..study import Study, Variant

RESET = SoftReset(0.8, KaimingNoise())
RECLUSTER = Recluster(rows="first")
MOMENTUM = ResetMomentum()
_CATALOG: dict[str, Study] = {}


def names() -> list[str]:
    return list(_CATALOG)


def named(name: str) -> Study:
    """Return a study by its name; NAME-mini is its small form, see `published.FORMS`."""
    full = name.removesuffix("-mini")
    known = base_name(full)
    if known not in _CATALOG:
        raise ValueError(f"There is no study named {name!r}: choose from {', '.join(_CATALOG)}, or "
                         "give a file NAME.toml.")
    study = _CATALOG[known]
    if full != known:
        study = study.program() if full.endswith("-program") else replace(
            study, name=full, precision="tf32")
    return study if name == full else study.mini()


def add(name: str, about: str, variants: tuple[Variant, ...], **fields: Any) -> None:
    """Add a study to the catalog; tools/catalog.py updates what `reclust study list` shows."""
    _CATALOG[name] = Study(name, variants, about, **fields)


def every(*steps: Step, interval: int = 20) -> Every:
    return Every(interval, steps)
