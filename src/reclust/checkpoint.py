"""Training state on disk, from which a run continues as if it had never stopped."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from . import files
from .data.inputs import Inputs
from .result import History, group_of, pack_history, unpack_history
from .settings import Settings


@dataclass(frozen=True)
class Checkpoint:
    """Where to keep the training state of one run, and every how many epochs to write it."""

    path: str | os.PathLike[str]
    every: int = 10

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"every must be at least 1 epoch, got {self.every!r}.")

    def exists(self) -> bool:
        return Path(self.path).is_file()


@dataclass
class Progressed:
    """How far a run has come: the next epoch of a phase, and all that training changes."""

    phase: str
    epoch: int
    tensors: dict[str, dict[str, Tensor]]
    optimizer: dict[str, Tensor]
    history: History
    seconds: dict[str, float]
    failed: dict[int, tuple[str, int]]

    def write(self, checkpoint: Checkpoint, identity: str) -> None:
        groups = {**self.tensors, "optimizer": self.optimizer}
        tensors = {f"{group}/{name}": tensor for group, members in groups.items() for name, tensor in members.items()}
        header: dict[str, Any] = {
            "identity": identity, "phase": self.phase, "epoch": self.epoch, "seconds": self.seconds,
            "failed": [[replica, *when] for replica, when in self.failed.items()],
        }
        files.write(checkpoint.path, "checkpoint", header, tensors | pack_history(self.history))

    @classmethod
    def read(cls, checkpoint: Checkpoint, identity: str) -> Progressed:
        header, tensors = files.read(checkpoint.path, "checkpoint")
        if header["identity"] != identity:
            raise ValueError(
                f"The checkpoint {checkpoint.path} belongs to a run with other settings, seeds or data. "
                "Continue with exactly those, or choose another path."
            )
        return cls(
            phase=header["phase"], epoch=header["epoch"],
            tensors={group: group_of(tensors, group) for group in ("parameters", "buffers", "state")},
            optimizer=group_of(tensors, "optimizer"), history=unpack_history(tensors), seconds=header["seconds"],
            failed={replica: (phase, epoch) for replica, phase, epoch in header["failed"]},
        )


def identity(settings: Sequence[Settings], seeds: Sequence[int], inputs: Inputs) -> str:
    """A hash of everything that decides what a run computes; of the data, up to a thousand evenly spread samples."""
    rows = torch.linspace(0, inputs.n_samples - 1, min(1000, inputs.n_samples)).long()
    sample = inputs.normalize(inputs.take(rows.to(inputs.device)))
    parts = (repr(list(settings)), repr(list(seeds)), str(inputs.n_samples), str(sample.dtype))
    digest = hashlib.sha256("\n".join(parts).encode())
    digest.update(sample.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimizer remembers, by the position of each leaf."""
    leaves = [leaf for group in optimizer.param_groups for leaf in group["params"]]
    return {f"{i}/{name}": entry for i, leaf in enumerate(leaves)
            for name, entry in optimizer.state.get(leaf, {}).items() if isinstance(entry, Tensor)}


def restore_optimizer_(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    leaves = [leaf for group in optimizer.param_groups for leaf in group["params"]]
    for name, entry in tensors.items():
        position, _, field = name.partition("/")
        leaf = leaves[int(position)]
        # Adam keeps its step count on the CPU unless told otherwise, and its moments beside their parameter.
        optimizer.state[leaf][field] = entry.clone() if field == "step" and not leaf.is_cuda else entry.to(leaf.device).clone()

