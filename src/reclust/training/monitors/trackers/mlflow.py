"""MLflow, through its client, which touches no active run and no global address."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ....utils.lazy import require
from .base import Tracker


class MLflow(Tracker):
    """Metrics of a run of its own in `experiment`, or of the run that `run_id` names, which stays open for its owner.

    tracking_uri: a server, a database such as "sqlite:///runs.db" (for which the whole of mlflow is needed) or a folder;
        None is where MLflow is set up to write. Needs the extra `mlflow`.
    """

    def __init__(self, experiment: str = "reclust", *, run_id: str | None = None, tracking_uri: str | None = None) -> None:
        mlflow = require("mlflow", purpose="Writing to MLflow", extra="mlflow")
        self._metric = mlflow.entities.Metric
        self._client = mlflow.MlflowClient(tracking_uri)
        self._owned = run_id is None
        self.run_id = self._new_run(experiment) if run_id is None else run_id

    def _new_run(self, experiment: str) -> str:
        known = self._client.get_experiment_by_name(experiment)
        where = self._client.create_experiment(experiment) if known is None else known.experiment_id
        return self._client.create_run(where).info.run_id

    def write(self, phase: str, epoch: int, numbers: Mapping[str, float]) -> None:
        now = int(1000 * time.time())
        self._client.log_batch(self.run_id, [self._metric(name, number, now, epoch) for name, number in numbers.items()])

    def close(self, failed: bool = False) -> None:
        if self._owned:
            self._client.set_terminated(self.run_id, "FAILED" if failed else "FINISHED")
