"""Training state on disk, from which a run continues as if it had never stopped."""

from __future__ import annotations

import dataclasses
import glob
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from ..utils import tensor_file
from ..utils.exceptions import warn
from ..utils.values import check_float, check_int
from ..version import __version__
from .history import History
from .result import group_of, pack_history, pack_settings, unpack_history
from .settings import Settings

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
        check_int("every", self.every, 1)
        if not check_float("seconds", self.seconds) >= 0:
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
            return tensor_file.read(self.path, "checkpoint")
        except ValueError as error:
            if not self.previous.is_file():
                raise
            kept = tensor_file.read(self.previous, "checkpoint")
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


class CheckpointMismatch(ValueError):
    """A checkpoint of a run with other settings, seeds, data or executor, or of other code of parts of one's own."""


@dataclass
class TrainingState:
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
        tensor_file.write(checkpoint.path, "checkpoint", header, tensors | pack_history(self.history), previous=checkpoint.previous)

    @classmethod
    def read(cls, checkpoint: Checkpoint, identity: str) -> TrainingState:
        header, tensors = checkpoint.read()
        if header.get("version", __version__) != __version__:
            raise ValueError(f"The checkpoint {checkpoint.path} was written by reclust {header['version']}, this is "
                             f"{__version__}: continue with that version, or remove the file to start anew.")
        if header.get("identity") != identity:
            raise CheckpointMismatch(
                f"The checkpoint {checkpoint.path} belongs to a run with other settings, seeds, data or executor, or with "
                "other code of parts of your own. Continue with exactly those, choose another path, or remove the file to "
                "start anew (`reclust fit` does so with --overwrite)."
            )
        with tensor_file.explain_errors(checkpoint.path):
            return cls(
                phase=_known_phase(header["phase"]), epoch=check_int("epoch", header["epoch"], 0),
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
