"""What records say for or against a claim: numbers by seed, their interval, and the verdict that follows from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

from scipy import stats

from reclust.studies.store.reader import CELL, StoreReader
from reclust.studies.tables import labels
from reclust.studies.tables.table import signed
from reclust.training.history import Curve

Verdict = Literal["holds", "does not hold", "cannot tell"]
CONFIDENCE = 0.95


class NoRecords(LookupError):
    """What a claim needs has no records; the message says what."""


class Where(NamedTuple):
    """A row and column of the main table, without its variant."""

    dataset: str
    algorithm: str
    pretrained: bool = True

    def __str__(self) -> str:
        return f"{labels.method(self.algorithm, 'none', pretrained=self.pretrained)} on {labels.dataset(self.dataset)}"


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with its confidence interval by Student's t; without limits where there is one seed."""

    mean: float
    low: float
    high: float
    seeds: int

    def shown(self, number: Callable[[float], str]) -> str:
        limits = "" if math.isnan(self.low) else f", 95 % interval {number(self.low)} to {number(self.high)}"
        return f"{number(self.mean)} ({self.seeds} {'seed' if self.seeds == 1 else 'seeds'}{limits})"


def interval(values: Sequence[float]) -> Interval:
    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return Interval(mean, math.nan, math.nan, 1)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) * spread
    return Interval(mean, mean - half, mean + half, count)


def plain(number: float) -> str:
    """Of what is not a difference."""
    return f"{number:.2f}"


def finely(number: float) -> str:
    """Of differences between numbers below 1."""
    return signed(number, 4)


class Expected(Protocol):
    """What a claim says of a number; as text it says so."""

    def verdict(self, seen: Interval) -> Verdict: ...


@dataclass(frozen=True)
class Above:
    """The whole interval above the bound: holds; all of it below: does not hold."""

    bound: float = 0.0

    def verdict(self, seen: Interval) -> Verdict:
        return "holds" if seen.low > self.bound else "does not hold" if seen.high < self.bound else "cannot tell"

    def __str__(self) -> str:
        return f"above {self.bound:g}"


@dataclass(frozen=True)
class Below:
    """The whole interval below the bound: holds; all of it above: does not hold."""

    bound: float = 0.0

    def verdict(self, seen: Interval) -> Verdict:
        return "holds" if seen.high < self.bound else "does not hold" if seen.low > self.bound else "cannot tell"

    def __str__(self) -> str:
        return f"below {self.bound:g}"


@dataclass(frozen=True)
class Within:
    """The whole interval within ± the bound: holds; all of it outside: does not hold."""

    bound: float

    def verdict(self, seen: Interval) -> Verdict:
        if -self.bound < seen.low and seen.high < self.bound:
            return "holds"
        return "does not hold" if seen.low > self.bound or seen.high < -self.bound else "cannot tell"

    def __str__(self) -> str:
        return f"within ±{self.bound:g}"


@dataclass(frozen=True)
class Reaches:
    """A gain whose interval is above 0 and reaches the bound holds; one that stays below the bound does not."""

    bound: float

    def verdict(self, seen: Interval) -> Verdict:
        if seen.high < self.bound:
            return "does not hold"
        return "holds" if seen.low > 0 else "cannot tell"

    def __str__(self) -> str:
        return f"above 0 and reaching {self.bound:g}"


@dataclass(frozen=True)
class Judged:
    """One part of a claim: what was measured, what the claim expects, what the records say, and what follows."""

    what: str
    expected: str
    ours: str
    verdict: Verdict


Numbers = dict[int, float]
"""Seed -> number."""
Quantity = Callable[["Evidence"], Numbers]
Columns = Mapping[str, Curve]
Trace = Mapping[str, Mapping[int, float]]
"""Curve -> epoch -> value, of one run."""


@dataclass(frozen=True)
class Part:
    """A number by seed that a claim says something of. shown: how it is written."""

    what: str
    quantity: Quantity
    expected: Expected
    shown: Callable[[float], str] = signed

    def __call__(self, evidence: Evidence) -> Judged:
        try:
            numbers = list(self.quantity(evidence).values())
            if not numbers:
                raise NoRecords("no seed has all that is compared")
            seen = interval(numbers)
        except NoRecords as missing:
            return Judged(self.what, str(self.expected), f"no records yet: {missing}", "cannot tell")
        return Judged(self.what, str(self.expected), seen.shown(self.shown), self.expected.verdict(seen))


class Evidence:
    """The finished runs of a store by study, cell and seed."""

    def __init__(self, reader: StoreReader) -> None:
        self.reader = reader
        self.studies = frozenset(reader.studies())
        self._finished = lru_cache(maxsize=None)(self._read)

    def _read(self, study: str, measure: str) -> dict[tuple[Where, str], dict[int, Any]]:
        """(where, variant) -> seed -> number."""
        found: dict[tuple[Where, str], dict[int, Any]] = {}
        for dataset, algorithm, pretrained, variant, seed, number in (
                self.reader.finished(study, (*CELL, "seed"), (measure,)) if study in self.studies else ()):
            found.setdefault((Where(dataset, algorithm, bool(pretrained)), variant), {})[seed] = number
        return found

    def of(self, study: str, where: Where, variant: str, measure: str = "acc") -> Numbers:
        """The scores of one cell, in percent."""
        found = self._finished(study, measure).get((where, variant))
        if not found:
            raise NoRecords(f"{study}, {where}, variant {variant!r}")
        return {seed: 100 * number for seed, number in found.items()}

    def histories(self, studies: Sequence[str], where: Where, variant: str, names: Sequence[str]) -> dict[int, Columns]:
        """Seed -> these curves of its clustering, of the study that has them for most seeds, the first of equals."""
        best: dict[int, Columns] = {}
        for study in studies:
            runs = self._finished(study, "run").get((where, variant), {})
            found: dict[int, Columns] = {
                seed: self.reader.history(run, names).get("clustering", {}) for seed, run in runs.items()}
            if len(found) > len(best) and all(name in columns for columns in found.values() for name in names):
                best = found
        if best:
            return best
        raise NoRecords(f"{' or '.join(studies)}, {where}, variant {variant!r}, with the curves {', '.join(names)}")


def paired(one: Numbers, other: Numbers, combine: Callable[[float, float], float] = lambda x, y: x - y) -> Numbers:
    """Of the seeds that both have."""
    return {seed: combine(one[seed], other[seed]) for seed in one if seed in other}


def gain(study: str, where: Where, variant: str, baseline: str = "none", measure: str = "acc") -> Quantity:
    """A variant's score less that of the baseline."""
    return lambda evidence: paired(evidence.of(study, where, variant, measure), evidence.of(study, where, baseline, measure))


def score(study: str, where: Where, variant: str, measure: str = "acc") -> Quantity:
    return lambda evidence: evidence.of(study, where, variant, measure)


def averaged(quantities: Sequence[Quantity]) -> Quantity:
    """Their mean, of the seeds that all have."""

    def made(evidence: Evidence) -> Numbers:
        found = [quantity(evidence) for quantity in quantities]
        seeds = [seed for seed in found[0] if all(seed in own for own in found)]
        return {seed: math.fsum(own[seed] for own in found) / len(found) for seed in seeds}

    return made


def traced(studies: Sequence[str], where: Where, variant: str, names: Sequence[str],
           summary: Callable[[Trace], float]) -> Quantity:
    """A number of each run's curves, of those runs that have one."""

    def found(evidence: Evidence) -> Numbers:
        made = {}
        for seed, columns in evidence.histories(studies, where, variant, names).items():
            trace = {name: _by_epoch(columns[name]) for name in names}
            made[seed] = summary(trace) if all(trace.values()) else math.nan
        made = {seed: number for seed, number in made.items() if not math.isnan(number)}
        if not made:
            raise NoRecords(f"{where}, variant {variant!r}, with numbers in the curves {', '.join(names)}")
        return made

    return found


def mean(values: Iterable[float]) -> float:
    """Not a number where there is nothing to take it of."""
    known = list(values)
    return math.fsum(known) / len(known) if known else math.nan


def _by_epoch(curve: Curve) -> dict[int, float]:
    return {epoch: number for epoch, number in zip(curve.epochs.tolist(), curve.values.tolist(), strict=True)
            if not math.isnan(number)}


def less(one: Quantity, other: Quantity) -> Quantity:
    return lambda evidence: paired(one(evidence), other(evidence))


def ratio(one: Quantity, other: Quantity) -> Quantity:
    return lambda evidence: paired(one(evidence), other(evidence), lambda x, y: x / y)


def all_of(parts: Sequence[Judged]) -> Verdict:
    """One part that does not hold decides; all must hold."""
    found = [part.verdict for part in parts]
    return "does not hold" if "does not hold" in found else "holds" if set(found) == {"holds"} else "cannot tell"


def any_of(parts: Sequence[Judged]) -> Verdict:
    """One part that holds is enough; all must fail."""
    found = [part.verdict for part in parts]
    return "holds" if "holds" in found else "does not hold" if set(found) == {"does not hold"} else "cannot tell"
