"""Hashes of data, settings and custom code: everything that decides a result."""

import dataclasses
import hashlib
import inspect
import sys
import types
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data.inputs import Inputs, ResidentInputs
from ..representations import OwnAutoencoder, OwnSimCLR
from ..utils.values import expanded
from .monitors.base import evenly_spread

_KNOWN_PACKAGES = {"reclust", "torch", "numpy", *sys.stdlib_module_names}
_MODULE_ATTRIBUTES = frozenset(vars(nn.Module()))


def identity(inputs: Inputs, *decisive: Any) -> str:
    """Hash everything that decides what a run computes; of streamed data a thousand samples."""
    n = inputs.n_samples
    rows = evenly_spread(n, n if isinstance(inputs, ResidentInputs) else 1000, inputs.device)
    samples = [fingerprint(inputs.normalize(inputs.take(some))) for some in rows.split(4096)]
    return _digest((n, samples, fingerprint(decisive)))


def fingerprint(thing: Any) -> Any:
    """Describe an object by its content; functions and custom classes by their source code."""
    thing = expanded(thing)
    if isinstance(thing, Tensor):
        thing = thing.detach().cpu().contiguous()
        thing = (thing.float() if thing.dtype == torch.bfloat16 else thing).numpy()  # not in NumPy
    if isinstance(thing, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest()
        return (str(thing.dtype), thing.shape, content)
    if isinstance(thing, nn.Module):
        return _network(thing)
    if isinstance(thing, (OwnAutoencoder, OwnSimCLR)) and thing.weights == "fresh":
        return [_network(part, fresh=True) if isinstance(part, nn.Module) else fingerprint(part)
                for part in _fields(thing).values()]
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return (type(thing).__name__, fingerprint(_fields(thing)), _source(type(thing)))
    if isinstance(thing, Mapping):
        return {name: fingerprint(item) for name, item in
                sorted((str(name), item) for name, item in thing.items())}
    if isinstance(thing, (tuple, list)):
        return [fingerprint(item) for item in thing]
    if isinstance(thing, (set, frozenset)):
        return sorted(repr(fingerprint(item)) for item in thing)
    if isinstance(thing, types.FunctionType):
        enclosed = inspect.getclosurevars(thing).nonlocals
        plain = {name: item for name, item in enclosed.items() if not callable(item)}
        return (_source(thing), fingerprint((thing.__defaults__, thing.__kwdefaults__, plain)))
    if isinstance(thing, types.MethodType):
        return fingerprint((thing.__func__, thing.__self__))
    if isinstance(thing, partial):
        return fingerprint((thing.func, thing.args, thing.keywords))
    if isinstance(thing, (types.BuiltinFunctionType, type)):
        return _source(thing)
    if type(thing).__repr__ is object.__repr__:  # which contains an address
        return (_source(type(thing)), fingerprint(getattr(thing, "__dict__", {})))
    return repr(thing)


def code_of(thing: Any) -> dict[str, str]:
    """Hash the source of every custom class in a value and its parts, by class name."""
    thing, hashes = expanded(thing), {}
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        if _is_custom(type(thing)):
            hashes[type(thing).__name__] = _digest(_source(type(thing)))
        thing = _fields(thing)
    parts = list(thing.values()) if isinstance(thing, Mapping) else thing
    for part in parts if isinstance(parts, (tuple, list)) else ():
        hashes |= code_of(part)
    return hashes


def _fields(thing: Any) -> dict[str, Any]:
    return {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}


def _digest(described: Any) -> str:
    return hashlib.sha256(repr(described).encode()).hexdigest()


def _is_custom(thing: Any) -> bool:
    return str(thing.__module__).split(".")[0] not in _KNOWN_PACKAGES


def _source(thing: Any) -> list[Any]:
    """Name of a class or function, with its source and that of its custom base classes."""
    parts = inspect.getmro(thing) if isinstance(thing, type) else [thing]
    return [f"{thing.__module__}.{thing.__qualname__}", *map(_text, filter(_is_custom, parts))]


def _text(part: Any) -> Any:
    try:
        return inspect.getsource(part)
    except (OSError, TypeError):  # a class in a notebook: only its methods have source
        members = vars(part).values() if isinstance(part, type) else ()
        return [part.__qualname__, *map(_text, filter(inspect.isfunction, members))]


def _network(net: nn.Module, *, fresh: bool = False) -> Any:
    """Describe layers, code, plain attributes and tensors; if fresh, not those that seeds draw."""
    drawn = {name for name, tensor in net.named_parameters(remove_duplicate=False)
             if fresh and tensor.requires_grad}
    tensors = {name: tensor for name, tensor in net.state_dict().items() if name not in drawn}
    kinds = (int, float, str, tuple, types.FunctionType, types.BuiltinFunctionType, type(None))
    layers = {}
    for name, layer in net.named_modules():
        plain = {key: item for key, item in vars(layer).items()
                 if key not in _MODULE_ATTRIBUTES and isinstance(item, kinds)}
        layers[name] = (_source(type(layer)), fingerprint(plain))
    return (repr(net), fingerprint(tensors), layers)
