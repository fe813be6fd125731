"""Monitors look at training and change nothing: measures, progress, trackers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from . import metrics
from .values import whole

Measured = Mapping[str, Any]
"""Column -> one number for each replica, (r,)."""


@dataclass
class Snapshot:
    """Training as a monitor sees it at one moment. Embeddings and labels are computed when first asked for.

    moment: "start" (before the first epoch), "intervention" (right after one fired, before the epoch trains) or "epoch"
        (at the end of one). loss: column -> (r,) means over the epoch, empty but for "epoch".
    """

    phase: str
    moment: Literal["start", "intervention", "epoch"]
    epoch: int
    epochs: int
    loss: Mapping[str, np.ndarray]
    fired: np.ndarray
    embed: Callable[[], Tensor]
    assign: Callable[[Tensor], Tensor]
    state: Mapping[str, Tensor] = field(default_factory=dict)
    """What the objectives keep, name -> (r, ...), to be read only; empty before clustering."""

    @cached_property
    def embeddings(self) -> Tensor:
        """(r, n, d)."""
        return self.embed()

    @cached_property
    def labels(self) -> Tensor:
        """(r, n); only while clustering."""
        return self.assign(self.embeddings)


class Monitor(Protocol):
    def __call__(self, snapshot: Snapshot) -> Measured | None:
        """What to add to the history at this epoch, if anything."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A monitor whose next measure depends on its last look: checkpoints keep its memory."""

    memory: dict[str, Tensor]


class Evaluation:
    """Scores against known labels and the label change since the last look, at every `every`-th epoch of clustering and
    around each firing of an intervention."""

    def __init__(self, y: Sequence[int] | np.ndarray | None = None, *, every: int = 1) -> None:
        self.every = whole("every", every, 1)
        self._truth = None if y is None else torch.from_numpy(np.unique(np.asarray(y), return_inverse=True)[1].reshape(-1))
        self.memory: dict[str, Tensor] = {}

    def __call__(self, snapshot: Snapshot) -> Measured | None:
        if snapshot.phase != "clustering" or snapshot.moment == "intervention":
            return None
        if snapshot.moment == "start" and snapshot.epoch >= 0:  # a resumed run has recorded this epoch already
            if "labels" not in self.memory:
                self.memory["labels"] = snapshot.labels
            return None
        if snapshot.moment == "start":
            self.memory.clear()
        last_epoch = snapshot.epoch == snapshot.epochs - 1
        if not (snapshot.moment == "start" or last_epoch or snapshot.fired.any() or (snapshot.epoch + 1) % self.every == 0):
            return None
        labels = snapshot.labels
        measured: dict[str, Any] = {}
        if self._truth is not None:
            tables = metrics.batched_contingency(self._truth.to(labels.device), labels)
            scored = [metrics.scores_of_table(table) for table in tables.cpu().numpy()]
            measured = {name: np.array([one[name] for one in scored]) for name in scored[0]}
        if "labels" in self.memory:
            pairs = zip(self.memory["labels"].cpu().numpy(), labels.cpu().numpy(), strict=True)
            measured["label_change"] = np.array([metrics.label_change(before, now) for before, now in pairs])
        self.memory["labels"] = labels
        return measured or None


class Progress:
    """A progress bar for each phase; it appears after a moment, so that quick fits stay silent."""

    def __init__(self, *, shown: bool | None = None, delay: float = 1.0) -> None:
        self._disable = None if shown is None else not shown  # None: shown where somebody is watching a terminal
        self._delay = delay
        self._bar: tqdm | None = None

    def __call__(self, snapshot: Snapshot) -> None:
        if snapshot.moment == "start":
            self.close()
            self._bar = tqdm(total=snapshot.epochs, initial=snapshot.epoch + 1, desc=snapshot.phase, unit="epoch",
                             disable=self._disable, delay=self._delay, leave=False)
        elif snapshot.moment == "epoch" and self._bar is not None:
            self._bar.update(snapshot.epoch + 1 - self._bar.n)
            self._bar.set_postfix(loss=f"{np.nanmean(snapshot.loss['loss']):.4f}", refresh=False)
            if snapshot.epoch == snapshot.epochs - 1:
                self.close()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Deadline:
    """When a time budget, counted from now, is spent."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def passed(self) -> bool:
        return self._end is not None and time.monotonic() > self._end
