"""Selection without labels: which replica a score keeps, and what that loses to the best one."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...utils.choices import LABEL_FREE_SCORES as SCORES
from ..store.reader import StoreReader, grouped, spread
from . import labels
from .table import Cell, Row, Table, number, plus_minus

DEFAULT_SCORE = "shared_information"  # by which a fit selects a replica
SIZES = (1, 2, 5, 10, 20, 50)  # values of n_init


@dataclass(frozen=True)
class Repetition:
    """Replicas of one fit with n_init = r: acc (r,) in percent, scores (r,), seconds in total."""

    dataset: str
    variant: str
    acc: np.ndarray
    scores: Mapping[str, np.ndarray]
    seconds: float
    prepared: str = ""  # appended to the name of a data set that was not prepared as published

    @property
    def samples(self) -> str:
        return labels.dataset(self.dataset) + self.prepared

    def kept(self, name: str = DEFAULT_SCORE) -> float:
        return float(self.acc[int(np.argmax(self.scores[name]))])


def repetitions(reader: StoreReader, study: str, prepared: str = "") -> list[Repetition]:
    rows = reader.finished(study, ("dataset", "variant", "group"), ("acc", "seconds", *SCORES))
    result = []
    for (dataset, variant, _), members in grouped(rows, lambda row: row[:3]).items():
        acc, seconds, *scores = np.array([row[3:] for row in members], float).T
        known = [np.where(np.isnan(values), -np.inf, values) for values in scores]
        result.append(Repetition(dataset, variant, 100 * acc, dict(zip(SCORES, known, strict=True)),
                                 float(seconds.sum()), prepared))
    return result


def selection_tables(reader: StoreReader, study: str) -> list[Table]:
    """Tabulate the accuracy of the mean replica, of the best, and of the one each score keeps."""
    return [Table(
        f"{study}: the replica selected without labels, ACC",
        ("", "repetitions", "mean replica", "best replica", *map(labels.measure, SCORES),
         "seconds"),
        blocks(repetitions(reader, study), _selection_row),
        "Mean ± standard error over repetitions, each of which trains all replicas again. A column "
        "named after a score shows the replica it rates highest. Seconds: of one repetition.")]


def _selection_row(members: list[Repetition]) -> list[Cell]:
    columns = [[fit.acc.mean() for fit in members], [fit.acc.max() for fit in members],
               *([fit.kept(name) for fit in members] for name in SCORES)]
    highest = max(np.mean(column) for column in columns[2:])
    return [mean(column, best=i >= 2 and math.isclose(float(np.mean(column)), highest))
            for i, column in enumerate(columns)]


def blocks(every: Sequence[Repetition],
           cells: Callable[[list[Repetition]], list[Cell]]) -> tuple[tuple[Row, ...], ...]:
    return tuple(
        tuple(Row(f"{samples}, {variant}", (
            number(len(fits), 0), *cells(fits),
            number(float(np.mean([fit.seconds for fit in fits])), 0)))
            for variant, fits in grouped(members, lambda fit: fit.variant).items())
        for samples, members in grouped(every, lambda fit: fit.samples).items())


@dataclass(frozen=True)
class Pool:
    """Independent replicas of all repetitions: acc (r,) in percent and scores (r,)."""

    dataset: str
    acc: np.ndarray
    scores: np.ndarray

    @property
    def sizes(self) -> tuple[int, ...]:
        """Values of n_init up to half the pool, so that subsets differ."""
        return tuple(n for n in SIZES if 2 * n <= len(self.acc))

    def kept(self, n: int) -> tuple[float, float]:
        """Mean and deviation, over all subsets of n, of the accuracy of the selected replica."""
        return _best_of(self.acc, self.scores, n)

    def regret(self, n: int) -> float:
        return _best_of(self.acc, self.acc, n)[0] - self.kept(n)[0]


def _best_of(values: np.ndarray, scores: np.ndarray, n: int) -> tuple[float, float]:
    """Exact: rank i is the best of a subset if the other n - 1 members rank below it."""
    p = np.array([math.comb(below, n - 1) for below in reversed(range(len(values)))])
    p = p / math.comb(len(values), n)
    ordered = values[np.argsort(-scores, kind="stable")]
    expected = float(p @ ordered)
    return expected, math.sqrt(max(0.0, float(p @ (ordered - expected) ** 2)))


def pools(every: Iterable[Repetition], variant: str = "independent") -> list[Pool]:
    by_dataset = grouped((fit for fit in every if fit.variant == variant), lambda fit: fit.dataset)
    return [Pool(dataset, np.concatenate([fit.acc for fit in fits]),
                 np.concatenate([fit.scores[DEFAULT_SCORE] for fit in fits]))
            for dataset, fits in by_dataset.items()]


def mean(values: Sequence[float], digits: int = 2, *, best: bool = False) -> Cell:
    middle, _, stderr, _ = spread(values).values()
    return Cell(plus_minus(middle, stderr, digits), "", {"": middle, "stderr": stderr}, best)
