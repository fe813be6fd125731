"""What a choice without labels keeps of many replicas, and what it loses to the best of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ...utils.choices import LABEL_FREE_SCORES as SCORES
from ..store.reader import StoreReader
from . import labels
from .table import Cell, Row, Table, number, score

Member = TypeVar("Member")
Key = TypeVar("Key", bound=Hashable)

USUAL = "shared_information"
"""The score by which a fit keeps a replica unless told otherwise."""
SIZES = (1, 2, 5, 10, 20, 50)
"""Of n_init, to be compared."""


@dataclass(frozen=True)
class Repetition:
    """Replicas that trained together, r of them, as one fit with n_init = r would. acc: of each, in percent. scores: by name,
    (r,) each. seconds: of all of them, pretraining included. prepared: how samples were, behind the name of their set, where
    that is not as published."""

    dataset: str
    variant: str
    acc: np.ndarray
    scores: Mapping[str, np.ndarray]
    seconds: float
    prepared: str = ""

    @property
    def samples(self) -> str:
        return labels.dataset(self.dataset) + self.prepared

    def kept(self, name: str) -> float:
        """The accuracy of the replica with the highest score."""
        return float(self.acc[int(np.argmax(self.scores[name]))])


def repetitions(reader: StoreReader, study: str, prepared: str = "") -> list[Repetition]:
    """The groups of a study, in the order of its plan."""
    rows = reader.finished(study, ("dataset", "variant", "group"), ("acc", "seconds", *SCORES))
    made = []
    for (dataset, variant, _), members in _collected(rows, key=lambda row: row[:3]).items():
        acc, seconds, *scores = (np.array(column, float) for column in list(zip(*members, strict=True))[3:])
        made.append(Repetition(dataset, variant, 100 * acc, dict(zip(SCORES, map(_sound, scores), strict=True)),
                               float(seconds.sum()), prepared))
    return made


def _sound(scores: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(scores), -np.inf, scores)


def chosen(reader: StoreReader, study: str) -> list[Table]:
    """One table: ACC of the average replica, of the best one, and of the one that each score keeps."""
    blocks = []
    every = repetitions(reader, study)
    for samples, of_set in _collected(every, key=lambda one: one.samples).items():
        rows = [_row(f"{samples}, {variant}", own) for variant, own in _collected(of_set, key=lambda one: one.variant).items()]
        blocks.append(tuple(rows))
    headings = ("", "repetitions", "mean replica", "best replica", *(labels.measure(name) for name in SCORES), "seconds")
    return [Table(f"{study}: the replica that is kept without labels, ACC", headings, tuple(blocks),
                  "Mean ± standard error over repetitions, each of which trains all replicas anew; a column named after a "
                  "score holds what the replica of the highest score has. Seconds are those of one repetition.")]


def _row(label: str, own: list[Repetition]) -> Row:
    columns = [[one.acc.mean() for one in own], [one.acc.max() for one in own],
               *([one.kept(name) for one in own] for name in SCORES)]
    highest = max(np.mean(column) for column in columns[2:])
    cells = [mean(column, best=i >= 2 and math.isclose(float(np.mean(column)), highest)) for i, column in enumerate(columns)]
    return Row(label, (number(len(own), 0), *cells, number(float(np.mean([one.seconds for one in own])), 0)))


def variants(every: Sequence[Repetition], title: str) -> Table:
    """Kinds of replicas beside each other: what is kept, and its regret, by which it stays below the best replica."""
    blocks = []
    for samples, of_set in _collected(every, key=lambda one: one.samples).items():
        rows = []
        for variant, own in _collected(of_set, key=lambda one: one.variant).items():
            kept, best = ([one.kept(USUAL) for one in own], [one.acc.max() for one in own])
            rows.append(Row(f"{samples}, {variant}", (
                number(len(own), 0), mean(kept), mean([one.acc.mean() for one in own]), mean(best),
                mean(np.subtract(best, kept).tolist()), number(float(np.mean([one.seconds for one in own])), 0))))
        blocks.append(tuple(rows))
    return Table(title, ("", "repetitions", "kept", "average replica", "best replica", "regret", "seconds"), tuple(blocks),
                 f"Mean ± standard error over repetitions of twenty replicas, of which {labels.measure(USUAL)} keeps one; "
                 "regret: the best replica less the kept one. Seconds are those of one repetition.")


@dataclass(frozen=True)
class Pool:
    """Replicas that know nothing of each other, of all repetitions, r of them: acc (r,) in percent and scores (r,)."""

    dataset: str
    acc: np.ndarray
    scores: np.ndarray

    @property
    def sizes(self) -> tuple[int, ...]:
        """Those of n_init that the pool can speak of: half of it at most, so that subsets differ."""
        return tuple(n for n in SIZES if 2 * n <= len(self.acc))

    def kept(self, n: int) -> tuple[float, float]:
        """Mean and standard deviation, over all subsets of n, of the accuracy of the replica with the highest score."""
        return _best_of(self.acc, self.scores, n)

    def regret(self, n: int) -> float:
        """By how much that is below the best of the n, in the mean over all subsets."""
        return _best_of(self.acc, self.acc, n)[0] - self.kept(n)[0]


def _best_of(values: np.ndarray, scores: np.ndarray, n: int) -> tuple[float, float]:
    """Exactly: the one at place i from the top is the best of a subset if the other n - 1 come from below it."""
    total = len(values)
    chances = np.array([math.comb(below, n - 1) / math.comb(total, n) for below in reversed(range(total))])
    ordered = values[np.argsort(-scores, kind="stable")]
    expected = float(chances @ ordered)
    return expected, math.sqrt(max(0.0, float(chances @ (ordered - expected) ** 2)))


def pools(every: Iterable[Repetition], variant: str = "independent") -> list[Pool]:
    found = _collected((one for one in every if one.variant == variant), key=lambda one: one.dataset)
    return [Pool(dataset, np.concatenate([one.acc for one in own]), np.concatenate([one.scores[USUAL] for one in own]))
            for dataset, own in found.items()]


def n_init(found: Sequence[Pool]) -> Table:
    """What one more replica is worth: kept accuracy and regret by the number of replicas."""
    blocks = []
    for pool in found:
        kept = [score(*pool.kept(n), None, extra={}) if n in pool.sizes else Cell() for n in SIZES]
        regrets = [number(pool.regret(n)) if n in pool.sizes else Cell() for n in SIZES]
        name = labels.dataset(pool.dataset)
        blocks.append((Row(f"{name}, kept of {len(pool.acc)} replicas", tuple(kept)), Row(f"{name}, regret", tuple(regrets))))
    return Table("n_init against the kept replica, ACC", ("n_init", *map(str, SIZES)), tuple(blocks),
                 "Over all subsets of so many of the recorded independent replicas, exactly: the mean of what "
                 f"{labels.measure(USUAL)} keeps ± its standard deviation from fit to fit, and its regret, by which it stays "
                 "below the best of the subset in the mean. Subsets are at most half of what is recorded.")


def _collected(members: Iterable[Member], key: Callable[[Member], Key]) -> dict[Key, list[Member]]:
    """In the order in which each key came first, wherever its members stand."""
    found: dict[Key, list[Member]] = {}
    for one in members:
        found.setdefault(key(one), []).append(one)
    return found


def mean(values: Sequence[float], digits: int = 2, *, best: bool = False) -> Cell:
    """± standard error."""
    middle = float(np.mean(values))
    stderr = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    text = f"{middle:.{digits}f}" + ("" if math.isnan(stderr) else f" ± {stderr:.{digits}f}")
    return Cell(text, numbers={"": middle, "stderr": stderr}, best=best)
