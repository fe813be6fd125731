"""Monitors of labels: scores against known labels, label change, and cluster count."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ... import metrics
from ...utils.values import check_int
from .base import Measured, PeriodicMonitor, Snapshot, StatefulMonitor

Labels = Sequence[Any] | np.ndarray


class TrueLabels:
    """Known labels of any type, encoded as 0, 1, …."""

    def __init__(self, y: Labels) -> None:
        self._classes = torch.from_numpy(metrics.distinct(np.asarray(y).reshape(-1))[1])

    def on(self, device: torch.device, n: int | None) -> Tensor:
        if n is not None and len(self._classes) != n:
            raise ValueError(f"y has {len(self._classes)} labels for {n} samples.")
        return self._classes.to(device)


class Evaluation(StatefulMonitor, PeriodicMonitor):
    """Score labels against known ones, and measure label change since the last measurement.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or None, default=None
        Known labels; None measures label change only, by 1 - NMI.
    every : int or None, default=1
        Epochs between measurements; None measures at start, end and interventions only.
    limit : int or None, default=None
        Use at most this many evenly spread samples.

    Examples
    --------
    >>> import numpy as np
    >>> from reclust import Autoencoder, Evaluation, IDECObjective, Schedule, Settings, train
    >>> X, y = np.random.default_rng(0).normal(size=(60, 5)).astype("float32"), np.arange(60) % 3
    >>> settings = Settings(3, IDECObjective(), Autoencoder((8,)), pretraining=Schedule(1),
    ...                     clustering=Schedule(4))
    >>> result = train(X, settings, seeds=[0, 1], monitors=[Evaluation(y, every=2)])
    >>> result.history["clustering"]["accuracy"].epochs
    array([-1,  1,  3])
    """

    def __init__(self, y: Labels | None = None, *, every: int | None = 1,
                 limit: int | None = None) -> None:
        super().__init__(every=every)
        self._truth = None if y is None else TrueLabels(y)
        self.limit = None if limit is None else check_int("limit", limit, 1)
        self.memory: dict[str, Tensor] = {}

    def __call__(self, snapshot: Snapshot) -> Measured | None:
        if snapshot.phase != "pretraining" and snapshot.moment == "start":
            if snapshot.epoch < 0:
                self.memory.clear()
            elif "labels" not in self.memory:  # resumed from a run without this monitor
                self.memory["labels"] = snapshot.labels_of_some(self.limit)[0]
        return super().__call__(snapshot) or None

    def measure(self, snapshot: Snapshot) -> Measured:
        labels, rows = snapshot.labels_of_some(self.limit)
        measured = {}
        if self._truth is not None:
            truth = self._truth.on(labels.device, snapshot.n_samples)
            measured = scores_of(truth if rows is None else truth[rows], labels)
        if "labels" in self.memory:
            before = self.memory["labels"].to(labels.device)
            tables = metrics.batched_contingency(before, labels).cpu().numpy()
            kinds = {"label_change": metrics.nmi_of_table}
            if self._truth is not None:  # slower, and of interest beside the other scores
                kinds |= {"label_change_accuracy": metrics.accuracy_of_table,
                          "label_change_ari": metrics.ari_of_table}
            measured |= {name: 100 * (1 - np.array([score(table) for table in tables]))
                         for name, score in kinds.items()}
        if snapshot.moment != "intervention":  # label change is measured from epoch to epoch
            self.memory["labels"] = labels
        return measured


def scores_of(classes: Tensor, labels: Tensor) -> dict[str, np.ndarray]:
    """Score labels (r, n) against classes (n,) or (r, n); (r,) each."""
    tables = metrics.batched_contingency(classes, labels).cpu().numpy()
    scored = [metrics.scores_of_table(table) for table in tables]
    return {name: np.array([scores[name] for scores in scored]) for name in scored[0]}


class ClusterCount(PeriodicMonitor):
    """Count clusters that are not empty, by the labels of at most 10,000 evenly spread samples."""

    def __init__(self) -> None:
        super().__init__(every=10)

    def measure(self, snapshot: Snapshot) -> Measured:
        assert snapshot.centers is not None
        labels, _ = snapshot.labels_of_some(10_000)
        sizes = metrics.cluster_sizes(labels, snapshot.centers.shape[-2])
        return {"clusters": (sizes > 0).sum(-1)}
