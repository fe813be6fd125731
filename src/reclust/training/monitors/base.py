"""Snapshots of training, and base classes of monitors, which observe and change nothing."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from ...utils.values import check_int
from ..history import AFTER_RESET

Moment = Literal["start", "intervention", "epoch"]
Measured = Mapping[str, Any]  # column -> values of each replica, (r, ...)


@dataclass
class Snapshot:
    """Training at one moment, as monitors see it.

    Tensors are those of training itself: do not write to them, and copy what you keep.

    Parameters
    ----------
    phase : str
        "pretraining", "clustering", or a later stage.
    moment : {"start", "intervention", "epoch"}
        Before the first epoch, right after an intervention, or at the end of an epoch.
    epoch, epochs : int
        Current epoch, -1 before the first, and scheduled number of epochs.
    loss : dict of str to ndarray of shape (n_replicas,)
        Mean losses of the epoch; empty at other moments.
    fired, fires_next : ndarray of shape (n_replicas,)
        Replicas that an intervention changed at the start of this epoch, or may change at the next.
    embed, assign, representation_loss : callable
        embed() -> embeddings (r, n, d), embed(rows) -> those of some samples, assign(embeddings)
        -> labels (r, n), representation_loss() -> loss of all clean samples (r,).
    parameters, state : dict of str to Tensor of shape (n_replicas, ...)
        Network parameters and state of the objectives.
    centers : Tensor of shape (n_replicas, k, d) or None
        None during pretraining.
    n_samples, settings : int and Settings, or None
        Number of samples, and settings of the first replica.
    measured : dict
        Measurements of the monitors before this one at the same moment.

    Examples
    --------
    >>> def count_clusters(snapshot):
    ...     if snapshot.centers is not None and snapshot.moment == "epoch":
    ...         return {"used_clusters": [len(set(own.tolist())) for own in snapshot.labels]}
    """

    phase: str
    moment: Moment
    epoch: int
    epochs: int
    loss: Mapping[str, np.ndarray]
    fired: np.ndarray
    embed: Callable[..., Tensor]
    assign: Callable[[Tensor], Tensor]
    fires_next: np.ndarray = field(default_factory=lambda: np.zeros(1, dtype=bool))
    parameters: Mapping[str, Tensor] = field(default_factory=dict)
    centers: Tensor | None = None
    representation_loss: Callable[[], Tensor] | None = None
    n_samples: int | None = None
    settings: Any = None
    state: Mapping[str, Tensor] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def embeddings(self) -> Tensor:
        """Embeddings of all samples, (r, n, d)."""
        return self.embed()

    @cached_property
    def labels(self) -> Tensor:
        """Labels of all samples, (r, n)."""
        if self.centers is None:
            raise ValueError(f"There are no labels and no centers in {self.phase}.")
        return self.assign(self.embeddings)

    def labels_of_some(self, limit: int | None) -> tuple[Tensor, Tensor | None]:
        """Return labels of at most `limit` evenly spread samples, and their rows (None: all)."""
        if limit is None or self.n_samples is None or self.n_samples <= limit:
            return self.labels, None
        assert self.centers is not None
        rows = evenly_spread(self.n_samples, limit, self.centers.device)
        return self.assign(self.embed(rows)), rows


class Monitor(Protocol):
    """Any callable that takes a `Snapshot` and returns columns for the history, or None.

    Examples
    --------
    >>> from reclust import Evaluation, Monitor
    >>> monitor: Monitor = Evaluation([0, 1, 1])
    >>> callable(monitor)
    True
    """

    def __call__(self, snapshot: Snapshot) -> Measured | None:
        """Return column -> values (n_replicas, ...), or None."""


class StatefulMonitor:
    """Base class of monitors whose `memory` is saved in checkpoints."""

    memory: dict[str, Tensor]


class PeriodicMonitor(ABC):
    """Base class of monitors that measure clustering and later stages at regular epochs.

    At the start, every `every`-th epoch, the last, and before, right after and after interventions.
    """

    def __init__(self, *, every: int | None = 1) -> None:
        self.every = None if every is None else check_int("every", every, 1)

    def __call__(self, snapshot: Snapshot) -> Measured | None:
        recorded = snapshot.moment == "start" and snapshot.epoch >= 0  # before the run was resumed
        if snapshot.phase == "pretraining" or recorded or not self.due(snapshot):
            return None
        suffix = AFTER_RESET if snapshot.moment == "intervention" else ""
        return {column + suffix: values for column, values in self.measure(snapshot).items()}

    def due(self, snapshot: Snapshot) -> bool:
        if snapshot.moment != "epoch" or snapshot.epoch == snapshot.epochs - 1:
            return True
        regular = self.every is not None and (snapshot.epoch + 1) % self.every == 0
        return regular or bool(snapshot.fired.any() or snapshot.fires_next.any())

    @abstractmethod
    def measure(self, snapshot: Snapshot) -> Measured: ...


def as_column(column: str, values: Any, replicas: int) -> np.ndarray:
    """Convert a measurement to a new array (r, ...): training keeps writing to its tensors."""
    array = np.array(values.detach().cpu().numpy() if isinstance(values, Tensor) else values)
    if array.dtype.kind not in "biuf" or array.shape[:1] != (replicas,):
        raise ValueError(f"A monitor measured {column!r} as {array.dtype} of shape {array.shape}: "
                         f"it must return numbers of shape ({replicas}, …), one row per replica.")
    return array


def evenly_spread(n: int, limit: int, device: torch.device) -> Tensor:
    """Return at most `limit` of n row numbers."""
    return torch.linspace(0, n - 1, min(n, limit), dtype=torch.float64).long().to(device)
