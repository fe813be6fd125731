"""What a choice without labels keeps of many replicas, and what it loses to the best of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from .. import labels
from ..reading import StoreReader
from .table import Cell, Row, Table, number, score

SCORES = ("consistency", "shared_information", "silhouette", "cosine_silhouette", "compactness", "size_entropy")
"""The names of `LABEL_FREE`, whose values come with torch: too much for reading what is in a store."""


@dataclass(frozen=True)
class Repetition:
    """Replicas that trained together, r of them, as one fit with n_init = r would. acc: of each, in percent. scores: by name,
    (r,) each. seconds: of all of them, pretraining included."""

    dataset: str
    variant: str
    acc: np.ndarray
    scores: Mapping[str, np.ndarray]
    seconds: float

    def kept(self, name: str) -> float:
        """The accuracy of the replica with the highest score."""
        return float(self.acc[int(np.argmax(self.scores[name]))])


def repetitions(reader: StoreReader, study: str) -> list[Repetition]:
    """The groups of a study, in the order of its plan."""
    rows = reader.finished(study, ("dataset", "variant", "group"), ("acc", "seconds", *SCORES))
    made = []
    for (dataset, variant, _), members in groupby(rows, key=lambda row: row[:3]):
        acc, seconds, *scores = (np.array(column, float) for column in list(zip(*members, strict=True))[3:])
        made.append(Repetition(dataset, variant, 100 * acc, dict(zip(SCORES, map(_sound, scores), strict=True)),
                               float(seconds.sum())))
    return made


def _sound(scores: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(scores), -np.inf, scores)


def chosen(reader: StoreReader, study: str) -> list[Table]:
    """One table: ACC of the average replica, of the best one, and of the one that each score keeps."""
    blocks = []
    every = repetitions(reader, study)
    for dataset, of_set in groupby(every, key=lambda one: one.dataset):
        rows = [_row(dataset, variant, list(group)) for variant, group in groupby(of_set, key=lambda one: one.variant)]
        blocks.append(tuple(rows))
    headings = ("", "repetitions", "mean replica", "best replica", *(labels.measure(name) for name in SCORES), "seconds")
    return [Table(f"{study}: the replica that is kept without labels, ACC", headings, tuple(blocks),
                  "Mean ± standard error over repetitions, each of which trains all replicas anew; a column named after a "
                  "score holds what the replica of the highest score has. Seconds are those of one repetition.")]


def _row(dataset: str, variant: str, own: list[Repetition]) -> Row:
    columns = [[one.acc.mean() for one in own], [one.acc.max() for one in own],
               *([one.kept(name) for one in own] for name in SCORES)]
    highest = max(np.mean(column) for column in columns[2:])
    cells = [_mean(column, best=i >= 2 and math.isclose(float(np.mean(column)), highest)) for i, column in enumerate(columns)]
    return Row(f"{labels.dataset(dataset)}, {variant}", (
        number(len(own), 0), *cells, number(float(np.mean([one.seconds for one in own])), 0)))


def _mean(values: list[float], *, best: bool) -> Cell:
    stderr = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return score(float(np.mean(values)), stderr, None, extra={"stderr": stderr}, best=best)
