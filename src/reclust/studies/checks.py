"""What fields of studies may hold, and what is said where they hold something else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..utils.values import check_int
from .store.reader import COLUMNS

if TYPE_CHECKING:
    from .store.store import PlannedRun


def several(name: str, given: Any) -> tuple[Any, ...]:
    """A list as a tuple; a text or a single thing is none."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise ValueError(f"{name} must be a list, got {given!r}: put brackets around it.")
    return tuple(given)


def texts(name: str, given: Any) -> tuple[str, ...]:
    return tuple(text(f"each of {name}", one) for one in several(name, given))


def text(name: str, given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise ValueError(f"{name} must be a text, got {given!r}.")
    return given


def wholes(name: str, given: Any, least: int) -> tuple[int, ...]:
    return tuple(check_int(f"each of {name}", one, least) for one in several(name, given))


def truths(name: str, given: Any) -> tuple[bool, ...]:
    made = several(name, given)
    for one in made:
        if not isinstance(one, (bool, np.bool_)):
            raise ValueError(f"each of {name} must be true or false, got {one!r}.")
    return tuple(map(bool, made))


def distinct(name: str, given: Sequence[Any]) -> None:
    if len(set(given)) < len(given):
        raise ValueError(f"The values of {name} must differ, got {', '.join(map(str, given))}: one that is there twice would "
                         "count twice.")


def file_name(what: str, given: Any) -> str:
    """A text that names of files can begin with."""
    if any(one in "/\\" or not one.isprintable() for one in text(what, given)):
        raise ValueError(f"{what} names files of exported tables, got {given!r}: leave out slashes and line breaks.")
    return given


def factors(variant: str, given: Any) -> dict[str, Any]:
    """Names -> numbers, texts or booleans, none of which is in the way of what tables know of every run."""
    if not isinstance(given, Mapping):
        raise ValueError(f"The factors of {variant!r} must be a table such as {{keep = 0.8}}, got {given!r}.")
    for name in given:
        if text(f"Each name among the factors of {variant!r}", name) in COLUMNS:
            raise ValueError(f"{name!r} cannot be a factor of {variant!r}, since tables of runs have a column of that name: "
                             "choose another name.")
    return {name: _factor(f"The factor {name!r} of {variant!r}", one) for name, one in given.items()}


def _factor(what: str, given: Any) -> Any:
    given = given.item() if isinstance(given, np.generic) else given
    if not isinstance(given, (str, bool, int, float)) or isinstance(given, float) and not math.isfinite(given):
        raise ValueError(f"{what} must be a finite number, a text, or true or false, got {given!r}.")
    return given


def apart(study: str, runs: Sequence[PlannedRun]) -> None:
    """Refuse cells that are the same run: a store has a run once in a study."""
    known: dict[str, PlannedRun] = {}
    for run in runs:
        other = known.setdefault(run.key, run)
        if other is not run:
            advice = next(advice for name, advice in _APART.items() if getattr(run, name) != getattr(other, name))
            raise ValueError(f"Two cells of the study {study!r} are the same run: {_cell(other)} and {_cell(run)}. "
                             f"{advice(run)}")


def _cell(run: PlannedRun) -> str:
    start = "pretrained" if run.pretrained else "from scratch"
    return f"{run.dataset}, {run.algorithm}, {start}, {run.variant!r}, seed {run.seed}"


_APART: dict[str, Callable[[PlannedRun], str]] = {
    "algorithm": lambda run: "The variant replaces what tells the algorithms apart: give one of them, such as algorithms = "
                             f'["{run.algorithm}"], or give the variant a study of its own.',
    "pretrained": lambda run: "The variant replaces the pretraining: give one of the two, such as pretrained = [true].",
    "variant": lambda run: "Their settings are equal: leave one of them out, or change it.",
}
"""What tells two cells apart -> what to do where it makes no other run of them."""
