"""The registry of named studies."""

from typing import Any

from ..study import Study, Variant

_CATALOG: dict[str, Study] = {}


def names() -> list[str]:
    """List the named studies."""
    return list(_CATALOG)


def named(name: str) -> Study:
    """Return a study by its name, or its small form by NAME-mini."""
    known = name.removesuffix("-mini")
    if known not in _CATALOG:
        raise ValueError(f"There is no study named {name!r}: choose from {', '.join(_CATALOG)}, or "
                         "give a file NAME.toml.")
    return _CATALOG[known].mini() if name != known else _CATALOG[known]


def add(name: str, about: str, variants: tuple[Variant, ...], **fields: Any) -> Study:
    """Add a study to the catalog; tools/catalog.py updates what `reclust study list` shows."""
    _CATALOG[name] = Study(name, variants, about, **fields)
    return _CATALOG[name]
