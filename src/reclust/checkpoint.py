"""Training state on disk, from which a run continues as if it had never stopped."""

from __future__ import annotations

import dataclasses
import dis
import glob
import hashlib
import inspect
import os
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from . import files
from .data.inputs import Inputs, ResidentInputs
from .exceptions import warn
from .history import History
from .monitors import evenly_spread
from .representations import OwnAutoencoder, OwnSimCLR
from .result import group_of, pack_history, pack_settings, unpack_history
from .settings import Settings
from .values import real, whole
from .version import __version__

_ENDINGS = re.compile(r"(\.(previous|warmup|labeling|\d+-\d*|[0-9a-f]+\.tmp))*")
"""Of a checkpoint's own files: other names that begin as its own does are somebody else's."""
_PART = re.compile(r"(\.\d+-\d*)+")


@dataclass(frozen=True)
class Checkpoint:
    """Where to keep the training state of one run, and every how many epochs to write it.

    The state before the last is kept beside it, as `path`.previous, for when the last one is damaged.

    seconds: that pass at least between two writes. What a run that is asked to stop has reached is written in any case.
    among: seeds of the whole run, where this belongs to some of its replicas.
    """

    path: str | os.PathLike[str]
    every: int = 10
    seconds: float = 0.0
    among: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        whole("every", self.every, 1)
        if not real("seconds", self.seconds) >= 0:
            raise ValueError(f"seconds must be 0 or more, got {self.seconds!r}.")

    @classmethod
    def at(cls, given: Checkpoint | str | os.PathLike[str] | None, every: int | None = None) -> Checkpoint | None:
        """A path that ends like a file's stands for that file; any other is a folder, made where there is none."""
        if given is None or isinstance(given, Checkpoint):
            if every is not None:
                raise ValueError(f"every={every!r} goes with the path of a checkpoint; {given!r} was given.")
            return given
        path = Path(given)
        if path.is_dir() or not path.suffix:
            if not path.parent.is_dir():
                raise FileNotFoundError(f"There is no folder {path.parent} to make {path.name} in: make it first.")
            path.mkdir(exist_ok=True)
            path = path / "fit.checkpoint"
        return cls(path) if every is None else cls(path, every)

    def of(self, part: slice, seeds: Sequence[int]) -> Checkpoint:
        """The one that belongs to some of the replicas, of which these are the seeds."""
        return dataclasses.replace(self.named(f"{part.start or 0}-{part.stop or ''}"), among=self.among or tuple(seeds))

    def named(self, ending: str) -> Checkpoint:
        """One of its own beside this one."""
        return dataclasses.replace(self, path=Path(f"{self.path}.{ending}"))

    @property
    def previous(self) -> Path:
        return Path(f"{self.path}.previous")

    def exists(self) -> bool:
        return Path(self.path).is_file()

    def seeds(self) -> list[int] | None:
        """Those of the run that this one belongs to, if there is one."""
        if self.exists():
            return list(self.read()[0].get("seeds", ()))
        path = Path(self.path)  # perhaps only groups of its replicas came so far
        parts = sorted(one for one in path.parent.glob(f"{glob.escape(path.name)}.*")
                       if _PART.fullmatch(one.name.removeprefix(path.name)))
        return dataclasses.replace(self, path=parts[0]).seeds() if parts else None

    def read(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The last state that is whole."""
        try:
            return files.read(self.path, "checkpoint")
        except ValueError as error:
            if not self.previous.is_file():
                raise
            kept = files.read(self.previous, "checkpoint")
            warn(f"{str(error).rstrip('.')}. The run goes on from the state before that one.")
        os.replace(self.previous, self.path)  # or the next write would keep the damaged one as the state before
        return kept

    def remove(self) -> None:
        """All of its files: the last two, those of parts and stages, and what a kill left half written."""
        path = Path(self.path)
        name = glob.escape(path.name)
        for pattern in (name, f"{name}.*", f".{name}.*.tmp"):
            for one in path.parent.glob(pattern):
                if _ENDINGS.fullmatch(one.name.removeprefix(".").removeprefix(path.name)):
                    one.unlink(missing_ok=True)


class OtherRun(ValueError):
    """A checkpoint of a run with other settings, seeds, data or executor, or of other code of parts of one's own."""


@dataclass
class Progressed:
    """How far a run has come: the next epoch of a phase, and all that training changes."""

    phase: str
    epoch: int
    tensors: dict[str, dict[str, Tensor]]
    optimizer: dict[str, Tensor]
    memory: dict[str, Tensor]
    """Of monitors and interventions that remember, by their position."""
    history: History
    seconds: dict[str, float]
    failed: dict[int, tuple[str, int]]

    def write(self, checkpoint: Checkpoint, identity: str, seeds: Sequence[int], settings: list[Settings]) -> None:
        groups = {**self.tensors, "optimizer": self.optimizer, "memory": self.memory}
        tensors = {f"{group}/{name}": tensor for group, members in groups.items() for name, tensor in members.items()}
        header: dict[str, Any] = {
            "version": __version__, "identity": identity, "seeds": list(checkpoint.among or seeds),
            "settings": pack_settings(settings),
            "phase": self.phase, "epoch": self.epoch, "seconds": self.seconds,
            "failed": [[replica, *when] for replica, when in self.failed.items()],
        }
        files.write(checkpoint.path, "checkpoint", header, tensors | pack_history(self.history), previous=checkpoint.previous)

    @classmethod
    def read(cls, checkpoint: Checkpoint, identity: str) -> Progressed:
        header, tensors = checkpoint.read()
        if header.get("version", __version__) != __version__:
            raise ValueError(f"The checkpoint {checkpoint.path} was written by reclust {header['version']}, this is "
                             f"{__version__}: continue with that version, or remove the file to start anew.")
        if header.get("identity") != identity:
            raise OtherRun(
                f"The checkpoint {checkpoint.path} belongs to a run with other settings, seeds, data or executor, or with "
                "other code of parts of your own. Continue with exactly those, choose another path, or remove the file to "
                "start anew (`reclust fit` does so with --overwrite)."
            )
        with files.understood(checkpoint.path):
            return cls(
                phase=_known_phase(header["phase"]), epoch=whole("epoch", header["epoch"], 0),
                tensors={group: group_of(tensors, group) for group in ("parameters", "buffers", "state")},
                optimizer=group_of(tensors, "optimizer"), memory=group_of(tensors, "memory"),
                history=unpack_history(tensors), seconds=dict(header["seconds"]),
                failed={int(replica): (str(phase), int(epoch)) for replica, phase, epoch in header["failed"]},
            )

    def adopt_(self, own: Mapping[str, Tensor], group: str) -> None:
        """Write one group of tensors into a run's own, which must be the same by name and shape."""
        kept = self.tensors[group]
        if {name: t.shape for name, t in own.items()} != {name: t.shape for name, t in kept.items()}:
            raise ValueError(f"The checkpoint has {group} of other names or shapes than this run.")
        for name, tensor in own.items():
            tensor.copy_(kept[name])


def _known_phase(name: Any) -> str:
    if name not in ("pretraining", "clustering"):
        raise ValueError(f"there is no phase {name!r}.")
    return name


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
    waiting = [*map(inspect.unwrap, functions)]
    seen: list[types.FunctionType] = []
    while waiting:
        function = waiting.pop()
        if function in seen or not isinstance(function, types.FunctionType) or not _edited(function) or _installed(function):
            continue
        seen.append(function)
        for place, name, thing in _globals(function):
            if _constant(thing):
                found[f"{place}.{name}"] = thing
            elif isinstance(used := inspect.unwrap(thing), types.FunctionType) and _edited(used) and not _installed(used):
                found[f"{place}.{name}"] = _codes(used)
                waiting.append(used)
    written = _names(seen, "STORE_GLOBAL")
    return {name: part for name, part in found.items() if not (_constant(part) and name.rpartition(".")[2] in written)}


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
