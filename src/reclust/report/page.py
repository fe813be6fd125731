"""A page from plain data: the style, the script and the data, joined into one file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
from collections.abc import Mapping
from importlib.resources import files as resources
from typing import Any, Literal

import numpy as np

from ..utils.files import check_writable, write_text

PARTS = ("dom", "table", "controls", "curves", "scene", "sheet", "confusion")
SCRIPTS = {"studies": (*PARTS, "record", "figures", "main"), "fit": (*PARTS, "bars", "fit")}
"""What shows studies, and what a single fit, in the order in which scripts are joined; each may use those before it."""


def page(title: str, data: Mapping[str, Any], *, view: Literal["studies", "fit"] = "studies") -> str:
    """The whole page. data: what the last script of the view reads, as plain dicts, lists, strings and numbers."""
    style, frame = _asset("page.css"), _asset("page.html")
    script = '"use strict";\n(() => {\n' + "\n".join(_asset(f"{name}.js") for name in SCRIPTS[view]) + "\n})();\n"
    # Nothing but our own style and script may run or load, whatever the names in the data are.
    policy = f"default-src 'none'; img-src data:; style-src {_allowed(style)}; script-src {_allowed(script)}"
    parts = {"title": html.escape(title), "policy": html.escape(policy), "style": style, "script": script,
             "data": embedded(data)}
    pieces = frame.split("@@")  # text, name, text, name, …: what is put in is never looked at again
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def write(path: str | os.PathLike[str], title: str, data: Mapping[str, Any], *,
          view: Literal["studies", "fit"] = "studies") -> None:
    """The page as a file, whole or not at all."""
    check_writable(path)
    write_text(path, page(title, data, view=view))


def embedded(data: Any) -> str:
    """JSON that cannot end the element it stands in; numbers with four digits, null for what is no number."""
    text = json.dumps(_plain(data), separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(thing: Any) -> Any:
    if isinstance(thing, Mapping):
        return {str(name): _plain(part) for name, part in thing.items()}
    if isinstance(thing, np.ndarray):
        thing = thing.tolist()
    if isinstance(thing, (list, tuple)):
        return [_plain(part) for part in thing]
    if isinstance(thing, np.generic):
        thing = thing.item()
    if isinstance(thing, float):
        if not math.isfinite(thing):
            return None
        short = float(f"{thing:.4g}")
        return int(short) if short.is_integer() else short
    return thing


def _allowed(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return resources(__package__).joinpath("assets").joinpath(name).read_text(encoding="utf-8")
