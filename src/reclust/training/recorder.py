"""Bookkeeping of a run: history, failed replicas, seconds and checkpoints."""

import time
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from .. import draws
from ..utils.device import Timer
from ..utils.exceptions import TrainingFailed, warn
from ..utils.files import check_writable
from .checkpoint import Checkpoint, TrainingState
from .context import RunContext
from .engine.executors import executor_kind
from .fingerprint import identity
from .history import Curve, History
from .monitors.base import StatefulMonitor, as_column
from .result import Result, provenance


class Recorder:
    def __init__(self, context: RunContext, checkpoint: Checkpoint | None) -> None:
        self.context, self.checkpoint = context, checkpoint
        self.failed = {} if context.start is None else dict(context.start.failed)
        self._columns: dict[tuple[str, str], list[tuple[int, np.ndarray]]] = defaultdict(list)
        self.clock = Timer(context.inputs.device)
        self._last_save = time.monotonic()

    def add(self, phase: str, epoch: int, measured: Mapping[str, Any]) -> dict[str, np.ndarray]:
        arrays = {}
        for column, values in measured.items():
            points = self._columns[phase, column]
            if points and points[-1][0] == epoch:  # the later of two monitors wins
                points.pop()
            arrays[column] = as_column(column, values, len(self.context.replicas))
            points.append((epoch, arrays[column]))
        return arrays

    @property
    def history(self) -> History:
        history: History = {}
        for (phase, column), points in self._columns.items():
            epochs, values = zip(*points, strict=True)
            history.setdefault(phase, {})[column] = Curve(np.array(epochs), np.stack(values))
        return history

    def record_failures(self, phase: str, epoch: int, loss: np.ndarray, lr: float) -> None:
        """Mark replicas whose loss is not finite; the others are not affected by them."""
        hint = f"Try a smaller lr (now {lr:g}) or clip_norm, and check the scale of the data."
        for replica in np.flatnonzero(~np.isfinite(loss)).tolist():
            if replica not in self.failed:
                self.failed[replica] = (phase, epoch)
                warn(f"The loss of the replica with seed {self.context.replicas.seeds[replica]} "
                     f"became {loss[replica]} in epoch {epoch} of {phase}: it is dropped. {hint}")
        if len(self.failed) == len(self.context.replicas) and not self.context.is_partial_group:
            raise TrainingFailed("The loss of every replica stopped being finite, the last one in "
                                 f"epoch {epoch} of {phase}. {hint}")

    def save(self, phase: str, next_epoch: int, optimizer: dict[str, Tensor],
             memory: dict[str, dict[str, Tensor]], *, last: bool, force: bool) -> None:
        checkpoint, replicas = self.checkpoint, self.context.replicas
        if checkpoint is None or not self.context.ranks.is_first:
            return
        due = last or next_epoch % checkpoint.every == 0
        if force or (due and time.monotonic() - self._last_save >= checkpoint.seconds):
            self._last_save = time.monotonic()
            monitors = {name: monitor.memory for name, monitor in self._stateful_monitors.items()}
            state = TrainingState(phase, next_epoch, replicas.tensors(), optimizer,
                                  monitors | memory, self.history, dict(self.clock.seconds),
                                  self.failed)
            state.write(checkpoint, self._identity, replicas.seeds, self.context.settings)

    def resume(self) -> TrainingState | None:
        """Read the checkpoint, if there is one, and continue its records."""
        if self.checkpoint is None:
            return None
        state = self.context.ranks.from_first(self._read)
        if state is None:
            return None
        for owner, monitor in self._stateful_monitors.items():
            monitor.memory = state.memory.get(owner, {})
        self.failed = state.failed
        self.clock.seconds.update(state.seconds)
        for phase, columns in state.history.items():
            for column, curve in columns.items():
                points = zip(curve.epochs.tolist(), curve.values, strict=True)
                self._columns[phase, column] = list(points)
        return state

    def _read(self) -> TrainingState | None:
        assert self.checkpoint is not None
        check_writable(self.checkpoint.path)
        exists = self.checkpoint.exists()
        return TrainingState.read(self.checkpoint, self._identity) if exists else None

    def result(self, labels: np.ndarray | None) -> Result:
        context = self.context
        return Result(
            settings=context.settings, seeds=context.replicas.seeds,
            sample_shape=context.inputs.sample_shape, **context.replicas.tensors(), labels=labels,
            history=self.history, seconds=dict(self.clock.seconds), failed=self.failed,
            provenance={**provenance(context.inputs.device),
                        "precision": context.precision.precision})

    @property
    def _stateful_monitors(self) -> dict[str, StatefulMonitor]:
        """By class and position, so that a resumed run may have other monitors."""
        return {f"{type(monitor).__qualname__} {i}": monitor
                for i, monitor in enumerate(self.context.monitors)
                if isinstance(monitor, StatefulMonitor)}

    @cached_property
    def _identity(self) -> str:
        context, start = self.context, self.context.start
        kind = executor_kind(context.replicas, context.execution.executor)
        started = start and (start.seeds, start.parameters, start.buffers, start.state)
        # Tells streamed data apart, which is visited in another order.
        order = context.inputs.order(draws.key(0, device=context.inputs.device))[:1000]
        return identity(context.inputs, context.settings, context.replicas.seeds, kind,
                        context.precision.precision, started, order)
