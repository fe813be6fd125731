"""Monitors that send settings and curves of a run to TensorBoard, MLflow or Weights & Biases."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...utils.exceptions import require
from ...utils.values import records
from .base import Snapshot


class Tracker(ABC):
    """A monitor that writes the newest scalars of each curve as `phase/column[/replica 3]`.

    It sees losses and the measurements of monitors before it, so put it last.
    """

    _configured = False

    def __call__(self, snapshot: Snapshot) -> None:
        if not self._configured:
            self._configured = True
            self.configure(dict(records(snapshot.settings)))
        if snapshot.moment == "start" and snapshot.epoch >= 0:  # written before the run was resumed
            return
        columns, replicas = {**snapshot.loss, **snapshot.measured}, len(snapshot.fired)
        if snapshot.fired.any() and snapshot.moment == "epoch":
            columns["fired"] = snapshot.fired
        numbers = {f"{snapshot.phase}/{column}" + f"/replica {i}" * (replicas > 1): float(number)
                   for column, values in columns.items() if np.shape(values) == (replicas,)
                   for i, number in enumerate(values)}
        if numbers:
            self.write(snapshot.phase, snapshot.epoch, numbers)

    def configure(self, settings: Mapping[str, str]) -> None:  # noqa: B027 - optional
        """Write the settings of the first training by dotted name."""

    @abstractmethod
    def write(self, phase: str, epoch: int, numbers: Mapping[str, float]) -> None:
        """Write numbers by their full names; epoch -1 is before the first one."""

    def close(self, failed: bool = False) -> None:  # noqa: B027 - optional
        """Finish writing. failed: training ended with an exception."""

    def __enter__(self) -> "Tracker":
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        self.close(failed=kind is not None)


class TensorBoard(Tracker):
    """Write event files for `tensorboard --logdir folder`. Needs the extra `tensorboard`."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        require("tensorboard", purpose="Writing TensorBoard's event files", extra="tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(os.fspath(folder))

    def write(self, phase: str, epoch: int, numbers: Mapping[str, float]) -> None:
        for name, number in numbers.items():
            self._writer.add_scalar(name, number, epoch)
        self._writer.flush()

    def close(self, failed: bool = False) -> None:
        self._writer.close()


class MLflow(Tracker):
    """Write metrics to a new run in `experiment`, or to the run `run_id`, which stays open.

    The active run and MLflow's global settings are left alone. tracking_uri: a server, a database
    such as "sqlite:///runs.db", or a folder; None uses MLflow's own setting. Needs the extra
    `mlflow`.
    """

    def __init__(self, experiment: str = "reclust", *, run_id: str | None = None,
                 tracking_uri: str | None = None) -> None:
        mlflow = require("mlflow", purpose="Writing to MLflow", extra="mlflow")
        self._metric, self._param = mlflow.entities.Metric, mlflow.entities.Param
        self._client = mlflow.MlflowClient(tracking_uri)
        self._owned = run_id is None
        if run_id is None:
            known = self._client.get_experiment_by_name(experiment)
            where = known.experiment_id if known else self._client.create_experiment(experiment)
            run_id = self._client.create_run(where).info.run_id
        self.run_id = run_id

    def configure(self, settings: Mapping[str, str]) -> None:
        known = self._client.get_run(self.run_id).data.params  # which cannot change
        self._client.log_batch(self.run_id, params=[
            self._param(name, text) for name, text in settings.items() if name not in known])

    def write(self, phase: str, epoch: int, numbers: Mapping[str, float]) -> None:
        now = int(1000 * time.time())
        entries = [self._metric(name, number, now, epoch) for name, number in numbers.items()]
        self._client.log_batch(self.run_id, entries)

    def close(self, failed: bool = False) -> None:
        if self._owned:
            self._client.set_terminated(self.run_id, "FAILED" if failed else "FINISHED")


class WandB(Tracker):
    """Log to a run made by `wandb.init(…)`, with an epoch axis per phase. You finish the run."""

    def __init__(self, run: Any) -> None:
        if isinstance(run, str):
            raise TypeError(f"WandB takes a run: WandB(wandb.init(project={run!r})).")
        self._run = run
        self._phases: set[str] = set()

    def configure(self, settings: Mapping[str, str]) -> None:
        self._run.config.update(settings, allow_val_change=True)

    def write(self, phase: str, epoch: int, numbers: Mapping[str, float]) -> None:
        if phase not in self._phases:  # wandb's steps only increase, epochs restart in each phase
            self._phases.add(phase)
            self._run.define_metric(f"{phase}/*", step_metric=f"{phase}/epoch")
        self._run.log({f"{phase}/epoch": epoch, **numbers})
