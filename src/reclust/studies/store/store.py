"""The store: one SQLite file with the plans of studies and the outcomes of their runs."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...data.errors import DataError
from ...training.history import History
from ...utils.files import check_writable, no_formula, write_bytes
from ...utils.values import to_json
from . import schema
from .reader import CELL, StoreReader
from .schema import insert

if TYPE_CHECKING:
    from ...training.settings import Settings


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study: its key, the group it trains in, and its cell in tables."""

    key: str
    group: str
    dataset: str
    algorithm: str
    variant: str
    pretrained: bool
    seed: int
    factors: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        start = "pretrained" if self.pretrained else "from scratch"
        return f"{self.dataset}, {self.algorithm}, {start}, {self.variant!r}, seed {self.seed}"

    @property
    def row(self) -> tuple:
        factors = json.dumps(dict(self.factors), default=np.generic.item)
        return (self.key, self.group, self.dataset, self.algorithm, self.variant, self.pretrained,
                self.seed, factors)


@dataclass(frozen=True)
class Outcome:
    """Everything that a group of r runs produced."""

    group: str
    runs: Sequence[str]
    settings: Sequence[Settings]
    scores: Mapping[str, np.ndarray]  # (r,) each, among them acc, nmi and ari
    history: History  # curves with values (m, r, ...)
    arrays: Mapping[str, np.ndarray]  # (r, ...), among them labels and centers
    seconds: Mapping[str, float]
    provenance: Mapping[str, Any]
    failed: Mapping[int, str] = field(default_factory=dict)  # position -> error


@schema.explained
class Store(StoreReader):
    """A store opened for writing by one process; a process killed at any time leaves it valid."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        check_writable(self.path)
        uri = self.path.absolute().as_uri()
        with schema.explain_errors(path):
            self._db = sqlite3.connect(uri, uri=True, timeout=60, isolation_level=None)
            schema.check(self._db, self.path, create=True)
            self._db.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:  # commits, or rolls back what SQLite has not
            yield self._db

    def plan(self, study: str, spec: Any, runs: Iterable[PlannedRun]) -> None:
        """Set the runs of a study. Outcomes of runs that leave it stay in the store."""
        rows = [(study, position, *run.row) for position, run in enumerate(runs)]
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO studies VALUES (?, ?)",
                       (study, json.dumps(to_json(spec))))
            db.execute("DELETE FROM plan WHERE study = ?", (study,))
            insert(db, "plan", rows)

    def plan_more(self, study: str, spec: Any, runs: Sequence[PlannedRun]) -> None:
        """Add runs to a study; other cells and seeds stay as they are."""
        rows = self._db.execute(
            "SELECT run, group_key, dataset, algorithm, variant, pretrained, seed, factors "
            "FROM plan WHERE study = ? ORDER BY position", (study,)).fetchall()
        before = [replace(PlannedRun(*row), pretrained=bool(row[-3]), factors=json.loads(row[-1]))
                  for row in rows]
        new = {run.row[2:] for run in runs}
        self.plan(study, spec, [*(run for run in before if run.row[2:] not in new), *runs])

    def waiting(self, study: str) -> set[str]:
        """Return the groups of a study with runs that neither finished nor failed."""
        self._check_study(study)
        return {group for (group,) in self._db.execute(
            "SELECT DISTINCT p.group_key FROM plan p LEFT JOIN runs r USING (run) "
            "WHERE p.study = ? AND r.state IS NULL", (study,))}

    def add(self, outcome: Outcome) -> None:
        """Store the outcome of a group, in place of what is known of it."""
        group, now = outcome.group, _now()
        seconds = sum(outcome.seconds.values()) / len(outcome.runs)
        with self._transaction() as db:
            self._forget([group])
            insert(db, "groups", [(group, len(outcome.runs), json.dumps(dict(outcome.seconds)),
                                    self._content(dict(outcome.provenance)))])
            for position, run in enumerate(outcome.runs):
                error = outcome.failed.get(position)
                scores = {} if error else {name: float(values[position])
                                           for name, values in outcome.scores.items()}
                main = [scores.pop(name, None) for name in ("acc", "nmi", "ari")]
                settings = self._content(to_json(outcome.settings[position]))
                insert(db, "runs", [(run, group, position, "failed" if error else "finished",
                                      *main, seconds, error, settings, now)])
                insert(db, "measures", [(run, *item) for item in scores.items()])
            insert(db, "curves", [
                (group, phase, name, *schema.pack_curve(curve.epochs, curve.values))
                for phase, curves in outcome.history.items() for name, curve in curves.items()])
            insert(db, "arrays", [(group, name, *schema.pack_array(array))
                                   for name, array in outcome.arrays.items()])

    def fail(self, group: str, runs: Sequence[str], error: str) -> None:
        with self._transaction() as db:
            self._forget([group])
            insert(db, "runs", [(run, group, position, "failed", *[None] * 4, error, None, _now())
                                 for position, run in enumerate(runs)])

    def retry(self, study: str, *, because: str = "") -> int:
        """Let failed runs, with `because` in their errors, wait again; return their number."""
        self._check_study(study)
        with self._transaction() as db:
            failed = db.execute(
                "SELECT r.group_key FROM plan p JOIN runs r USING (run) WHERE p.study = ? "
                "AND r.state = 'failed' AND instr(ifnull(r.error, ''), ?)",
                (study, because)).fetchall()
            self._forget(sorted({group for (group,) in failed}))
        return len(failed)

    def merge(self, other: str | os.PathLike[str]) -> int:
        """Copy what this store lacks, finished runs for failed ones; return how many are new."""
        with StoreReader(other) as reader, schema.explain_errors(other):
            if reader._one("PRAGMA quick_check(1)") != "ok":
                raise sqlite3.DatabaseError("found by PRAGMA quick_check")
        count = "SELECT count(*) FROM main.runs WHERE state = 'finished'"
        self._db.execute("ATTACH ? AS other", (schema.read_only_uri(other),))
        try:
            with self._transaction() as db:
                before = self._one(count)
                groups = db.execute(
                    "SELECT group_key FROM other.runs o GROUP BY group_key HAVING "
                    "sum(state = 'finished') > (SELECT coalesce(sum(state = 'finished'), -1) "
                    "FROM main.runs r WHERE r.group_key = o.group_key)").fetchall()
                self._forget([group for (group,) in groups])
                db.execute("CREATE TEMP TABLE coming (group_key TEXT PRIMARY KEY)")
                db.executemany("INSERT INTO coming VALUES (?)", groups)
                for table in schema.GROUP_TABLES:
                    db.execute(f"INSERT INTO main.{table} SELECT * FROM other.{table} "
                               "WHERE group_key IN coming")
                db.execute("INSERT INTO main.measures SELECT m.* FROM other.measures m "
                           "JOIN other.runs r USING (run) WHERE r.group_key IN coming")
                for table in ("contents", "studies"):
                    db.execute(f"INSERT OR IGNORE INTO main.{table} SELECT * FROM other.{table}")
                same = " AND ".join(f"p.{name} = o.{name}" for name in ("study", *CELL, "seed"))
                db.execute(
                    "INSERT OR IGNORE INTO main.plan SELECT o.study, o.position + (SELECT "
                    "coalesce(max(position) + 1, 0) FROM main.plan p WHERE p.study = o.study), "
                    "o.run, o.group_key, o.dataset, o.algorithm, o.variant, o.pretrained, o.seed, "
                    "o.factors FROM other.plan o "
                    f"WHERE NOT EXISTS (SELECT 1 FROM main.plan p WHERE {same})")
                db.execute("DROP TABLE coming")
                return self._one(count) - before
        except sqlite3.IntegrityError as error:
            raise DataError(f"{other} was not merged into {self.path}: it has a run twice, or in "
                            f"another group ({error}).") from error
        finally:
            self._db.execute("DETACH other")

    def _forget(self, groups: Sequence[str]) -> None:
        keys = [(group,) for group in groups]
        self._db.executemany("DELETE FROM measures WHERE run IN "
                             "(SELECT run FROM runs WHERE group_key = ?)", keys)
        for table in schema.GROUP_TABLES:
            self._db.executemany(f"DELETE FROM {table} WHERE group_key = ?", keys)

    def _content(self, thing: Any) -> str:
        """Store something once, however many rows refer to it, and return its hash."""
        content = json.dumps(thing, sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:32]
        self._db.execute("INSERT OR IGNORE INTO contents VALUES (?, ?)", (digest, content))
        return digest


def export(store: StoreReader, folder: str | os.PathLike[str], *,
           kind: Literal["csv", "parquet"] = "csv") -> list[Path]:
    """Write every study as STUDY.runs.csv with seconds by part, and STUDY.PHASE.csv with curves."""
    folder, written = Path(folder), list[Path]()
    folder.mkdir(parents=True, exist_ok=True)
    for study in store.studies():
        frames = {"runs": store.seconds(study)}
        frames |= {phase: store.curves(study, phase=phase) for phase in store.phases(study)}
        for name, frame in frames.items():
            path = folder / f"{study}.{name}.{kind}"
            taken = [other.resolve() for other in (store.path, *written)]
            if path.parent != folder or path.resolve() in taken:
                raise ValueError(f"{store.path}: {study!r} or {name!r} cannot be that of a file.")
            write = no_formula if kind == "csv" else str  # Parquet needs one type in a column
            frame = frame.assign(**{column: frame[column].map(write, na_action="ignore")
                                    for column in frame if frame[column].dtype.kind == "O"})
            write_bytes(path, frame.to_parquet(index=False) if kind == "parquet" else
                        frame.rename(columns=no_formula).to_csv(
                            index=False, quoting=csv.QUOTE_NONNUMERIC).encode())
            written.append(path)
    return written


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
