"""Studies as TOML files that hold only what differs from the defaults.

A value is a table whose `kind` names its class: {kind = "SoftReset", keep = 0.7}. A table without `kind` changes fields of
the default in its place; {kind = "None"} is None. A variant may be the name of one of the paper's four.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..estimators.presets import PAPER_INTERVENTIONS
from ..utils.lazy import require
from ..utils.values import default_of, expanded, kind_named
from .checks import several, text
from .study import Study, Variant


def read_study(path: str | os.PathLike[str]) -> Study:
    """The study that a file describes. `base` names a study of the catalog to start from; the name defaults to the file's."""
    path = Path(path)
    try:
        study = study_of({"name": path.stem, **read_toml(path)})
        study.groups()  # raises where variants cannot be trained, while the file can still be named
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error
    return study


def read_toml(path: Path) -> dict[str, Any]:
    return _reader().loads(path.read_text(encoding="utf-8"))


def _reader() -> ModuleType:
    """Python's own from 3.11 on."""
    return require("tomllib" if sys.version_info >= (3, 11) else "tomli", purpose="Reading TOML files", extra="study")


def study_of(given: Mapping[str, Any]) -> Study:
    """A study from the plain tables, lists, strings and numbers of a TOML file."""
    from .catalog import named

    given = dict(given)
    base = given.pop("base", None)
    defaults = named(text("base", base)) if base is not None else Study("study", variants=(Variant("none"),))
    _check_names("a study", given, _fields(Study))
    if base is None and "variants" not in given:
        raise ValueError('A study needs variants, such as variants = ["none", "brb"], or a base, such as base = "acc-table".')
    made: dict[str, Any] = {name: _value(part, getattr(defaults, name)) for name, part in given.items() if name != "variants"}
    if "variants" in given:
        made["variants"] = _variants(given["variants"], defaults if base else None)
    if base is not None and given.get("name") != base:
        made.setdefault("about", f"A form of {base}.")
    return dataclasses.replace(defaults, **made)


def _variants(given: Any, base: Study | None) -> tuple[Variant, ...]:
    """Described in full, or by a name that the base has or the paper."""
    for one in several("variants", given):
        if not isinstance(one, (str, Mapping)):
            raise ValueError('each of variants must be a name such as "brb", or a table such as {name = "mine", …}, '
                             f"got {one!r}.")
    known = {name: Variant(name, intervention) for name, intervention in PAPER_INTERVENTIONS.items()}
    known |= {variant.name: variant for variant in base.variants} if base else {}
    unknown = [one for one in given if isinstance(one, str) and one not in known]
    if unknown:
        raise ValueError(f"There is no variant named {unknown[0]!r}: choose among {', '.join(known)}, or describe it.")
    return tuple(known[one] if isinstance(one, str) else _value({"kind": "Variant", **one}) for one in given)


def _value(given: Any, default: Any = None) -> Any:
    if isinstance(given, list):
        return tuple(_value(item) for item in given)
    if not isinstance(given, Mapping):
        return given
    parts = {name: part for name, part in given.items() if name != "kind"}
    if given.get("kind") == "None":
        return None
    if "kind" in given:
        kind = kind_named(given["kind"])
        _check_names(given["kind"], parts, _fields(kind))
        defaults = {field.name: default_of(field) for field in dataclasses.fields(kind)}
        return kind(**{name: _value(part, defaults[name]) for name, part in parts.items()})
    if dataclasses.is_dataclass(default) and not isinstance(default, type):
        _check_names(type(default).__name__, parts, _fields(type(default)))
        return dataclasses.replace(default, **{name: _value(part, getattr(default, name)) for name, part in parts.items()})
    return {name: _value(part) for name, part in parts.items()}


def _fields(kind: type) -> list[str]:
    return [*(["base"] if kind is Study else []), *(field.name for field in dataclasses.fields(kind) if field.init)]


def _check_names(what: str, given: Iterable[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            raise ValueError(f"{what} has no {name!r}{f', did you mean {close[0]!r}?' if close else '.'} "
                             f"It has {', '.join(known)}.")


def write_study(study: Study) -> str:
    """The study as the text of a TOML file."""
    lines = []
    for field in dataclasses.fields(study):
        given = getattr(study, field.name)
        if field.name == "variants":
            lines += ["variants = [", *(f"  {_text(one, kind=False)}," for one in given), "]"]
        elif given != default_of(field):
            lines.append(f"{field.name} = {_text(given)}")
    return "\n".join(lines) + "\n"


def _text(given: Any, *, kind: bool = True) -> str:
    if given is None:
        return '{kind = "None"}'
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, (int, float)):
        return repr(given)
    if isinstance(given, str):
        return json.dumps(given)
    if isinstance(given, (tuple, list)):
        return f"[{', '.join(map(_text, given))}]"
    if isinstance(given, Mapping):
        return f"{{{', '.join(f'{json.dumps(name)} = {_text(part)}' for name, part in given.items())}}}"
    given = expanded(given)
    differing = [(field.name, getattr(given, field.name)) for field in dataclasses.fields(given)
                 if getattr(given, field.name) != default_of(field)]
    named = [("kind", type(given).__name__), *differing] if kind else differing
    return f"{{{', '.join(f'{name} = {_text(part)}' for name, part in named)}}}"
