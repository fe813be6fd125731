"""Choices as values: frozen dataclasses that can be compared, printed, written to JSON and read back without pickle."""

from __future__ import annotations

import dataclasses
import difflib
import numbers
import operator
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from typing_extensions import dataclass_transform

from .lazy import import_all

T = TypeVar("T")
_KINDS: dict[str, type] = {}


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """Class decorator: a frozen dataclass whose instances can be stored in a file by their class name."""
    made = dataclasses.dataclass(frozen=True)(cls)
    known = _KINDS.setdefault(made.__name__, made)
    if (known.__module__, known.__qualname__) != (made.__module__, made.__qualname__):
        raise ValueError(f"A value named {made.__name__} exists already in {known.__module__}: choose another class name.")
    _KINDS[made.__name__] = made
    return made


def same(one: Any, other: Any) -> bool:
    """Whether two things are equal, also where they hold tensors or arrays, which are not equal or different as a whole."""
    try:
        return one is other or bool(one == other)
    except (RuntimeError, ValueError):
        pass
    if type(one) is not type(other):
        return False
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(one))
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    return getattr(one, "shape", None) == getattr(other, "shape", 0) and bool((one == other).all())


def whole(name: str, given: Any, least: int) -> int:
    """`given` as an int, checked; numpy's integers are welcome, floats and booleans are not."""
    try:
        number = operator.index(given)
    except TypeError:
        number = least - 1
    if isinstance(given, (bool, np.bool_)) or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {given!r}.")
    return number


def wholes(name: str, one: str, given: Any, least: int) -> tuple[int, ...]:
    """`given`, called `name`, as whole numbers, each of which an error calls `one`."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"{name} must be several whole numbers, such as ({given!r},), got {given!r}.")
    return tuple(whole(one, number, least) for number in given)


def real(name: str, given: Any) -> float:
    """`given` as a float; numpy's numbers are welcome, booleans and strings are not."""
    if isinstance(given, (bool, np.bool_)) or not isinstance(given, numbers.Real):
        raise ValueError(f"{name} must be a number, got {given!r}.")
    return float(given)


@value
class NotStored:
    """Stands in a loaded file for something that could not be written, such as a user's own module or function."""

    what: str


def storable(thing: Any) -> Any:
    """The thing itself where it can be written to a file, else a `NotStored` in its place."""
    return thing if _writable(thing) else NotStored(type(thing).__name__)


def _writable(thing: Any) -> bool:
    try:
        to_json(thing)
    except TypeError:
        return False
    return True


def to_json(thing: Any) -> Any:
    """Plain JSON for a value, or for numbers, strings, None, sequences and mappings of such."""
    if isinstance(thing, np.generic):
        thing = thing.item()
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    if isinstance(thing, (tuple, list)):
        return [to_json(item) for item in thing]
    if isinstance(thing, Mapping):
        return {"mapping": {str(name): to_json(item) for name, item in thing.items()}}
    kind = _kind_of(thing)
    return {"kind": kind, "fields": {field.name: to_json(getattr(thing, field.name)) for field in dataclasses.fields(thing)}}


def _kind_of(thing: Any) -> str:
    """The name under which files have it."""
    kind = type(thing)
    known = _KINDS.get(kind.__name__)  # of the same name and place where a notebook's cell was run again
    if known is None or (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise TypeError(
            f"{kind.__name__} cannot be written to a file: decorate the class with @reclust.value, "
            "and import its module before loading the file."
        )
    return kind.__name__


def essential_json(thing: Any) -> Any:
    """Like `to_json`, without fields that hold their default: it stays the same when a class gains a field."""
    if isinstance(thing, (tuple, list)):
        return [essential_json(item) for item in thing]
    if isinstance(thing, Mapping):
        return {"mapping": {str(name): essential_json(item) for name, item in thing.items()}}
    if not dataclasses.is_dataclass(thing):
        return to_json(thing)
    chosen = {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)
              if getattr(thing, field.name) != default_of(field)}
    return {"kind": _kind_of(thing), "fields": {name: essential_json(item) for name, item in chosen.items()}}


def default_of(field: dataclasses.Field[Any]) -> Any:
    """What a field holds unless told otherwise; `dataclasses.MISSING` where it has to be told."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def from_json(data: Any) -> Any:
    """The inverse of `to_json`; sequences come back as tuples. Only registered classes are ever created."""
    if isinstance(data, list):
        return tuple(from_json(item) for item in data)
    if not isinstance(data, dict):
        return data
    if data.keys() == {"mapping"}:
        return {name: from_json(item) for name, item in data["mapping"].items()}
    if data.keys() != {"kind", "fields"}:
        raise ValueError(f"Not a stored value: expected the keys 'kind' and 'fields', found {sorted(data)}.")
    return kind_named(data["kind"])(**{name: from_json(item) for name, item in data["fields"].items()})


def kind_named(name: str) -> type:
    """The class of the values that files call by this name; those of this library are imported when first named."""
    for package in ("reclust", "reclust.studies"):
        if name not in _KINDS:
            import_all(package)
    if name not in _KINDS:
        near = difflib.get_close_matches(name, _KINDS, n=1)
        meant = f"Did you mean {near[0]!r}? One of your own" if near else "It"
        raise ValueError(f"Unknown kind of value {name!r}. {meant} is known once the module that defines it is imported, in a "
                         "terminal by reclust --import MODULE.")
    return _KINDS[name]


def is_missing(one: Any) -> bool:
    """None, NaN, or what pandas has for them, which cannot be compared."""
    return not isinstance(one, str) and str(one) in ("None", "nan", "<NA>", "NaT")
