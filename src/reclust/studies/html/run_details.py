"""Details of a run for a report: its embeddings, samples around its centers, confusion matrix."""

import os
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ... import metrics, report
from ...data import DataError, Dataset, load
from ...training.history import Curve
from ..measures import shown_rows
from ..store.reader import StoreReader

Found = Dataset | str  # or the reason why there is none
LIMITS = {"scene": 24, "sheet": 24, "confusion": 200}  # runs that have each part, in one report


def samples_in(folder: str | os.PathLike[str] | None) -> Callable[[str], Found]:
    @lru_cache(maxsize=1)
    def load_set(name: str) -> Found:
        try:
            return load(name, folder=folder, download=False)
        except (DataError, OSError):
            return f"No images and true classes: {name} was not found when this report was written."
    return load_set


class RunDetails:
    """Details of runs by part (scene, sheet, confusion), or why a part is missing."""

    def __init__(self, store: StoreReader, samples: Callable[[str], Found]) -> None:
        self._store, self._samples, self._left = store, samples, dict(LIMITS)
        self.runs: dict[str, dict[str, Any]] = {}

    def add(self, run: str, dataset: str, accuracies: Collection[float]) -> None:
        """Add a run, whose recorded accuracies tell whether the data set is the one it saw."""
        if run in self.runs or not any(self._left.values()):
            return
        columns = self._store.history(run).get("clustering", {})
        labels = self._array(run, "labels")
        n = self._store.provenance(run)["data"]["samples"] if labels is None else len(labels)
        parts: dict[str, Any] = {"scene": _scene(columns, n, self._array(run, "shown_classes"))}
        if labels is None:
            why = "The labels of this run are not in the store: `reclust study compact` drops them."
            parts |= {"sheet": why, "confusion": why}
        else:
            data = _trained_on(self._samples(dataset), labels, accuracies)
            parts |= {"sheet": _sheet(columns, labels, data), "confusion": _confusion(labels, data)}
        for part, content in parts.items():
            if not isinstance(content, str) and self._left[part] == 0:
                parts[part] = f"Left out to keep this file small: shown for {LIMITS[part]} runs."
            elif not isinstance(content, str):
                self._left[part] -= 1
        self.runs[run] = parts

    def _array(self, run: str, name: str) -> np.ndarray | None:
        try:
            return self._store.array(run, name)
        except KeyError:
            return None


def _trained_on(data: Found, labels: np.ndarray, accuracies: Collection[float]) -> Found:
    """Return the first samples, or those of the training part, that give a recorded accuracy."""
    if isinstance(data, str) or data.labels is None:
        return data
    for part in (data, *([data.train] if data.split is not None else ())):
        first = part.take(slice(len(labels)))
        if first.labels is not None and len(first) == len(labels):
            accuracy = metrics.accuracy(first.labels, labels)
            if any(abs(accuracy - known) < 1e-6 for known in accuracies):
                return first
    return f"The {data.name} found here is not the one that the run was trained on."


def _scene(columns: Mapping[str, Curve], n: int,
           classes: np.ndarray | None) -> dict[str, Any] | str:
    if "embedding" not in columns:
        return 'This study does not record embeddings (measures = ["embeddings"]).'
    scene = report.scene(columns, shown_rows(n), classes=classes)
    return scene or "The embeddings of this run are not finite."


def _sheet(columns: Mapping[str, Curve], labels: np.ndarray, data: Found) -> dict[str, Any] | str:
    if "nearest" not in columns:
        return "An older version wrote this run without the samples around its centers."
    if isinstance(data, str):
        return data
    if data.image_shape is None:
        return f"The samples of {data.name} are rows of a table, not images."
    nearest, farthest = (columns[name].values[-1].astype(np.int64)
                         for name in ("nearest", "farthest"))
    if any((labels[rows[rows >= 0]] != cluster).any() for cluster, rows in enumerate(nearest)):
        return "Labels were trained further after clustering and no longer belong to the centers."
    return report.sheet(data, labels, nearest, farthest)


def _confusion(labels: np.ndarray, data: Found) -> dict[str, Any] | str:
    if isinstance(data, str):
        return data
    if data.labels is None:
        return f"{data.name} has no true classes."
    return report.confusion(data.labels, labels)
