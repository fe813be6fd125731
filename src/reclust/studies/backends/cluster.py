"""A Ray cluster, for studies that outgrow a machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ...utils.files import write_bytes
from ...utils.lazy import require
from ...utils.values import value
from ..execute import (
    Asked,
    Attempt,
    Conditions,
    Failed,
    Stopped,
    Tick,
    attempt,
    attempt_pretraining,
    pretrained_path,
)
from ..study import Group, Pretraining
from .base import Attempts

POLL = 1.0
"""Seconds between two looks at the clock and at Ctrl-C."""


@value
class RayCluster:
    """Tasks on the nodes of a Ray cluster. Ray carries encoders and results; checkpoints lie in the work folder, which nodes
    have to share for a task to go on elsewhere. Ctrl-C cancels tasks where they are; they go on from their last checkpoints.

    address: "auto" finds the running cluster, None starts one on this machine. cpus, gpus: what each task is given; cpus
    are also its threads, None for as many as here, or beside GPUs for a node's share. retries: how often a task is repeated
    when its worker or node dies.
    """

    address: str | None = None
    cpus: int | None = None
    gpus: float = 0.0
    retries: int = 3

    def where(self, conditions: Conditions) -> str:
        ray_itself()  # now: Ray listens for SIGTERM from its import on, and whoever runs the study wants to hear it instead
        return "a Ray cluster"

    def ordered(self, groups: Sequence[Group]) -> list[Group]:
        return sorted(groups, key=lambda group: -group.cost)

    def attempts(self, groups: Sequence[Group], conditions: Conditions, stop: Asked, tick: Tick) -> Attempts:
        ray = ray_itself()
        own = not ray.is_initialized()
        if own:
            ray.init(address=self.address, log_to_driver=False, include_dashboard=False if self.address is None else None)
        try:
            yield from self._attempts(ray, groups, conditions, stop, tick)
        finally:
            if own:
                ray.shutdown()

    def _share(self, nodes: Sequence[Mapping[str, Any]]) -> int:
        """CPUs of a task, such that every GPU of every node finds some left."""
        resources = [node["Resources"] for node in nodes if node["Alive"]]
        shares = [one.get("CPU", 1) * self.gpus // one["GPU"] for one in resources if self.gpus and one.get("GPU")]
        return max(1, int(min(shares, default=torch.get_num_threads())))

    def _attempts(self, ray: Any, groups: Sequence[Group], conditions: Conditions, stop: Asked, tick: Tick) -> Attempts:
        threads = self.cpus or conditions.threads or self._share(ray.nodes())
        there = replace(conditions, threads=threads)
        options = {"num_cpus": threads, "num_gpus": self.gpus, "max_retries": self.retries}
        pretrain, compute = (ray.remote(function).options(**options) for function in (_pretrain, _compute))
        encoders: dict[str, Any] = {}
        pending: dict[Any, Pretraining | Group] = {}
        for group in groups:
            needed = group.pretraining
            if needed is not None and needed.key not in encoders:
                kept = pretrained_path(needed, conditions)
                encoders[needed.key] = ray.put(kept.read_bytes()) if kept.is_file() else pretrain.remote(needed, there)
                if not kept.is_file():
                    pending[encoders[needed.key]] = needed
            pending[compute.remote(group, there, None if needed is None else encoders[needed.key])] = group
        while pending:
            if stop():
                for reference in pending:
                    ray.cancel(reference)
                return
            for reference in ray.wait(list(pending), timeout=POLL)[0]:
                task = pending.pop(reference)
                made = _answer(ray, reference)
                if not isinstance(made, Stopped):
                    tick(task.cost, task.dataset)
                if isinstance(task, Group):
                    yield task, made
                elif isinstance(made, bytes):
                    _keep(made, task, conditions)


def ray_itself() -> Any:
    return require("ray", purpose="Running studies on a cluster", extra="cluster")


def _answer(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayError as error:  # the task itself never raises
        return Failed(f"The task was lost: {error}")


def _pretrain(pretraining: Pretraining, conditions: Conditions) -> bytes | Attempt:
    """The file of the encoders, as it is kept."""
    made = attempt_pretraining(pretraining, conditions)
    return made.read_bytes() if isinstance(made, Path) else made


def _compute(group: Group, conditions: Conditions, encoders: bytes | Attempt | None) -> Attempt:
    if isinstance(encoders, (Failed, Stopped)):
        return encoders
    if isinstance(encoders, bytes) and group.pretraining is not None:
        _keep(encoders, group.pretraining, conditions)
    return attempt(group, conditions)


def _keep(encoders: bytes, pretraining: Pretraining, conditions: Conditions) -> None:
    """On this node, where it does not have them yet."""
    path = pretrained_path(pretraining, conditions)
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, encoders)
