"""Join style, scripts and data into one HTML page that loads nothing else."""

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

from ..utils.files import write_text

View = Literal["studies", "fit"]
PARTS = ("dom", "table", "controls", "curves", "select", "scene", "sheet", "confusion")
SCRIPTS = {"studies": (*PARTS, "record", "figures", "main"), "fit": (*PARTS, "bars", "tree", "fit")}
"""Scripts of each view in loading order; a script may use those before it."""


def page(title: str, data: Mapping[str, Any], *, view: View = "studies") -> str:
    """Return the page as text; `data` is what the last script of the view reads."""
    style, frame = _asset("page.css"), _asset("page.html")
    scripts = "\n".join(_asset(f"{name}.js") for name in SCRIPTS[view])
    script = f'"use strict";\n(() => {{\n{scripts}\n}})();\n'
    # Only our own style and script may run, whatever the names in the data contain.
    policy = (f"default-src 'none'; img-src data:; style-src {_csp_hash(style)}; "
              f"script-src {_csp_hash(script)}")
    parts = {"title": html.escape(title), "policy": html.escape(policy), "style": style,
             "script": script, "data": to_json(data)}
    pieces = frame.split("@@")  # text, name, text, name, …: inserted parts are not searched again
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def write(path: str | os.PathLike[str], title: str, data: Mapping[str, Any], *,
          view: View = "studies") -> None:
    write_text(path, page(title, data, view=view))


def to_json(data: Any) -> str:
    """Encode data so that it cannot end its HTML element; four digits per number, NaN as null."""
    text = json.dumps(_plain(data), separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(name): _plain(part) for name, part in data.items()}
    if isinstance(data, (np.ndarray, np.generic)):
        data = data.tolist()
    if isinstance(data, (list, tuple)):
        return [_plain(part) for part in data]
    if isinstance(data, float):
        if not math.isfinite(data):
            return None
        rounded = float(f"{data:.4g}")
        return int(rounded) if rounded.is_integer() else rounded
    return data


def _csp_hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return resources(__package__).joinpath("assets").joinpath(name).read_text(encoding="utf-8")
