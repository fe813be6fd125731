"""Frozen dataclasses that check their fields and can be stored as JSON."""

import dataclasses
import numbers
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from math import inf, isfinite
from typing import Any, TypeVar

import numpy as np
from typing_extensions import dataclass_transform

T = TypeVar("T")
_KINDS: dict[str, type] = {}


def integer(*, default: Any = MISSING, least: int = 0, optional: bool = False) -> Any:
    """Field of a value: an int of at least `least`, or None where `optional`."""
    return _checked(lambda name, given: check_int(name, given, least), default, optional)


def integers(*, default: Any = MISSING, least: int = 0) -> Any:
    """Field of a value: a tuple of ints of at least `least`."""
    return _checked(lambda name, given: check_ints(name, given, least), default)


def number(*, default: Any = MISSING, least: float = -inf, above: float = -inf, most: float = inf,
           below: float = inf, optional: bool = False, convert: bool = True) -> Any:
    """Field of a value: a float within these bounds; `convert=False` keeps ints in run keys."""
    bounds = {"at least": (least, operator.ge), "above": (above, operator.gt),
              "at most": (most, operator.le), "below": (below, operator.lt)}
    finite = {word: bound for word, bound in bounds.items() if isfinite(bound[0])}
    needed = " and ".join(f"{word} {bound:g}" for word, (bound, _) in finite.items())

    def check(name: str, given: Any) -> float:
        checked = check_float(name, given)
        _check(all(fits(checked, bound) for bound, fits in finite.values()), name, needed, given)
        return checked if convert else given

    return _checked(check, default, optional)


def choice(*options: Any, default: Any = MISSING) -> Any:
    """Field of a value: one of these options, the first of them by default."""

    def check(name: str, given: Any) -> Any:
        _check(given in options, name, f"one of {', '.join(map(repr, options))}", given)
        return given

    return _checked(check, options[0] if default is MISSING else default)


def check_int(name: str, given: Any, least: int) -> int:
    is_integer = isinstance(given, numbers.Integral) and not isinstance(given, bool)
    _check(is_integer and given >= least, name, f"an integer of at least {least}", given)
    return int(given)


def check_ints(name: str, given: Any, least: int) -> tuple[int, ...]:
    _check(isinstance(given, Iterable) and not isinstance(given, str), name,
           f"a sequence of integers, such as ({given!r},)", given)
    return tuple(check_int(f"each number in {name}", number, least) for number in given)


def check_float(name: str, given: Any) -> float:
    _check(isinstance(given, numbers.Real) and not isinstance(given, bool), name, "a number", given)
    return float(given)


def _check(ok: bool, name: str, needed: str, given: Any) -> None:
    if not ok:
        raise ValueError(f"{name} must be {needed}, got {given!r}.")


def _checked(check: Callable[[str, Any], Any], default: Any, optional: bool = False) -> Any:
    return dataclasses.field(default=default, metadata={"check": lambda name, given: (
        None if optional and given is None else check(name, given))})


class Shorthand(ABC):
    """Base of values that stand for another value: they equal it, and files store it instead."""

    @abstractmethod
    def expand(self) -> Any: ...

    def __eq__(self, other: object) -> bool:
        return bool(self.expand() == expanded(other))

    def __hash__(self) -> int:
        return hash(self.expand())


def expanded(thing: Any) -> Any:
    return thing.expand() if isinstance(thing, Shorthand) else thing


@dataclass_transform(frozen_default=True,
                     field_specifiers=(dataclasses.field, integer, integers, number, choice))
def value(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass that can be stored in a file by its class name.

    Parameters
    ----------
    cls
        Class whose annotated fields hold numbers, strings, None, other values, and sequences and
        mappings of these.

    Examples
    --------
    >>> from reclust import value
    >>> @value
    ... class Attraction:
    ...     strength: float = 0.5
    >>> Attraction(strength=0.2)
    Attraction(strength=0.2)
    """
    finish = getattr(cls, "__post_init__", lambda self: None)

    def check_fields(self: Any) -> None:
        for field in dataclasses.fields(self):
            if "check" in field.metadata:
                checked = field.metadata["check"](field.name, getattr(self, field.name))
                object.__setattr__(self, field.name, checked)
        finish(self)

    cls.__post_init__ = check_fields  # type: ignore[attr-defined]
    kind = dataclasses.dataclass(frozen=True, eq=not issubclass(cls, Shorthand))(cls)
    known = _KINDS.get(kind.__name__, kind)
    if _full_name(known) != _full_name(kind):  # a notebook cell that runs again redefines classes
        raise ValueError(f"A value named {kind.__name__} exists already in {known.__module__}.")
    _KINDS[kind.__name__] = kind
    return kind


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def same(first: Any, second: Any) -> bool:
    """Compare two objects that may hold tensors or arrays."""
    with suppress(RuntimeError, ValueError):  # tensors and arrays have no single truth value
        return first is second or bool(first == second)
    if type(first) is not type(second):
        return False
    if dataclasses.is_dataclass(first):
        return all(same(getattr(first, field.name), getattr(second, field.name))
                   for field in dataclasses.fields(first))
    if isinstance(first, (tuple, list)):
        return len(first) == len(second) and all(map(same, first, second))
    equal_shapes = getattr(first, "shape", None) == getattr(second, "shape", 0)
    return equal_shapes and bool((first == second).all())


@value
class NotStored:
    """Placeholder in a file for something that cannot be stored, such as a custom module."""

    what: str


def storable(thing: Any) -> Any:
    """Return the thing if it can be written to a file, else a `NotStored`."""
    with suppress(TypeError):
        to_json(thing)
        return thing
    return NotStored(type(thing).__name__)


def to_json(thing: Any, *, defaults: bool = True) -> Any:
    """Convert to plain JSON, which without `defaults` stays the same when a class gains a field."""
    if isinstance(thing, np.generic):
        thing = thing.item()
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    convert = partial(to_json, defaults=defaults)
    if isinstance(thing, (tuple, list)):
        return [convert(item) for item in thing]
    if isinstance(thing, Mapping):
        return {"mapping": {str(name): convert(item) for name, item in thing.items()}}
    thing = expanded(thing)
    kind = type(thing)
    if _full_name(_KINDS.get(kind.__name__, type)) != _full_name(kind):
        raise TypeError(f"{kind.__name__} cannot be written to a file: decorate the class with "
                        "@reclust.value, and import its module before loading the file.")
    fields = {field.name: convert(getattr(thing, field.name)) for field in dataclasses.fields(thing)
              if defaults or getattr(thing, field.name) != default_of(field)}
    return {"kind": kind.__name__, "fields": fields}


def default_of(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def from_json(data: Any) -> Any:
    """Invert `to_json`; sequences come back as tuples, and only registered classes are created."""
    if isinstance(data, list):
        return tuple(map(from_json, data))
    if not isinstance(data, dict):
        return data
    if data.keys() == {"mapping"}:
        return {name: from_json(item) for name, item in data["mapping"].items()}
    fields = {name: from_json(item) for name, item in data["fields"].items()}
    return kind_named(data["kind"])(**fields)


def kind_named(name: str) -> type:
    rooms = ("interventions", "objectives", "representations", "studies")
    for package in ("reclust", *(f"reclust.{room}" for room in rooms)):
        if name not in _KINDS:
            import_all(package)
    if name not in _KINDS:
        near = "".join(f"Did you mean {kind!r}? " for kind in get_close_matches(name, _KINDS, n=1))
        raise ValueError(f"Unknown kind of value {name!r}. {near}Import the module that defines it "
                         "first, on the command line with reclust --import MODULE.")
    return _KINDS[name]


def read_as(name: str, kind: type) -> None:
    """Read values stored under a class's former name."""
    _KINDS.setdefault(name, kind)


def import_all(package: str) -> None:
    """Import every public name of a package, which registers the values it defines."""
    module = import_module(package)
    for name in module.__all__:
        getattr(module, name)


def change(value: Any, changes: Mapping[str, Any]) -> Any:
    """Replace fields of a value; a mapping changes fields of the value in that field."""
    parts = {name: getattr(value, name, None) for name in changes}
    return dataclasses.replace(value, **{
        name: change(parts[name], new)
        if isinstance(new, Mapping) and dataclasses.is_dataclass(parts[name]) else new
        for name, new in changes.items()})


def is_missing(cell: Any) -> bool:
    """Tell whether it is None, NaN or a missing value of pandas, which cannot be compared."""
    return not isinstance(cell, str) and str(cell) in ("None", "nan", "<NA>", "NaT")


def records(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Flatten settings, also as JSON, or provenance to pairs of a dotted name and a text."""
    value, kind = expanded(value), ""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        value, kind = parts, type(value).__name__
    elif isinstance(value, Mapping) and value.keys() in ({"kind", "fields"}, {"mapping"}):
        value, kind = value.get("fields", value.get("mapping")), value.get("kind", "")
    if isinstance(value, (list, tuple)) and any(
            isinstance(part, Mapping) or dataclasses.is_dataclass(part) for part in value):
        value = dict(enumerate(value, 1))
    if isinstance(value, Mapping):
        return [(name, kind)] * bool(name and kind) + [
            line for key, part in value.items()
            for line in records(part, f"{name}.{key}".lstrip("."))]
    return [(name, _text(value))]


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)
