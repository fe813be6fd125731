"""Checks of a claim: numbers by seed, their interval, and the verdict that follows from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from reclust.studies.store.reader import CELL, StoreReader
from reclust.studies.tables import labels
from reclust.studies.tables.comparison import mean_interval
from reclust.studies.tables.table import signed
from reclust.training.history import Curve

Verdict = Literal["holds", "does not hold", "open", "not run"]
CONFIDENCE = 0.95


class NoRecords(LookupError):
    """Raised if there are no runs for a check; the message says which."""


class Where(NamedTuple):
    """A cell of the main table, without its variant."""

    dataset: str
    algorithm: str
    pretrained: bool = True

    def __str__(self) -> str:
        method = labels.method(self.algorithm, "none", pretrained=self.pretrained)
        return f"{method} on {labels.dataset(self.dataset)}"


class SeedInterval(NamedTuple):
    """A mean over seeds with Student's interval, NaN for one seed."""

    mean: float
    low: float
    high: float
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> SeedInterval:
        low, high = mean_interval(np.array(values), CONFIDENCE)
        return cls(math.fsum(values) / len(values), low, high, len(values))

    def text(self, form: Callable[[float], str]) -> str:
        limits = "" if math.isnan(self.low) else (
            f", 95 % interval {form(self.low)} to {form(self.high)}")
        return f"{form(self.mean)} ({self.seeds} seed{'s' if self.seeds > 1 else ''}{limits})"


@dataclass(frozen=True)
class Expected:
    """Bounds that a claim sets for a mean.

    It holds if the interval is within them, does not if it is outside, and is open otherwise. With
    `reach`, an interval that stays below that does not hold either.
    """

    text: str
    low: float = -math.inf
    high: float = math.inf
    reach: float = -math.inf

    def verdict(self, seen: SeedInterval) -> Verdict:
        if seen.high < max(self.low, self.reach) or seen.low > self.high:
            return "does not hold"
        return "holds" if self.low < seen.low and seen.high < self.high else "open"


def above(bound: float = 0.0) -> Expected:
    return Expected(f"above {bound:g}", low=bound)


def below(bound: float = 0.0) -> Expected:
    return Expected(f"below {bound:g}", high=bound)


def within(bound: float) -> Expected:
    return Expected(f"within ±{bound:g}", -bound, bound)


def reaching(bound: float) -> Expected:
    return Expected(f"above 0 and reaching {bound:g}", low=0.0, reach=bound)


@dataclass(frozen=True)
class CheckResult:
    what: str
    expected: str
    ours: str
    verdict: Verdict


Numbers = dict[int, float]
"""Seed -> number."""
Quantity = Callable[["RecordedRuns"], Numbers]
Columns = Mapping[str, Curve]
Trace = Mapping[str, Mapping[int, float]]
"""Curve -> epoch -> value, for one run."""


def plain(number: float) -> str:
    return f"{number:.2f}"


def four_digits(number: float) -> str:
    return signed(number, 4)


@dataclass(frozen=True)
class SeedCheck:
    """A number by seed and what a claim expects of it."""

    what: str
    quantity: Quantity
    expected: Expected
    form: Callable[[float], str] = signed

    def __call__(self, runs: RecordedRuns) -> CheckResult:
        try:
            numbers = list(self.quantity(runs).values())
        except NoRecords as missing:
            return CheckResult(self.what, self.expected.text, f"not run: {missing}", "not run")
        if not numbers:
            return CheckResult(self.what, self.expected.text, "no seeds in common", "not run")
        seen = SeedInterval.of(numbers)
        return CheckResult(self.what, self.expected.text, seen.text(self.form),
                           self.expected.verdict(seen))


class RecordedRuns:
    """Finished runs of the records by study, cell and seed."""

    def __init__(self, reader: StoreReader) -> None:
        self.reader = reader
        self.studies = frozenset(reader.studies())
        self._finished = lru_cache(maxsize=None)(self._read)

    def _read(self, study: str, measure: str) -> dict[tuple[Where, str], dict[int, Any]]:
        found: dict[tuple[Where, str], dict[int, Any]] = {}
        if study in self.studies:
            for dataset, algorithm, pretrained, variant, seed, number in self.reader.finished(
                    study, (*CELL, "seed"), (measure,)):
                where = Where(dataset, algorithm, bool(pretrained))
                found.setdefault((where, variant), {})[seed] = number
        return found

    def scores(self, study: str, where: Where, variant: str, measure: str = "acc") -> Numbers:
        """Return the scores of one cell, in percent."""
        found = self._finished(study, measure).get((where, variant))
        if not found:
            raise NoRecords(f"{study}, {where}, {variant}")
        return {seed: 100 * number for seed, number in found.items()}

    def histories(self, studies: Sequence[str], where: Where, variant: str,
                  names: Sequence[str]) -> dict[int, Columns]:
        """Return curves by seed from the study that has them for most seeds."""
        best: dict[int, Columns] = {}
        for study in studies:
            runs = self._finished(study, "run").get((where, variant), {})
            found: dict[int, Columns] = {
                seed: self.reader.history(run, names).get("clustering", {})
                for seed, run in runs.items()}
            complete = all(name in columns for columns in found.values() for name in names)
            if len(found) > len(best) and complete:
                best = found
        if not best:
            raise NoRecords(f"{' or '.join(studies)}, {where}, {variant}, {', '.join(names)}")
        return best


def paired(one: Numbers, other: Numbers,
           combine: Callable[[float, float], float] = lambda x, y: x - y) -> Numbers:
    """Combine the numbers of seeds that both have."""
    return {seed: combine(one[seed], other[seed]) for seed in one if seed in other}


def score(study: str, where: Where, variant: str, measure: str = "acc") -> Quantity:
    return lambda runs: runs.scores(study, where, variant, measure)


def difference(one: Quantity, other: Quantity) -> Quantity:
    return lambda runs: paired(one(runs), other(runs))


def ratio(one: Quantity, other: Quantity) -> Quantity:
    return lambda runs: paired(one(runs), other(runs), lambda x, y: x / y)


def gain(study: str, where: Where, variant: str, baseline: str = "none",
         measure: str = "acc") -> Quantity:
    """Score of a variant minus that of the baseline."""
    return difference(score(study, where, variant, measure), score(study, where, baseline, measure))


def averaged(quantities: Sequence[Quantity]) -> Quantity:
    """Mean over quantities, for the seeds that all have."""

    def made(runs: RecordedRuns) -> Numbers:
        found = [quantity(runs) for quantity in quantities]
        seeds = [seed for seed in found[0] if all(seed in own for own in found)]
        return {seed: math.fsum(own[seed] for own in found) / len(found) for seed in seeds}

    return made


def traced(studies: Sequence[str], where: Where, variant: str, names: Sequence[str],
           summary: Callable[[Trace], float]) -> Quantity:
    """Summarize the curves of each run, without runs that have no numbers."""

    def found(runs: RecordedRuns) -> Numbers:
        made = {}
        for seed, columns in runs.histories(studies, where, variant, names).items():
            trace = {name: _by_epoch(columns[name]) for name in names}
            made[seed] = summary(trace) if all(trace.values()) else math.nan
        made = {seed: number for seed, number in made.items() if not math.isnan(number)}
        if not made:
            raise NoRecords(f"{where}, {variant}, numbers in {', '.join(names)}")
        return made

    return found


def mean(values: Iterable[float]) -> float:
    """Return the mean, NaN if there are no values."""
    known = list(values)
    return math.fsum(known) / len(known) if known else math.nan


def _by_epoch(curve: Curve) -> dict[int, float]:
    pairs = zip(curve.epochs.tolist(), curve.values.tolist(), strict=True)
    return {epoch: number for epoch, number in pairs if not math.isnan(number)}


def all_of(results: Sequence[CheckResult]) -> Verdict:
    """All checks must hold, and one that does not decides."""
    found = {result.verdict for result in results}
    if "does not hold" in found:
        return "does not hold"
    return found.pop() if len(found) == 1 else "open"


def any_of(results: Sequence[CheckResult]) -> Verdict:
    """One check that holds is enough."""
    found = {result.verdict for result in results}
    if "holds" in found:
        return "holds"
    return found.pop() if len(found) == 1 else "open"
