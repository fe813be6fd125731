"""Training state on disk, from which an interrupted run continues exactly."""

import dataclasses
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from ..utils import tensor_file
from ..utils.exceptions import warn
from ..utils.values import integer, number, value
from ..utils.version import __version__
from .history import History
from .result import KINDS, pack_history, pack_settings, unpack_history, with_prefix
from .settings import Settings

_GROUP = r"\.\d+-\d*"  # suffix of the checkpoint of a group of replicas
_MEMBER = r"\.member\d+"  # and of members of an ensemble


@value
class Checkpoint:
    """Path and interval at which a run saves its training state.

    Parameters
    ----------
    path : path-like
        The file to write. The state before is kept at `path`.previous, in case it is damaged.
    every : int, default=10
        Epochs between two writes.
    seconds : float, default=0
        Least time between two writes. A run that is asked to stop writes its state in any case.
    all_seeds : tuple of int, default=()
        Seeds of the whole run, if this checkpoint belongs to a group of its replicas.

    Examples
    --------
    >>> from reclust import Checkpoint
    >>> Checkpoint("run.checkpoint", every=5).exists()
    False
    """

    path: str | os.PathLike[str]
    every: int = integer(default=10, least=1)
    seconds: float = number(default=0.0, least=0)
    all_seeds: tuple[int, ...] = ()

    @classmethod
    def at(cls, checkpoint: "Checkpoint | str | os.PathLike[str] | None",
           every: int | None = None) -> "Checkpoint | None":
        """Make a checkpoint from a path: a file if it has a suffix, otherwise a folder."""
        if checkpoint is None or isinstance(checkpoint, Checkpoint):
            return checkpoint
        path = Path(checkpoint)
        if path.is_dir() or not path.suffix:
            path.mkdir(exist_ok=True)
            path = path / "fit.checkpoint"
        return cls(path, 10 if every is None else every)

    def for_group(self, part: slice, seeds: Sequence[int]) -> "Checkpoint":
        group = self.named(f"{part.start or 0}-{part.stop or ''}")
        return dataclasses.replace(group, all_seeds=self.all_seeds or tuple(seeds))

    def named(self, suffix: str) -> "Checkpoint":
        return dataclasses.replace(self, path=Path(f"{self.path}.{suffix}"))

    @property
    def previous(self) -> Path:
        return Path(f"{self.path}.previous")

    def exists(self) -> bool:
        return Path(self.path).is_file()

    def seeds(self) -> list[int] | None:
        """Seeds of the run that wrote this checkpoint, or None if there is no file."""
        for path in [self.path] if self.exists() else self._files(f"({_GROUP}|{_MEMBER})+"):
            return list(dataclasses.replace(self, path=path).read()[0].get("seeds", ()))
        return None

    def read(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Read the last undamaged state."""
        try:
            return tensor_file.read(self.path, "checkpoint")
        except ValueError as error:
            try:
                state = tensor_file.read(self.previous, "checkpoint")
            except (OSError, ValueError):
                raise UnusableCheckpoint(f"{error} Remove it, as with --overwrite.") from error
            warn(f"{str(error).rstrip('.')}. Continuing from the previous state.")
        os.replace(self.previous, self.path)  # otherwise the next write would keep the damaged file
        return state

    def remove(self) -> None:
        """Delete all files of this checkpoint, including those of groups and stages."""
        stages = rf"{_MEMBER}|\.previous|\.warmup|\.labeling"
        for path in self._files(rf"({_GROUP}|{stages})*"):
            path.unlink(missing_ok=True)

    def _files(self, suffixes: str) -> list[Path]:
        path = Path(self.path)
        name = re.compile(rf"{re.escape(path.name)}{suffixes}")
        return [file for file in path.parent.glob("*") if name.fullmatch(file.name)]


class UnusableCheckpoint(ValueError):
    """The checkpoint is damaged, or of a run with other settings, seeds, data, executor or code."""


@dataclass
class TrainingState:
    """Everything that training changes, and the next epoch to train."""

    phase: str
    epoch: int
    tensors: dict[str, dict[str, Tensor]]
    optimizer: dict[str, Tensor]
    memory: dict[str, dict[str, Tensor]]  # of monitors and interventions, by owner
    history: History
    seconds: dict[str, float]
    failed: dict[int, tuple[str, int]]

    def write(self, checkpoint: Checkpoint, identity: str, seeds: Sequence[int],
              settings: list[Settings]) -> None:
        memory = {f"{owner}/{name}": tensor.clone()  # safetensors refuses tensors that share memory
                  for owner, own in self.memory.items() for name, tensor in own.items()}
        kinds = {**self.tensors, "optimizer": self.optimizer, "memory": memory}
        tensors = {f"{kind}/{name}": tensor
                   for kind, members in kinds.items() for name, tensor in members.items()}
        header = {
            "version": __version__, "identity": identity,
            "seeds": list(checkpoint.all_seeds or seeds), "settings": pack_settings(settings),
            "phase": self.phase, "epoch": self.epoch, "seconds": self.seconds,
            "failed": [[replica, *when] for replica, when in self.failed.items()]}
        tensor_file.write(checkpoint.path, "checkpoint", header,
                          tensors | pack_history(self.history), previous=checkpoint.previous)

    @classmethod
    def read(cls, checkpoint: Checkpoint, identity: str) -> "TrainingState":
        header, tensors = checkpoint.read()
        version = str(header.get("version", __version__))[:50]
        if version != __version__:
            raise UnusableCheckpoint(
                f"The checkpoint {checkpoint.path} was written by reclust {version}, this is "
                f"{__version__}: continue with that version, or remove the file to start again.")
        if header.get("identity") != identity:
            raise UnusableCheckpoint(
                f"The checkpoint {checkpoint.path}, written by reclust {version}, belongs to a run "
                "with other settings, seeds, data, executor or code: choose another path, or "
                "remove it, as with --overwrite.")
        with tensor_file.explain_errors(checkpoint.path):
            memory: dict[str, dict[str, Tensor]] = {}
            for name, tensor in with_prefix(tensors, "memory").items():
                owner, _, what = name.partition("/")
                memory.setdefault(owner, {})[what] = tensor
            return cls(
                phase=header["phase"], epoch=header["epoch"],
                tensors={kind: with_prefix(tensors, kind) for kind in KINDS},
                optimizer=with_prefix(tensors, "optimizer"), memory=memory,
                history=unpack_history(tensors),
                seconds={part: float(spent) for part, spent in header["seconds"].items()},
                failed={replica: (phase, epoch) for replica, phase, epoch in header["failed"]})
