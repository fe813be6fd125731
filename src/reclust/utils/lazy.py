"""Optional dependencies."""

from __future__ import annotations

import importlib
from types import ModuleType


def require(module: str, *, purpose: str, extra: str = "data") -> ModuleType:
    """Import an optional module, or raise an ImportError that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{purpose} needs {package}: pip install 'reclust[{extra}]' "
                          f"(or {package} alone).") from error
