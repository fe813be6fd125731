"""Monitors look at training and change nothing: measures, progress, trackers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from ... import metrics
from ...utils.values import check_int
from ..history import AFTER_RESET

Measured = Mapping[str, Any]
"""Column -> numbers of each replica, (r, ...)."""


@dataclass
class Snapshot:
    """Training as a monitor sees it at one moment. Embeddings and labels are computed when first asked for.

    moment: "start" (before the first epoch), "intervention" (right after one fired, before the epoch trains) or "epoch"
        (at the end of one). loss: column -> (r,) means over the epoch, empty but for "epoch".
    fired, fires_next: (r,), whether an intervention fired at the start of this epoch, and may at the start of the next.
    parameters: of the network, name -> (r, ...); centers (r, k, d), only while clustering. They are training's own tensors:
        copy what is to be kept, and write nothing.
    """

    phase: str
    moment: Literal["start", "intervention", "epoch"]
    epoch: int
    epochs: int
    loss: Mapping[str, np.ndarray]
    fired: np.ndarray
    embed: Callable[..., Tensor]
    """() -> (r, n, d) of all samples; of these rows (m,) -> (r, m, d)."""
    assign: Callable[[Tensor], Tensor]
    fires_next: np.ndarray = field(default_factory=lambda: np.zeros(1, dtype=bool))
    parameters: Mapping[str, Tensor] = field(default_factory=dict)
    centers: Tensor | None = None
    representation_loss: Callable[[], Tensor] | None = None
    """() -> (r,): the representation's own loss on all samples as they are, in eval mode."""
    n_samples: int | None = None
    state: Mapping[str, Tensor] = field(default_factory=dict)
    """What the objectives keep, name -> (r, ...), to be read only; empty before clustering."""
    measured: dict[str, Any] = field(default_factory=dict)
    """What the monitors before this one have measured at this moment, column -> (r, ...): for trackers, which come last."""

    @cached_property
    def embeddings(self) -> Tensor:
        """(r, n, d)."""
        return self.embed()

    @cached_property
    def labels(self) -> Tensor:
        """(r, n); only while clustering."""
        if self.centers is None:
            raise ValueError(f"There are no labels in {self.phase}: look at `snapshot.centers` first, which is None until "
                             "clustering begins.")
        return self.assign(self.embeddings)


def of_each_replica(column: str, values: Any, replicas: int, before: Sequence[np.ndarray]) -> np.ndarray:
    """What was measured, (r, ...), as it was before; copied, since training goes on writing to its own tensors."""
    made = np.array(values.detach().cpu().numpy() if isinstance(values, Tensor) else values)
    if made.dtype.kind not in "biuf" or made.shape[:1] != (replicas,):
        raise ValueError(f"A monitor measured {column!r} as {made.dtype} of shape {made.shape}: the history keeps numbers, one "
                         f"or an array for each of the {replicas} replicas, ({replicas}, …).")
    if before and made.shape != before[0].shape:
        raise ValueError(f"A monitor measured {column!r} of shape {made.shape}, and of {before[0].shape} earlier: a column of "
                         "the history has one shape.")
    return made


class Monitor(Protocol):
    def __call__(self, snapshot: Snapshot) -> Measured | None:
        """What to add to the history at this epoch, if anything."""
        ...


def check_monitors(monitors: Sequence[Monitor]) -> None:
    if not isinstance(monitors, Sequence):
        raise TypeError(f"monitors must be a sequence, got {monitors!r}: write [monitor].")
    for monitor in monitors:
        if isinstance(monitor, type) or not callable(monitor):
            raise TypeError(f"Monitors are called with a snapshot, and {monitor!r} cannot be: write Progress(), for example.")


class StatefulMonitor:
    """Parent of monitors whose next measure depends on their last look: checkpoints keep their memory."""

    memory: dict[str, Tensor]


class WithinEpochMonitor(ABC):
    """Parent of monitors that want to know how far an epoch is, since one of a large set may take minutes."""

    @abstractmethod
    def within(self, share: float) -> None:
        """share: of the epoch's batches that were begun, above 0 and below 1. Told a few times a second at most."""
        ...


class PeriodicMonitor(ABC):
    """A monitor that measures clustering, and stages after it: before the first epoch, at every `every`-th one (None: none but
    those named here) and the last, and around each firing of an intervention: at the end of the epoch before, right after
    it, and at the end of the epoch that follows."""

    def __init__(self, *, every: int | None = 1) -> None:
        self.every = None if every is None else check_int("every", every, 1)

    def __call__(self, snapshot: Snapshot) -> Measured | None:
        recorded = snapshot.moment == "start" and snapshot.epoch >= 0  # by the run that this one resumes
        if snapshot.phase == "pretraining" or recorded or not self.due(snapshot):
            return None
        ending = AFTER_RESET if snapshot.moment == "intervention" else ""
        return {column + ending: values for column, values in self.measure(snapshot).items()}

    def due(self, snapshot: Snapshot) -> bool:
        if snapshot.moment != "epoch" or snapshot.epoch == snapshot.epochs - 1:
            return True
        regular = self.every is not None and (snapshot.epoch + 1) % self.every == 0
        return regular or bool(snapshot.fired.any() or snapshot.fires_next.any())

    @abstractmethod
    def measure(self, snapshot: Snapshot) -> Measured: ...


class TrueLabels:
    """Known labels of any kind, as classes from 0 on."""

    def __init__(self, y: Sequence[Any] | np.ndarray) -> None:
        self._classes = torch.from_numpy(metrics.distinct(np.asarray(y).reshape(-1))[1])

    def on(self, labels: Tensor, n: int | None = None) -> Tensor:
        """(n,), where the labels (r, n), or those of some of n samples, are."""
        n = labels.shape[-1] if n is None else n
        if len(self._classes) != n:
            raise ValueError(f"y has {len(self._classes)} labels for {n} samples: give one for each.")
        return self._classes.to(labels.device)


def evenly_spread(n: int, limit: int, device: torch.device) -> Tensor:
    """At most `limit` of n row numbers."""
    return torch.linspace(0, n - 1, min(n, limit), dtype=torch.float64).long().to(device)


class Evaluation(StatefulMonitor, PeriodicMonitor):
    """Scores against known labels, and the label change since the last epoch looked at, among at most `limit` evenly spread
    samples (None: among all)."""

    def __init__(self, y: Sequence[int] | np.ndarray | None = None, *, every: int | None = 1, limit: int | None = None) -> None:
        super().__init__(every=every)
        self._truth = None if y is None else TrueLabels(y)
        self.limit = None if limit is None else check_int("limit", limit, 1)
        self.memory: dict[str, Tensor] = {}

    def __call__(self, snapshot: Snapshot) -> Measured | None:
        if snapshot.phase != "pretraining" and snapshot.moment == "start":
            if snapshot.epoch < 0:
                self.memory.clear()
            elif "labels" not in self.memory:  # a resumed run that nobody looked at before
                self.memory["labels"] = self._looked_at(snapshot)[0]
        return super().__call__(snapshot) or None

    def _looked_at(self, snapshot: Snapshot) -> tuple[Tensor, Tensor | None]:
        """Labels (r, m), and which rows they are of; None for all."""
        if self.limit is None or snapshot.n_samples is None or snapshot.n_samples <= self.limit:
            return snapshot.labels, None
        assert snapshot.centers is not None
        rows = evenly_spread(snapshot.n_samples, self.limit, snapshot.centers.device)
        return snapshot.assign(snapshot.embed(rows)), rows

    def measure(self, snapshot: Snapshot) -> Measured:
        (labels, rows), measured = self._looked_at(snapshot), {}
        if self._truth is not None:
            truth = self._truth.on(labels, snapshot.n_samples)
            tables = metrics.batched_contingency(truth if rows is None else truth[rows], labels)
            scored = [metrics.scores_of_table(table) for table in tables.cpu().numpy()]
            measured = {name: np.array([one[name] for one in scored]) for name in scored[0]}
        if "labels" in self.memory:
            tables = metrics.batched_contingency(self.memory["labels"].to(labels.device), labels)
            measured["label_change"] = np.array([100 * (1 - metrics.nmi_of_table(table)) for table in tables.cpu().numpy()])
        if snapshot.moment != "intervention":  # label change goes from epoch to epoch, across a reset as well
            self.memory["labels"] = labels
        return measured


class ClusterCount(PeriodicMonitor):
    """How many clusters have samples, among at most `limit` evenly spread ones: at the start, every so many epochs, around
    each intervention and at the end. Column: clusters; where it falls clusters died, where it rises they were revived."""

    def __init__(self, *, every: int | None = 10, limit: int = 10_000) -> None:
        super().__init__(every=every)
        self.limit = check_int("limit", limit, 1)

    def measure(self, snapshot: Snapshot) -> Measured:
        assert snapshot.centers is not None and snapshot.n_samples is not None  # training always gives them
        n, k = snapshot.n_samples, snapshot.centers.shape[-2]
        if n <= self.limit:
            labels = snapshot.labels
        else:
            labels = snapshot.assign(snapshot.embed(evenly_spread(n, self.limit, snapshot.centers.device)))
        return {"clusters": (metrics.cluster_sizes(labels, k) > 0).sum(-1)}


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
