"""What lies inside a run, for a report: its embeddings, the samples around its centres, which classes went where."""

from __future__ import annotations

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

Found = Dataset | str
"""A data set, or in words why there is none."""


def samples_in(folder: str | os.PathLike[str] | None) -> Callable[[str], Found]:
    """Name -> the set in this folder (None: the usual one). Nothing is downloaded."""
    @lru_cache(maxsize=1)
    def found(name: str) -> Found:
        try:
            return load(name, folder=folder, download=False)
        except (DataError, OSError):
            return f"The data set {name} was not at hand where this report was written: images and true classes are missing."
    return found


class Insides:
    """Run -> part -> what is shown of it, or in words why it is not; each part of at most so many runs.

    limits: scene, sheet and confusion -> how many.
    """

    def __init__(self, store: StoreReader, samples: Callable[[str], Found], limits: Mapping[str, int]) -> None:
        self._store, self._samples, self._limits, self._left = store, samples, limits, dict(limits)
        self.runs: dict[str, dict[str, Any]] = {}

    def add(self, run: str, dataset: str, accuracies: Collection[float]) -> None:
        """accuracies: what the store says, by which the data at hand are known to be those of the run."""
        if run in self.runs or not any(self._left.values()):
            return
        columns = self._store.history(run).get("clustering", {})
        labels = self._array(run, "labels")
        n = self._store.provenance(run)["data"]["samples"] if labels is None else len(labels)
        made: dict[str, Any] = {"scene": _scene(columns, n, self._array(run, "shown_classes"))}
        if labels is None:
            why = "The store has no labels of this run: `reclust study compact` leaves them out."
            made |= {"sheet": why, "confusion": why}
        else:
            data = _trained_on(self._samples(dataset), labels, accuracies)
            made |= {"sheet": _sheet(columns, labels, data), "confusion": _confusion(labels, data)}
        for part, content in made.items():
            if not isinstance(content, str) and self._left[part] == 0:
                made[part] = f"Left out to keep this file small: it shows this of {self._limits[part]} runs."
            elif not isinstance(content, str):
                self._left[part] -= 1
        self.runs[run] = made

    def _array(self, run: str, name: str) -> np.ndarray | None:
        try:
            return self._store.array(run, name)
        except KeyError:
            return None


def _trained_on(found: Found, labels: np.ndarray, accuracies: Collection[float]) -> Found:
    """The samples that a run was trained on, the first ones of the set or of its training part: those whose classes give an
    accuracy that is in the store."""
    if isinstance(found, str) or found.labels is None:
        return found
    for part in (found, *([found.train] if found.split is not None else ())):
        first = part.take(slice(len(labels)))
        if first.labels is not None and len(first) == len(labels):
            accuracy = metrics.accuracy(first.labels, labels)
            if any(abs(accuracy - known) < 1e-6 for known in accuracies):
                return first
    return f"The data set {found.name} at hand where this report was written is not the one that the run was trained on."


def _scene(columns: Mapping[str, Curve], n: int, classes: np.ndarray | None) -> dict[str, Any] | str:
    """classes: of the samples whose embeddings were kept."""
    if "embedding" not in columns:
        return "No embeddings of this run are in the store: its study does not record them (measures = [\"embeddings\"])."
    made = report.scene(columns, shown_rows(n), classes=classes)
    return made or "The embeddings of this run are not numbers."


def _sheet(columns: Mapping[str, Curve], labels: np.ndarray, data: Found) -> dict[str, Any] | str:
    if "nearest" not in columns:
        return "Which samples lie around the centres of this run is not in the store: it was made by an earlier version."
    if isinstance(data, str):
        return data
    if data.image_shape is None:
        return f"The samples of {data.name} are rows of a table, not images."
    nearest, farthest = (columns[name].values[-1].astype(np.int64) for name in ("nearest", "farthest"))
    if any((labels[samples[samples >= 0]] != cluster).any() for cluster, samples in enumerate(nearest)):
        return "The labels of this run were trained further after clustering: the centres no longer say where samples belong."
    return report.sheet(data, labels, nearest, farthest)


def _confusion(labels: np.ndarray, data: Found) -> dict[str, Any] | str:
    if isinstance(data, str):
        return data
    if data.labels is None:
        return f"No true classes of {data.name} are known."
    return report.confusion(data.labels, labels)
