"""Packages that import a public name when it is first used: who reads a store or asks for help need not wait for torch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package (PEP 562). homes: module of the package -> the names it gives, with spaces
    between them. The package's modules can be asked for as well, so that `import reclust` is enough for `reclust.data.load`."""
    home = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name in home:
            found = getattr(import_module(f"{package}.{home[name]}"), name)
        elif not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
            found = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted({*vars(sys.modules[package]), *home})


def import_all(package: str) -> None:
    """Everything that a package gives."""
    whole = import_module(package)
    for name in whole.__all__:
        getattr(whole, name)
