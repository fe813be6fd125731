"""Hashes of data, settings and code: what decides a result, and is the same in every process."""

from __future__ import annotations

import dataclasses
import dis
import hashlib
import inspect
import sys
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data.inputs import Inputs, ResidentInputs
from ..representations import OwnAutoencoder, OwnSimCLR
from ..utils.values import expanded
from .monitors.base import evenly_spread


def identity(inputs: Inputs, *decisive: Any) -> str:
    """A hash of everything that decides what a run computes; of streamed data, which may take long to be read, a thousand
    evenly spread samples at most."""
    n = inputs.n_samples
    whole = isinstance(inputs, ResidentInputs)
    rows = torch.arange(n, device=inputs.device) if whole else evenly_spread(n, 1000, inputs.device)
    samples = [fingerprint(inputs.normalize(inputs.take(some))) for some in rows.split(4096)]
    return hashlib.sha256(repr((n, samples, fingerprint(decisive))).encode()).hexdigest()


def fingerprint(thing: Any, within: tuple[int, ...] = ()) -> Any:
    """The same for equal things in every process, which `repr` is not: functions go by name and code, tensors by content."""
    thing = expanded(thing)
    if id(thing) in within:  # it refers to itself
        return "..."
    inner = partial(fingerprint, within=(*within, id(thing)))
    if isinstance(thing, np.generic):
        return repr(thing.item())
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        return (str(thing.dtype), thing.shape, hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest())
    if isinstance(thing, Tensor):
        return inner(thing.detach().cpu().contiguous().numpy())
    if isinstance(thing, nn.Module):
        return (repr(thing), inner(thing.state_dict()), inner(_frozen(thing)), inner(_programs(thing)))
    if isinstance(thing, (OwnAutoencoder, OwnSimCLR)) and thing.weights == "fresh":  # of free layers only the kind decides
        parts = [getattr(thing, field.name) for field in dataclasses.fields(thing)]
        return [(repr(part), inner({**_frozen(part), **dict(part.named_buffers())}), inner(_programs(part)))
                if isinstance(part, nn.Module)
                else inner(part) for part in parts]
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return (type(thing).__name__, {field.name: inner(getattr(thing, field.name)) for field in dataclasses.fields(thing)},
                inner(_own_code(type(thing))))
    if isinstance(thing, Mapping):
        return {name: inner(item) for name, item in sorted((str(name), item) for name, item in thing.items())}
    if isinstance(thing, (tuple, list, np.ndarray)):
        return [inner(item) for item in thing]
    if isinstance(thing, (set, frozenset)):
        return sorted(repr(inner(item)) for item in thing)
    if isinstance(thing, types.FunctionType):
        given = (thing.__defaults__, thing.__kwdefaults__, [_enclosed(cell) for cell in thing.__closure__ or ()])
        return (f"{thing.__module__}.{thing.__qualname__}", inner((thing.__code__, *given)), inner(_used([thing])))
    if isinstance(thing, types.CodeType):
        return (thing.co_code, thing.co_names, inner(thing.co_consts))
    if isinstance(thing, types.MethodType):
        return inner((thing.__func__, thing.__self__))
    if isinstance(thing, partial):
        return inner((thing.func, thing.args, thing.keywords))
    if isinstance(thing, (types.BuiltinFunctionType, type)):
        return f"{thing.__module__}.{thing.__qualname__}"
    if type(thing).__repr__ is object.__repr__:  # which would tell an address
        return (inner(type(thing)), inner(getattr(thing, "__dict__", {})), inner(_own_code(type(thing))))
    return repr(thing)


def code_of(thing: Any) -> dict[str, str]:
    """Name -> a hash of what it computes, of all classes of one's own that a value and its parts are of."""
    thing = expanded(thing)
    if not dataclasses.is_dataclass(thing) or isinstance(thing, type):
        parts = thing.values() if isinstance(thing, Mapping) else thing if isinstance(thing, (tuple, list)) else ()
        return {name: digest for part in parts for name, digest in code_of(part).items()}
    found = code_of([getattr(thing, field.name) for field in dataclasses.fields(thing)])
    own = _own_code(type(thing))
    return found | ({type(thing).__name__: hashlib.sha256(repr(fingerprint(own)).encode()).hexdigest()} if own else {})


def _enclosed(cell: types.CellType) -> Any:
    """What a function has from around it; a name that nothing was given to, yet, is nothing."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


_KNOWN = {"reclust", "torch", "numpy", *sys.stdlib_module_names}
"""Whose classes and functions nobody edits between two runs."""


def _edited(thing: Any) -> bool:
    """Whether somebody may have written this class or function for these runs."""
    return str(thing.__module__).split(".")[0] not in _KNOWN


def _own_code(kind: type) -> dict[str, Any]:
    """What a class outside this package computes: an edited one is another one. Methods that dataclasses write are no news,
    nor are defaults of fields, which their instances hold."""
    found: dict[str, Any] = {}
    methods = []
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    for parent in filter(_edited, reversed(kind.__mro__)):
        for name, member in vars(parent).items():
            method = getattr(member, "func", None) or getattr(member, "fget", None) or getattr(member, "__func__", member)
            if isinstance(method, types.FunctionType):
                if method.__code__.co_filename != "<string>":
                    found[f"{parent.__qualname__}.{name}"] = _codes(method)
                    methods.append(method)
            elif _constant(member) and name not in fields and not name.startswith("__"):
                found[f"{parent.__qualname__}.{name}"] = member
    counters = _names(methods, "STORE_ATTR")
    return {name: part for name, part in found.items() if not (_constant(part) and name.rpartition(".")[2] in counters)} | (
        {"used": used} if (used := _used(methods)) else {})


def _codes(function: types.FunctionType, within: tuple[int, ...] = ()) -> list[Any]:
    """Of a method and of what it decorates. Decorators may keep what changes or has an address, such as counts and locks."""
    inner = [found for found in map(_enclosed, function.__closure__ or ()) if isinstance(found, types.FunctionType)]
    given = (*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items()))
    return [function.__code__, list(filter(_constant, given)),
            *(_codes(one, (*within, id(function))) for one in inner if id(one) not in within)]


def _used(functions: Sequence[types.FunctionType]) -> dict[str, Any]:
    """What functions of one's own use of modules of one's own, by name: functions, as code, all the way down, and constants.
    What is installed stays as it is, and what a function writes to is no constant."""
    found: dict[str, Any] = {}
    waiting = [one for one in map(_function, functions) if one is not None]
    seen: list[types.FunctionType] = []
    while waiting:
        function = waiting.pop()
        if function in seen or not _edited(function) or _installed(function):
            continue
        seen.append(function)
        for place, name, thing in _globals(function):
            if _constant(thing):
                found[f"{place}.{name}"] = thing
            elif (used := _function(thing)) is not None and _edited(used) and not _installed(used):
                found[f"{place}.{name}"] = _codes(used)
                waiting.append(used)
    written = _names(seen, "STORE_GLOBAL")
    return {name: part for name, part in found.items() if not (_constant(part) and name.rpartition(".")[2] in written)}


def _function(thing: Any) -> types.FunctionType | None:
    """What decorators were put around; None for all that is no function."""
    try:
        inner = inspect.unwrap(thing)
    except ValueError:  # of things that answer to every name
        return None
    return inner if isinstance(inner, types.FunctionType) else None


def _globals(function: types.FunctionType) -> Iterator[tuple[str, str, Any]]:
    """Module, name and thing of all that a function takes from its module, and from others of one's own as `module.name`."""
    for name in _names([function], "LOAD_GLOBAL") & function.__globals__.keys():
        thing = function.__globals__[name]
        if not isinstance(thing, types.ModuleType):
            yield function.__module__, name, thing
        elif thing.__name__.split(".")[0] not in _KNOWN:
            for inner in _names([function], "LOAD_ATTR", "LOAD_METHOD") & vars(thing).keys():
                yield thing.__name__, inner, vars(thing)[inner]


def _names(functions: Iterable[types.FunctionType], *operations: str) -> set[str]:
    """Which names these operations of functions, and of functions within them, are about."""
    names, codes = set(), [function.__code__ for function in functions]
    while codes:
        code = codes.pop()
        names |= {one.argval for one in dis.get_instructions(code) if one.opname in operations}
        codes += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
    return names


def _installed(function: types.FunctionType) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(function.__code__.co_filename).parts)


def _constant(thing: Any) -> bool:
    """Numbers, strings, None, and tuples and frozen sets of such."""
    if isinstance(thing, (tuple, frozenset)):
        return all(map(_constant, thing))
    return thing is None or isinstance(thing, (int, float, complex, str, bytes))


_OF_ANY_MODULE = frozenset(vars(nn.Module()))
"""Attributes such as `training`, and what parameters, buffers and hooks are kept in."""


def _programs(net: nn.Module) -> dict[str, Any]:
    """Of each module its code, where it is of one's own, and its plain attributes, of which `repr` need not tell all."""
    made = {}
    for name, module in net.named_modules():
        plain = {attribute: kept for attribute, kept in vars(module).items() if attribute not in _OF_ANY_MODULE
                 and (_constant(kept) or isinstance(kept, (types.FunctionType, types.BuiltinFunctionType)))}
        made[name] = (_own_code(type(module)), plain)
    return made


def _frozen(module: nn.Module) -> dict[str, Tensor]:
    return {name: parameter for name, parameter in module.named_parameters() if not parameter.requires_grad}
