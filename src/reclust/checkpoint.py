"""Training state on disk, from which a run continues as if it had never stopped."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from . import files
from .data.inputs import Inputs
from .representations import OwnAutoencoder, OwnSimCLR
from .result import History, group_of, pack_history, unpack_history
from .values import whole


@dataclass(frozen=True)
class Checkpoint:
    """Where to keep the training state of one run, and every how many epochs to write it."""

    path: str | os.PathLike[str]
    every: int = 10

    def __post_init__(self) -> None:
        whole("every", self.every, 1)

    def of(self, part: slice) -> Checkpoint:
        """The one that belongs to some of the replicas."""
        whole = Path(self.path)
        return dataclasses.replace(self, path=whole.with_name(f"{whole.name}.{part.start or 0}-{part.stop or ''}"))

    def exists(self) -> bool:
        return Path(self.path).is_file()


@dataclass
class Progressed:
    """How far a run has come: the next epoch of a phase, and all that training changes."""

    phase: str
    epoch: int
    tensors: dict[str, dict[str, Tensor]]
    optimizer: dict[str, Tensor]
    memory: dict[str, Tensor]
    """Of monitors that remember, by their position."""
    history: History
    seconds: dict[str, float]
    failed: dict[int, tuple[str, int]]

    def write(self, checkpoint: Checkpoint, identity: str) -> None:
        groups = {**self.tensors, "optimizer": self.optimizer, "memory": self.memory}
        tensors = {f"{group}/{name}": tensor for group, members in groups.items() for name, tensor in members.items()}
        header: dict[str, Any] = {
            "identity": identity, "phase": self.phase, "epoch": self.epoch, "seconds": self.seconds,
            "failed": [[replica, *when] for replica, when in self.failed.items()],
        }
        files.write(checkpoint.path, "checkpoint", header, tensors | pack_history(self.history))

    @classmethod
    def read(cls, checkpoint: Checkpoint, identity: str) -> Progressed:
        header, tensors = files.read(checkpoint.path, "checkpoint")
        if header.get("identity") != identity:
            raise ValueError(
                f"The checkpoint {checkpoint.path} belongs to a run with other settings, seeds, data or executor. "
                "Continue with exactly those, or choose another path."
            )
        return cls(
            phase=header["phase"], epoch=header["epoch"],
            tensors={group: group_of(tensors, group) for group in ("parameters", "buffers", "state")},
            optimizer=group_of(tensors, "optimizer"), memory=group_of(tensors, "memory"),
            history=unpack_history(tensors), seconds=header["seconds"],
            failed={replica: (phase, epoch) for replica, phase, epoch in header["failed"]},
        )


def identity(inputs: Inputs, *decisive: Any) -> str:
    """A hash of everything that decides what a run computes; of the data, up to a thousand evenly spread samples."""
    rows = torch.linspace(0, inputs.n_samples - 1, min(1000, inputs.n_samples)).long()
    sample = inputs.normalize(inputs.take(rows.to(inputs.device)))
    return hashlib.sha256(repr(fingerprint((inputs.n_samples, sample, decisive))).encode()).hexdigest()


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
        return (repr(thing), inner(thing.state_dict()), inner(_frozen(thing)))
    if isinstance(thing, (OwnAutoencoder, OwnSimCLR)) and thing.weights == "fresh":  # of free layers only the kind decides
        parts = [getattr(thing, field.name) for field in dataclasses.fields(thing)]
        return [(repr(part), inner({**_frozen(part), **dict(part.named_buffers())})) if isinstance(part, nn.Module)
                else inner(part) for part in parts]
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return (type(thing).__name__, {field.name: inner(getattr(thing, field.name)) for field in dataclasses.fields(thing)})
    if isinstance(thing, Mapping):
        return {name: inner(item) for name, item in sorted((str(name), item) for name, item in thing.items())}
    if isinstance(thing, (tuple, list, np.ndarray)):
        return [inner(item) for item in thing]
    if isinstance(thing, (set, frozenset)):
        return sorted(repr(inner(item)) for item in thing)
    if isinstance(thing, types.FunctionType):
        given = (thing.__defaults__, thing.__kwdefaults__, [cell.cell_contents for cell in thing.__closure__ or ()])
        return (f"{thing.__module__}.{thing.__qualname__}", inner((thing.__code__, *given)))
    if isinstance(thing, types.CodeType):
        return (thing.co_code, thing.co_names, inner(thing.co_consts))
    if isinstance(thing, types.MethodType):
        return inner((thing.__func__, thing.__self__))
    if isinstance(thing, partial):
        return inner((thing.func, thing.args, thing.keywords))
    if isinstance(thing, (types.BuiltinFunctionType, type)):
        return f"{thing.__module__}.{thing.__qualname__}"
    if type(thing).__repr__ is object.__repr__:  # which would tell an address
        return (inner(type(thing)), inner(getattr(thing, "__dict__", {})))
    return repr(thing)


def _frozen(module: nn.Module) -> dict[str, Tensor]:
    return {name: parameter for name, parameter in module.named_parameters() if not parameter.requires_grad}
