"""Connection to a store, the queries that its reader is made of, and summaries of runs."""

import json
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import Self

from ...training.history import Curve
from . import schema

# Columns that runs of one cell of a table share, besides the factors of their study.
CELL = ("dataset", "algorithm", "pretrained", "variant")
CACHE_KIB = 1 << 16


@dataclass(frozen=True)
class Status:
    """Progress of a study, and the seconds that its finished runs took."""

    study: str
    planned: int
    finished: int
    failed: int
    seconds: float

    @property
    def waiting(self) -> int:
        return self.planned - self.finished - self.failed


@dataclass(frozen=True)
class Failure:
    """A failed run and its error."""

    study: str
    run: str
    dataset: str
    algorithm: str
    variant: str
    pretrained: bool
    seed: int
    error: str


class StoreConnection:
    """A store opened for reading."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"There is no store {self.path}: `reclust study run NAME "
                                    f"--store {self.path}` makes one.")
        self._db = sqlite3.connect(read_only_uri(self.path), uri=True, timeout=60,
                                   isolation_level=None)
        schema.check(self._db, self.path)
        self._db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")  # runs of a plan are scattered

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def studies(self) -> list[str]:
        """List the planned studies."""
        return [name for (name,) in self._db.execute("SELECT name FROM studies ORDER BY name")]

    def check_known(self, what: str, name: str, known: Iterable[str]) -> None:
        if name not in (known := list(known)):
            raise KeyError(f"{self.path} has no {what} {name!r}; it has "
                           f"{', '.join(known) or 'none yet'}.")

    def _check_study(self, study: str | None) -> None:
        if study is not None:
            self.check_known("study", study, self.studies())

    def _row(self, query: str, *keys: str) -> Any:
        row = self._db.execute(query, keys).fetchone()
        if row is None:
            raise KeyError(f"{self.path} has no {' of '.join(reversed(keys))}.")
        return row

    def _one(self, query: str, *keys: str) -> Any:
        return self._row(query, *keys)[0]

    def _place(self, run: str) -> tuple[str, int]:
        return self._row(
            "SELECT group_key, position FROM runs WHERE run = ? AND state = 'finished'", run)

    def _groups(self, study: str) -> Iterator[tuple[str, dict[int, str]]]:
        """Yield groups with finished runs of a study, and these runs by position."""
        self._check_study(study)
        rows = self._db.execute(
            "SELECT r.group_key, r.position, p.run FROM plan p JOIN runs r USING (run) "
            "WHERE p.study = ? AND r.state = 'finished' ORDER BY r.group_key, r.position",
            (study,)).fetchall()
        for group, members in groupby(rows, key=lambda row: row[0]):
            yield group, {position: run for _, position, run in members}

    def _curves(self, group: str, phase: str, names: Sequence[str] | None) -> dict[str, Curve]:
        some = "" if names is None else f"AND name IN ({marks(names)})"
        rows = self._db.execute(
            "SELECT name, epochs, shape, points FROM curves WHERE group_key = ? AND phase = ? "
            f"{some} ORDER BY name", (group, phase, *(names or ())))
        return {name: Curve(*schema.unpack_curve(*content)) for name, *content in rows}

    def _column(self, study: str, name: str) -> str:
        if name in (columns := ("study", *CELL, "seed")):
            return f"p.{name}"
        if name == "group":
            return "p.group_key"
        rows = self._db.execute("SELECT DISTINCT factors FROM plan WHERE study = ?", (study,))
        factors = sorted({factor for (text,) in rows for factor in json.loads(text)})
        self.check_known("column", name, (*columns, "group", *factors))
        return f"json_extract(p.factors, {quoted('$.' + json.dumps(name))})"


def read_only_uri(path: str | os.PathLike[str]) -> str:
    """Return the address for SQLite, which cannot lock files in a read-only folder."""
    path = Path(path).absolute()
    log = path.with_name(path.name + "-wal")
    frozen = not os.access(path.parent, os.W_OK) and not log.exists()
    return f"{path.as_uri()}?{'immutable=1' if frozen else 'mode=ro'}"


def measure_sql(name: str) -> str:
    if name in ("run", "acc", "nmi", "ari", "seconds"):
        return f"r.{name}"
    return f"(SELECT value FROM measures m WHERE m.run = p.run AND m.name = {quoted(name)})"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def as_list(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


def spread(values: Sequence[float | None]) -> dict[str, float]:
    """Compute mean, standard deviation, standard error and maximum of the known values."""
    known = [value for value in values if value is not None]
    if not known:
        return dict.fromkeys(("mean", "std", "stderr", "best"), math.nan)
    mean = math.fsum(known) / len(known)
    squares = np.square(np.subtract(known, mean)).tolist()
    std = math.sqrt(math.fsum(squares) / (len(known) - 1)) if len(known) > 1 else math.nan
    return {"mean": mean, "std": std, "stderr": std / math.sqrt(len(known)), "best": max(known)}


def over_one_epoch(epochs: np.ndarray, looked: np.ndarray) -> np.ndarray:
    """Select the epochs whose change of labels, since the last evaluation, is over one epoch.

    If the first epoch was evaluated, all were, even if a compact store has dropped some.
    """
    if len(looked) and looked[0] > 0:
        return np.isin(epochs - 1, looked)
    return np.ones(len(epochs), dtype=bool)
