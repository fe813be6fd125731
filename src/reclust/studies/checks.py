"""Checks of what a study is made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any

from .store.store import PlannedRun


def items(*, default: Any = dataclasses.MISSING, options: Collection[Any] = ()) -> Any:
    """Field of a value: a tuple, each item one of `options` if there are any."""

    def check(name: str, given: Any) -> tuple[Any, ...]:
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise ValueError(f"{name} must be a list, got {given!r}: put brackets around it.")
        for item in given:
            if options and item not in options:
                known = ", ".join(map(str, options))
                raise ValueError(f"There is no {item!r} among {name}: choose from {known}.")
        return tuple(given)

    return dataclasses.field(default=default, metadata={"check": check})


def check_unique(name: str, given: Sequence[Hashable]) -> None:
    if len(set(given)) < len(given):
        raise ValueError(f"{name} must differ from each other, got {', '.join(map(str, given))}.")


def check_distinct_runs(study: str, runs: Iterable[PlannedRun]) -> None:
    """Refuse variants whose settings make them the same run."""
    known: dict[str, PlannedRun] = {}
    for run in runs:
        if (other := known.setdefault(run.key, run)) is not run:
            raise ValueError(f"Two cells of {study!r} are the same run, since their settings are "
                             f"equal: {_cell(other)} and {_cell(run)}. Remove or change one.")


def _cell(run: PlannedRun) -> str:
    start = "pretrained" if run.pretrained else "from scratch"
    return f"{run.dataset}, {run.algorithm}, {start}, {run.variant!r}, seed {run.seed}"
