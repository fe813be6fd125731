"""The store: one SQLite file that holds what studies planned and what their runs produced."""

from __future__ import annotations

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

from ...training.history import History
from ...utils.exceptions import warn
from ...utils.files import check_writable, write_bytes
from ...utils.values import to_json
from . import schema
from .reader import CELL, StoreReader, readable

if TYPE_CHECKING:
    from ...training.settings import Settings

__all__ = ["Outcome", "PlannedRun", "Store", "export"]


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study: its key, the group it trains in, and where it stands in the study's tables.

    factors: what else tells the study's variants apart, such as keep or lr; numbers and strings by name.
    """

    key: str
    group: str
    dataset: str
    algorithm: str
    variant: str
    pretrained: bool
    seed: int
    factors: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What a group of r runs produced, to be committed whole.

    runs: their keys, r. settings: theirs, r. scores: name -> (r,), among them acc, nmi and ari. history: values (m, r, ...).
    arrays: name -> (r, ...), among them labels and centers. failed: position in the group -> what went wrong.
    """

    group: str
    runs: Sequence[str]
    settings: Sequence[Settings]
    scores: Mapping[str, np.ndarray]
    history: History
    arrays: Mapping[str, np.ndarray]
    seconds: Mapping[str, float]
    provenance: Mapping[str, Any]
    failed: Mapping[int, str] = field(default_factory=dict)


class Store(StoreReader):
    """A store opened to be written, created where it does not exist. One process writes, many may read meanwhile.

    Every method commits all of what it does or none, to the disk: a process killed at any moment leaves a valid store.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        check_writable(self.path)
        if self.path.exists() and not os.access(self.path, os.W_OK):
            raise PermissionError(f"{self.path} is read-only: copy it to where you may write, or use another store.")
        try:
            self._db = self._connect()
            if self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                self._db.execute("PRAGMA journal_mode = WAL")
                schema.create(self._db)
        except sqlite3.OperationalError as error:  # of the place, not of what the file holds
            raise OSError(f"The store {self.path} cannot be opened or made ({error}): choose another place for it.") from error
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path} is no store of studies: {error}.") from error
        schema.check(self._db, self.path)
        self._db.execute("PRAGMA synchronous = FULL")

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path.absolute().as_uri(), uri=True, timeout=60, isolation_level=None)

    def __enter__(self) -> Store:
        return self

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise

    def plan(self, study: str, spec: Any, runs: Iterable[PlannedRun]) -> None:
        """Say which runs a study consists of. Those it no longer names leave its tables; what they produced stays."""
        rows = [(study, position, run.key, run.group, run.dataset, run.algorithm, run.variant, run.pretrained, run.seed,
                 json.dumps(dict(run.factors))) for position, run in enumerate(runs)]
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO studies VALUES (?, ?)", (study, json.dumps(to_json(spec))))
            db.execute("DELETE FROM plan WHERE study = ?", (study,))
            db.executemany("INSERT INTO plan VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def plan_more(self, study: str, spec: Any, runs: Sequence[PlannedRun]) -> None:
        """As `plan`, but what the study already has for other cells and seeds stays in it."""
        columns = "run, group_key, dataset, algorithm, variant, pretrained, seed, factors"
        rows = self._db.execute(f"SELECT {columns} FROM plan WHERE study = ? ORDER BY position", (study,)).fetchall()
        before = [replace(PlannedRun(*row), pretrained=bool(row[-3]), factors=json.loads(row[-1])) for row in rows]
        named = {_cell_and_seed(run) for run in runs}
        self.plan(study, spec, [*(run for run in before if _cell_and_seed(run) not in named), *runs])

    def waiting(self, study: str) -> set[str]:
        """The groups of a study with runs that neither finished nor failed."""
        self._known(study)
        return {group for (group,) in self._db.execute(
            "SELECT DISTINCT p.group_key FROM plan p LEFT JOIN runs r USING (run) WHERE p.study = ? AND r.state IS NULL",
            (study,))}

    def add(self, outcome: Outcome) -> None:
        """Commit what a group produced, in place of anything known of it before."""
        total, now = sum(outcome.seconds.values()) / len(outcome.runs), _now()
        with self._transaction() as db:
            self._forget([outcome.group])
            db.execute("INSERT INTO groups VALUES (?, ?, ?, ?)", (
                outcome.group, len(outcome.runs), json.dumps(dict(outcome.seconds)), self._keep(dict(outcome.provenance))))
            for position, (run, settings) in enumerate(zip(outcome.runs, outcome.settings, strict=True)):
                error = outcome.failed.get(position)
                scores = {} if error else {name: float(values[position]) for name, values in outcome.scores.items()}
                main = [scores.pop(name, None) for name in ("acc", "nmi", "ari")]
                db.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (
                    run, outcome.group, position, "failed" if error else "finished", *main, total, error,
                    self._keep(to_json(settings)), now))
                db.executemany("INSERT INTO measures VALUES (?, ?, ?)", [(run, *item) for item in scores.items()])
            db.executemany("INSERT INTO curves VALUES (?, ?, ?, ?, ?, ?)", [
                (outcome.group, phase, name, *schema.pack_curve(curve.epochs, curve.values))
                for phase, columns in outcome.history.items() for name, curve in columns.items()])
            db.executemany("INSERT INTO arrays VALUES (?, ?, ?, ?, ?)", [
                (outcome.group, name, *schema.pack_array(array)) for name, array in outcome.arrays.items()])

    def fail(self, group: str, runs: Sequence[str], error: str) -> None:
        """Keep the traceback of a group that produced nothing."""
        with self._transaction() as db:
            self._forget([group])
            db.executemany(
                "INSERT INTO runs VALUES (?, ?, ?, 'failed', NULL, NULL, NULL, NULL, ?, NULL, ?)",
                [(run, group, position, error, _now()) for position, run in enumerate(runs)])

    def retry(self, study: str, *, because: str = "") -> int:
        """Let the failed runs of a study wait again, with the others of their groups; how many were failed.

        because: only those in whose traceback this is written.
        """
        self._known(study)
        with self._transaction() as db:
            failed = db.execute(
                "SELECT r.group_key FROM plan p JOIN runs r USING (run) WHERE p.study = ? AND r.state = 'failed' "
                "AND instr(ifnull(r.error, ''), ?)", (study, because)).fetchall()
            self._forget(sorted({group for (group,) in failed}))
        return len(failed)

    def merge(self, other: str | os.PathLike[str]) -> int:
        """Take over what another store has and this one lacks; how many runs came. Finished runs win over failed ones,
        otherwise what is here stays."""
        StoreReader(other).close()  # raises where it is none
        self._db.execute("ATTACH ? AS other", (readable(other),))
        try:
            with self._transaction() as db:
                before = self._finished()
                groups = [group for (group,) in db.execute(
                    "SELECT group_key FROM other.runs GROUP BY group_key HAVING sum(state = 'finished') > "
                    "(SELECT coalesce(sum(state = 'finished'), -1) FROM main.runs r WHERE r.group_key = other.runs.group_key)")]
                self._forget(groups)
                db.execute("CREATE TEMP TABLE coming (group_key TEXT PRIMARY KEY)")
                db.executemany("INSERT INTO coming VALUES (?)", [(group,) for group in groups])
                for table in schema.OF_GROUP:
                    db.execute(f"INSERT INTO main.{table} SELECT * FROM other.{table} WHERE group_key IN coming")
                db.execute("INSERT INTO main.measures SELECT m.* FROM other.measures m JOIN other.runs r USING (run) "
                           "WHERE r.group_key IN coming")
                db.execute("INSERT OR IGNORE INTO main.contents SELECT * FROM other.contents")
                # What both plan stays as it is here, by the name it has here; other cells and seeds of the study come after it.
                same = " AND ".join(f"p.{name} = o.{name}" for name in ("study", *CELL, "seed"))
                db.execute(
                    "INSERT OR IGNORE INTO main.plan SELECT o.study, o.position + "
                    "(SELECT coalesce(max(position) + 1, 0) FROM main.plan p WHERE p.study = o.study), "
                    "o.run, o.group_key, o.dataset, o.algorithm, o.variant, o.pretrained, o.seed, o.factors "
                    f"FROM other.plan o WHERE NOT EXISTS (SELECT 1 FROM main.plan p WHERE {same})")
                db.execute("INSERT OR IGNORE INTO main.studies SELECT * FROM other.studies")
                db.execute("DROP TABLE coming")
                self._warn_of_two_data()
                return self._finished() - before
        finally:
            self._db.execute("DETACH other")

    def close(self) -> None:
        self._db.execute("PRAGMA optimize")
        super().close()

    def _finished(self) -> int:
        return self._db.execute("SELECT count(*) FROM runs WHERE state = 'finished'").fetchone()[0]

    def _warn_of_two_data(self) -> None:
        # No error: another version of an image library may round pixels otherwise.
        for study, dataset in self._db.execute(
                "SELECT p.study, p.dataset FROM main.plan p JOIN main.groups g USING (group_key) "
                "JOIN main.contents c ON c.hash = g.provenance GROUP BY p.study, p.dataset "
                "HAVING count(DISTINCT json_extract(c.content, '$.data.sha256')) > 1 ORDER BY 1, 2").fetchall():
            warn(f"Runs of {study} on {dataset} are of different samples under this name: their tables would mix them. Was a "
                 "file changed between the runs? Where it was, give one of the two another name and run it again.")

    def _forget(self, groups: Sequence[str]) -> None:
        keys = [(group,) for group in groups]
        self._db.executemany("DELETE FROM measures WHERE run IN (SELECT run FROM runs WHERE group_key = ?)", keys)
        for table in schema.OF_GROUP:
            self._db.executemany(f"DELETE FROM {table} WHERE group_key = ?", keys)

    def _keep(self, thing: Any) -> str:
        """Write something once however many rows refer to it; its hash."""
        content = json.dumps(thing, sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:32]
        self._db.execute("INSERT OR IGNORE INTO contents VALUES (?, ?)", (digest, content))
        return digest


def export(store: StoreReader, folder: str | os.PathLike[str], *, kind: Literal["csv", "parquet"] = "csv") -> list[Path]:
    """Write every study as tables; the files written: STUDY.runs.csv with a row a run and its time by part, and
    STUDY.PHASE.csv with a row for each run and epoch, a column for each curve."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for study in store.studies():
        frames = {"runs": store.seconds(study), **{phase: store.curves(study, phase=phase) for phase in store.phases(study)}}
        for name, frame in frames.items():
            path = folder / f"{study}.{name}.{kind}"
            write_bytes(path, frame.to_csv(index=False).encode() if kind == "csv" else frame.to_parquet(index=False))
            written.append(path)
    return written


def _cell_and_seed(run: PlannedRun) -> tuple:
    return run.dataset, run.algorithm, run.variant, run.pretrained, run.seed, json.dumps(dict(run.factors))


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
