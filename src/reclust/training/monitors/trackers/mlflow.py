"""MLflow, through its client, which leaves the active run and global settings alone."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ....utils.exceptions import require
from .base import Tracker


class MLflow(Tracker):
    """Write metrics to a new run in `experiment`, or to the run `run_id`, which stays open.

    tracking_uri: a server, a database such as "sqlite:///runs.db", or a folder; None uses
    MLflow's own setting. Needs the extra `mlflow`.
    """

    def __init__(self, experiment: str = "reclust", *, run_id: str | None = None,
                 tracking_uri: str | None = None) -> None:
        mlflow = require("mlflow", purpose="Writing to MLflow", extra="mlflow")
        self._metric = mlflow.entities.Metric
        self._client = mlflow.MlflowClient(tracking_uri)
        self._owned = run_id is None
        self.run_id = self._new_run(experiment) if run_id is None else run_id

    def _new_run(self, experiment: str) -> str:
        known = self._client.get_experiment_by_name(experiment)
        where = known.experiment_id if known else self._client.create_experiment(experiment)
        return self._client.create_run(where).info.run_id

    def write(self, phase: str, epoch: int, numbers: Mapping[str, float]) -> None:
        now = int(1000 * time.time())
        entries = [self._metric(name, number, now, epoch) for name, number in numbers.items()]
        self._client.log_batch(self.run_id, entries)

    def close(self, failed: bool = False) -> None:
        if self._owned:
            self._client.set_terminated(self.run_id, "FAILED" if failed else "FINISHED")
