"""Studies by name."""

from __future__ import annotations

from collections.abc import Callable

from ..study import Study

_CATALOG: dict[str, Callable[[], Study]] = {}


def names() -> list[str]:
    return list(_CATALOG)


def named(name: str) -> Study:
    """A study by its name; NAME-mini is its small form."""
    known = name.removesuffix("-mini")
    if known not in _CATALOG:
        raise ValueError(f"There is no study named {name!r}: choose among {', '.join(_CATALOG)}, or give a file NAME.toml.")
    study = _CATALOG[known]()
    return study.mini() if name != known else study


def study(make: Callable[[], Study]) -> Callable[[], Study]:
    """Decorator: a function without arguments becomes an entry of the catalog, under its name with hyphens.

    tools/catalog.py then writes it into the file that `reclust study list` reads.
    """
    _CATALOG[make.__name__.replace("_", "-")] = make
    return make
