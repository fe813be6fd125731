"""Studies as TOML files that hold only what differs from the defaults.

A table with a `kind` is a value of that class: {kind = "SoftReset", keep = 0.7}, {kind = "None"}.
Without, it changes fields of the default in its place. Variants may be names in paper or base.
"""

import dataclasses
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
    """Read a study from a TOML file, whose `base` names a study of the catalog to start from."""
    path = Path(path)
    try:
        study = _study({"name": path.stem, **read_toml(path)})
        study.groups()  # so that errors name the file
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    return study


def read_toml(path: Path) -> dict[str, Any]:
    module = "tomllib" if sys.version_info >= (3, 11) else "tomli"
    reader = require(module, purpose="Reading TOML files", extra="study")
    return reader.loads(path.read_text(encoding="utf-8"))


def _study(content: Mapping[str, Any]) -> Study:
    from .catalog import named

    _check_names("A study", content, ["base", *_defaults(Study)])
    base = named(str(content["base"])) if "base" in content else None
    defaults = _defaults(base or Study)
    fields = {name: _value(part, defaults[name]) for name, part in content.items()
              if name not in ("base", "variants")}
    if "variants" in content:
        known = {name: Variant(name, step) for name, step in PAPER_INTERVENTIONS.items()}
        known |= {variant.name: variant for variant in (base.variants if base else ())}
        fields["variants"] = [_variant(variant, known) for variant in content["variants"]]
    if base is None:
        return Study(**fields)
    if fields["name"] != base.name:
        fields.setdefault("about", f"A form of {base.name}.")
    return dataclasses.replace(base, **fields)


def _variant(entry: Any, known: Mapping[str, Variant]) -> Variant:
    if isinstance(entry, Mapping):
        return _value({"kind": "Variant", **entry})
    if entry not in known:
        raise ValueError(f"There is no variant named {entry!r}: choose from {', '.join(known)}, "
                         'or describe it: {name = "…", intervention = …}.')
    return known[entry]


def _value(entry: Any, default: Any = None) -> Any:
    if isinstance(entry, list):
        return tuple(_value(item) for item in entry)
    if not isinstance(entry, Mapping):
        return entry
    parts, kind = dict(entry), entry.get("kind")
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


def _check_names(what: str, names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{what} has no {name!r}; it has {', '.join(known)}.")


def write_study(study: Study) -> str:
    """Return the study as the text of a TOML file."""
    lines = []
    for field in dataclasses.fields(study):
        if field.name == "variants":
            variants = (f"  {_text(variant, kind=False)}," for variant in study.variants)
            lines += ["variants = [", *variants, "]"]
        elif (entry := getattr(study, field.name)) != default_of(field):
            lines.append(f"{field.name} = {_text(entry)}")
    return "\n".join(lines) + "\n"


def _text(entry: Any, *, kind: bool = True) -> str:
    entry = expanded(entry)
    if entry is None:
        return '{kind = "None"}'
    if isinstance(entry, bool):
        return str(entry).lower()
    if isinstance(entry, (int, float)):
        return repr(entry)
    if isinstance(entry, str):
        return _quoted(entry)
    if isinstance(entry, (tuple, list)):
        return f"[{', '.join(map(_text, entry))}]"
    if isinstance(entry, Mapping):
        pairs = [f"{_quoted(name)} = {_text(part)}" for name, part in entry.items()]
    else:
        changed = {name: part for name, default in _defaults(type(entry)).items()
                   if (part := getattr(entry, name)) != default}
        named = {"kind": type(entry).__name__, **changed} if kind else changed
        pairs = [f"{name} = {_text(part)}" for name, part in named.items()]
    return f"{{{', '.join(pairs)}}}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
