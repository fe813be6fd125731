"""Frozen dataclasses that check their fields, compare, print, and go to JSON and back without pickle."""

from __future__ import annotations

import dataclasses
import difflib
import math
import numbers
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from typing_extensions import dataclass_transform

T = TypeVar("T")
_KINDS: dict[str, type] = {}


def integer(*, default: Any = dataclasses.MISSING, least: int = 0, optional: bool = False) -> Any:
    """Field of a value: an int of at least `least`, or None where `optional`."""
    return _checked(lambda name, given: check_int(name, given, least), default, optional)


def integers(*, default: Any = dataclasses.MISSING, least: int = 0) -> Any:
    """Field of a value: a tuple of ints of at least `least`."""
    return _checked(lambda name, given: check_ints(name, given, least), default)


def number(*, default: Any = dataclasses.MISSING, least: float = -math.inf, above: float = -math.inf,
           most: float = math.inf, below: float = math.inf, optional: bool = False) -> Any:
    """Field of a value: a float within these bounds, or None where `optional`."""
    bounds = [(f"at least {least:g}", least > -math.inf), (f"above {above:g}", above > -math.inf),
              (f"at most {most:g}", most < math.inf), (f"below {below:g}", below < math.inf)]
    needed = " and ".join(bound for bound, given in bounds if given)

    def check(name: str, given: Any) -> float:
        found = check_float(name, given)
        if not (least <= found <= most and (found > above or above == -math.inf) and (found < below or below == math.inf)):
            raise ValueError(f"{name} must be {needed or 'a number'}, got {given!r}.")
        return found

    return _checked(check, default, optional)


def choice(*options: Any, default: Any = dataclasses.MISSING) -> Any:
    """Field of a value: one of these options, the first of them by default."""

    def check(name: str, given: Any) -> Any:
        if given not in options:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {given!r}.")
        return given

    return _checked(check, options[0] if default is dataclasses.MISSING else default)


def _checked(check: Callable[[str, Any], Any], default: Any, optional: bool = False) -> Any:
    def check_unless_none(name: str, given: Any) -> Any:
        return None if given is None else check(name, given)

    return dataclasses.field(default=default, metadata={"check": check_unless_none if optional else check})


class Shorthand(ABC):
    """Base of values that stand for another value: they equal it, and files store it instead."""

    @abstractmethod
    def expand(self) -> Any: ...

    def __eq__(self, other: object) -> bool:
        return bool(self.expand() == expanded(other))

    def __hash__(self) -> int:
        return hash(self.expand())


def expanded(thing: Any) -> Any:
    """Return the value that a shorthand stands for, and anything else as it is."""
    return thing.expand() if isinstance(thing, Shorthand) else thing


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, integer, integers, number, choice))
def value(cls: type[T]) -> type[T]:
    """Class decorator: a frozen dataclass whose instances can be stored in a file by their class name.

    Examples
    --------
    >>> from reclust import value
    >>> @value
    ... class Pull:
    ...     strength: float = 0.5
    >>> Pull(strength=0.2)
    Pull(strength=0.2)
    """
    finish = getattr(cls, "__post_init__", None)

    def check_fields(self: Any) -> None:
        for field in dataclasses.fields(self):
            if "check" in field.metadata:
                object.__setattr__(self, field.name, field.metadata["check"](field.name, getattr(self, field.name)))
        if finish is not None:
            finish(self)

    cls.__post_init__ = check_fields  # type: ignore[attr-defined]
    made = dataclasses.dataclass(frozen=True, eq=not issubclass(cls, Shorthand))(cls)
    known = _KINDS.setdefault(made.__name__, made)
    if (known.__module__, known.__qualname__) != (made.__module__, made.__qualname__):
        raise ValueError(f"A value named {made.__name__} already exists in {known.__module__}: choose another name.")
    _KINDS[made.__name__] = made
    return made


def same(one: Any, other: Any) -> bool:
    """Compare two objects that may hold tensors or arrays."""
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


def check_int(name: str, given: Any, least: int) -> int:
    """Return `given` as an int; numpy integers pass, floats and booleans do not."""
    try:
        number = operator.index(given)
    except TypeError:
        number = least - 1
    if isinstance(given, (bool, np.bool_)) or number < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {given!r}.")
    return number


def check_ints(name: str, given: Any, least: int) -> tuple[int, ...]:
    """Return `given` as a tuple of ints."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"{name} must be a sequence of integers, such as ({given!r},), got {given!r}.")
    return tuple(check_int(f"each number in {name}", number, least) for number in given)


def check_float(name: str, given: Any) -> float:
    """Return `given` as a float; numpy numbers pass, booleans and strings do not."""
    if isinstance(given, (bool, np.bool_)) or not isinstance(given, numbers.Real):
        raise ValueError(f"{name} must be a number, got {given!r}.")
    return float(given)


@value
class NotStored:
    """Placeholder in a loaded file for something that cannot be written, such as a custom module."""

    what: str


def storable(thing: Any) -> Any:
    """Return the thing if it can be written to a file, else a `NotStored`."""
    try:
        to_json(thing)
    except TypeError:
        return NotStored(type(thing).__name__)
    return thing


def to_json(thing: Any) -> Any:
    """Convert values, numbers, strings, None, sequences and mappings to plain JSON."""
    if isinstance(thing, np.generic):
        thing = thing.item()
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    if isinstance(thing, (tuple, list)):
        return [to_json(item) for item in thing]
    if isinstance(thing, Mapping):
        return {"mapping": {str(name): to_json(item) for name, item in thing.items()}}
    thing = expanded(thing)
    kind = _kind_of(thing)
    return {"kind": kind,
            "fields": {field.name: to_json(getattr(thing, field.name)) for field in dataclasses.fields(thing)}}


def _kind_of(thing: Any) -> str:
    kind = type(thing)
    known = _KINDS.get(kind.__name__)  # a notebook cell that runs again redefines its classes
    if known is None or (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise TypeError(f"{kind.__name__} cannot be written to a file: decorate the class with @reclust.value, "
                        "and import its module before loading the file.")
    return kind.__name__


def essential_json(thing: Any) -> Any:
    """Like `to_json` without default values, so that it stays the same when a class gains a field."""
    if isinstance(thing, (tuple, list)):
        return [essential_json(item) for item in thing]
    if isinstance(thing, Mapping):
        return {"mapping": {str(name): essential_json(item) for name, item in thing.items()}}
    if not dataclasses.is_dataclass(thing):
        return to_json(thing)
    thing = expanded(thing)
    chosen = {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)
              if getattr(thing, field.name) != default_of(field)}
    return {"kind": _kind_of(thing), "fields": {name: essential_json(item) for name, item in chosen.items()}}


def default_of(field: dataclasses.Field[Any]) -> Any:
    """Return a field's default, or `dataclasses.MISSING`."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def from_json(data: Any) -> Any:
    """Invert `to_json`; sequences come back as tuples, and only registered classes are created."""
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
    """Find a value's class by its name, importing the library's own modules if needed."""
    for package in ("reclust", "reclust.studies"):
        if name not in _KINDS:
            import_all(package)
    if name not in _KINDS:
        near = difflib.get_close_matches(name, _KINDS, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"Unknown kind of value {name!r}. {hint}Import the module that defines it first, "
                         "on the command line with reclust --import MODULE.")
    return _KINDS[name]


def import_all(package: str) -> None:
    """Import every public name of a package, which registers the values it defines."""
    module = import_module(package)
    for name in module.__all__:
        getattr(module, name)


def is_missing(one: Any) -> bool:
    """Tell None, NaN and pandas' missing values, which cannot be compared."""
    return not isinstance(one, str) and str(one) in ("None", "nan", "<NA>", "NaT")
