"""A backend for Ray clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ...utils.exceptions import require
from ...utils.files import write_bytes
from ...utils.values import value
from .. import execute
from ..execute import Attempt, Conditions, Failed, Stopped, StopRequested, Task, Tick
from ..study import Group, Pretraining
from .local import Attempts

POLL_SECONDS = 1.0
_import_ray = partial(require, "ray", purpose="Running studies on a cluster", extra="cluster")


@value
class RayCluster:
    """Computes groups on the nodes of a Ray cluster.

    Ray transfers encoders and results. If nodes share the work folder, a task can continue on
    another node. Ctrl-C cancels tasks, which continue from their last checkpoints.

    Parameters
    ----------
    address, retries
        "auto" finds the running cluster, None starts one on this machine; how often a task is
        repeated if its worker or node dies.
    cpus, gpus
        Resources of each task. None takes the threads of this machine, or a share of a GPU node's.
    """

    address: str | None = None
    cpus: int | None = None
    gpus: float = 0.0
    retries: int = 3

    def where(self, conditions: Conditions) -> str:
        _import_ray()  # before the runner sets its signal handlers, since ray sets its own
        return "a Ray cluster"

    def attempts(self, groups: Sequence[Group], conditions: Conditions, stop: StopRequested,
                 tick: Tick) -> Attempts:
        ray = _import_ray()
        start = not ray.is_initialized()
        if start:
            ray.init(address=self.address, log_to_driver=False,
                     include_dashboard=False if self.address is None else None)
        try:
            yield from self._attempts(ray, groups, conditions, stop, tick)
        finally:
            if start:
                ray.shutdown()

    def _cpus_per_task(self, nodes: Sequence[Mapping[str, Any]]) -> int:
        """Share the CPUs of each node among its GPUs."""
        resources = [node["Resources"] for node in nodes if node["Alive"]]
        shares = [node.get("CPU", 1) * self.gpus // node["GPU"] for node in resources
                  if self.gpus and node.get("GPU")]
        return max(1, int(min(shares, default=torch.get_num_threads())))

    def _attempts(self, ray: Any, groups: Sequence[Group], conditions: Conditions,
                  stop: StopRequested, tick: Tick) -> Attempts:
        threads = self.cpus or conditions.threads or self._cpus_per_task(ray.nodes())
        there = replace(conditions, threads=threads)
        options = {"num_cpus": threads, "num_gpus": self.gpus, "max_retries": self.retries}
        pretrain, compute = (ray.remote(task).options(**options) for task in (_pretrain, _compute))
        encoders: dict[str, Any] = {}
        pending: dict[Any, Task] = {}
        for group in sorted(groups, key=lambda group: -group.cost):
            start = group.pretraining
            if start is not None and start.key not in encoders:
                file = execute.pretrained_path(start, conditions)
                if file.is_file():
                    encoders[start.key] = ray.put(file.read_bytes())
                else:
                    encoders[start.key] = pretrain.remote(start, there)
                    pending[encoders[start.key]] = start
            needed = None if start is None else encoders[start.key]
            pending[compute.remote(group, there, needed)] = group
        while pending:
            if stop():
                for reference in pending:
                    ray.cancel(reference)
                return
            for reference in ray.wait(list(pending), timeout=POLL_SECONDS)[0]:
                task = pending.pop(reference)
                try:
                    attempt = ray.get(reference)
                except ray.exceptions.RayError as error:  # tasks themselves never raise
                    attempt = Failed(f"The task was lost: {error}")
                if not isinstance(attempt, Stopped):
                    tick(task.cost, task.dataset)
                if isinstance(task, Group):
                    yield task, attempt
                elif isinstance(attempt, bytes):
                    _save(attempt, task, conditions)


def _pretrain(pretraining: Pretraining, conditions: Conditions) -> bytes | Attempt:
    attempt = execute.attempt(pretraining, conditions)
    return attempt.read_bytes() if isinstance(attempt, Path) else attempt


def _compute(group: Group, conditions: Conditions, encoders: bytes | Attempt | None) -> Attempt:
    if isinstance(encoders, (Failed, Stopped)):
        return encoders
    if isinstance(encoders, bytes) and group.pretraining is not None:
        _save(encoders, group.pretraining, conditions)
    return execute.attempt(group, conditions)


def _save(encoders: bytes, pretraining: Pretraining, conditions: Conditions) -> None:
    path = execute.pretrained_path(pretraining, conditions)
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, encoders)
