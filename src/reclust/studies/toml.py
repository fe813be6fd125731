"""Studies as TOML files that hold only what differs from the defaults.

A table with a `kind` is a value of that class: {kind = "SoftReset", keep = 0.7}. A table without
`kind` changes fields of the default in its place; {kind = "None"} is None. A variant may be given
by the name that it has in the paper or in the base.
"""

import dataclasses
import difflib
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..estimators.presets import PAPER_INTERVENTIONS
from ..utils.exceptions import require
from ..utils.values import default_of, expanded, kind_named
from .study import Study, Variant


def read_study(path: str | os.PathLike[str]) -> Study:
    """Read a study from a TOML file.

    `base` names a study of the catalog to start from; `name` defaults to the name of the file.
    """
    path = Path(path)
    try:
        study = _study({"name": path.stem, **read_toml(path)})
        study.groups()  # so that errors name the file
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    return study


def read_toml(path: Path) -> dict[str, Any]:
    module = "tomllib" if sys.version_info >= (3, 11) else "tomli"
    reader = require(module, purpose="Reading TOML files", extra="study")
    return reader.loads(path.read_text(encoding="utf-8"))


def _study(given: Mapping[str, Any]) -> Study:
    from .catalog import named

    _check_names("A study", given, ["base", *_defaults(Study)])
    base = named(str(given["base"])) if "base" in given else None
    defaults = _defaults(base or Study)
    made = {name: _value(part, defaults[name]) for name, part in given.items()
            if name not in ("base", "variants")}
    if "variants" in given:
        known = {name: Variant(name, one) for name, one in PAPER_INTERVENTIONS.items()}
        known |= {variant.name: variant for variant in (base.variants if base else ())}
        made["variants"] = [_variant(one, known) for one in given["variants"]]
    if base is None:
        return Study(**made)
    if made["name"] != base.name:
        made.setdefault("about", f"A form of {base.name}.")
    return dataclasses.replace(base, **made)


def _variant(given: Any, known: Mapping[str, Variant]) -> Variant:
    if isinstance(given, Mapping):
        return _value({"kind": "Variant", **given})
    if given not in known:
        raise ValueError(f"There is no variant named {given!r}: choose from {', '.join(known)}, "
                         'or describe it: {name = "…", intervention = …}.')
    return known[given]


def _value(given: Any, default: Any = None) -> Any:
    if isinstance(given, list):
        return tuple(_value(item) for item in given)
    if not isinstance(given, Mapping):
        return given
    parts, kind = dict(given), given.get("kind")
    parts.pop("kind", None)
    if kind == "None":
        return None
    if kind is None and not dataclasses.is_dataclass(default):
        return {name: _value(part) for name, part in parts.items()}
    make: Callable[..., Any] = partial(dataclasses.replace, default)
    defaults = _defaults(default if kind is None else (make := kind_named(str(kind))))
    _check_names(kind or type(default).__name__, parts, list(defaults))
    return make(**{name: _value(part, defaults[name]) for name, part in parts.items()})


def _defaults(thing: Any) -> dict[str, Any]:
    """Map the fields of a class to their defaults, or those of a value to what they hold."""
    return {field.name: default_of(field) if isinstance(thing, type) else getattr(thing, field.name)
            for field in dataclasses.fields(thing) if field.init}


def _check_names(what: str, given: Iterable[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f", did you mean {close[0]!r}?" if close else "."
            raise ValueError(f"{what} has no {name!r}{hint} It has {', '.join(known)}.")


def write_study(study: Study) -> str:
    """Return the study as the text of a TOML file."""
    lines = []
    for field in dataclasses.fields(study):
        given = getattr(study, field.name)
        if field.name == "variants":
            lines += ["variants = [", *(f"  {_text(one, kind=False)}," for one in given), "]"]
        elif given != default_of(field):
            lines.append(f"{field.name} = {_text(given)}")
    return "\n".join(lines) + "\n"


def _text(given: Any, *, kind: bool = True) -> str:
    given = expanded(given)
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
        pairs = [f"{json.dumps(name)} = {_text(part)}" for name, part in given.items()]
    else:
        changed = {name: part for name, default in _defaults(type(given)).items()
                   if (part := getattr(given, name)) != default}
        named = {"kind": type(given).__name__, **changed} if kind else changed
        pairs = [f"{name} = {_text(part)}" for name, part in named.items()]
    return f"{{{', '.join(pairs)}}}"
