"""The reading side of a store: what tables, figures and reports are made from."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...training.history import Curve, History
from ...utils.values import from_json
from . import schema
from .summaries import Failure, Status, clustered_for, spread, times

if TYPE_CHECKING:
    import pandas

    from ...training.settings import Settings

CELL = ("dataset", "algorithm", "pretrained", "variant")
"""What runs of one cell of a table have in common, beside the factors of their study."""
COLUMNS = ("study", "run", "group", *CELL, "seed", "state", "acc", "nmi", "ari", "seconds", "finished_at", "error", "runs")
"""What tables call by these names is never a factor of a study."""
CACHE = 1 << 16
"""KiB of a store that a reader remembers: runs of a plan are all over the file."""
_PLANNED = "p.study, p.run, p.group_key, p.dataset, p.algorithm, p.variant, p.pretrained, p.seed, p.factors"


class StoreReader:
    """A store opened to be read; others may write to it meanwhile. Scores are shares between 0 and 1, times seconds.

    A run is known by its key, a hash of everything that decides its result. Use it in a `with` block, or `close` it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise IsADirectoryError(f"{self.path} is a folder: name the store in it.")
        if not self.path.is_file():
            raise FileNotFoundError(f"There is no store {self.path}: `reclust study run NAME --store {self.path}` makes one.")
        self._db = self._connect()
        schema.check(self._db, self.path)
        self._db.execute(f"PRAGMA cache_size = -{CACHE}")

    @cached_property
    def _settings(self) -> dict[str, Settings]:
        """By the hash of their content, which therefore never changes."""
        return {}

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(readable(self.path), uri=True, timeout=60, isolation_level=None)

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> StoreReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def studies(self) -> list[str]:
        """The studies that runs were planned for."""
        return [name for (name,) in self._db.execute("SELECT name FROM studies ORDER BY name")]

    def spec(self, study: str) -> Any:
        """The study as it was planned, a `Study`."""
        self._known(study)
        return from_json(json.loads(self._one("SELECT spec FROM studies WHERE name = ?", study)))

    def protocol(self, study: str) -> dict[str, Any] | None:
        """The protocol that a study was planned with, as plain JSON, which needs no part of it to be imported."""
        self._known(study)
        spec = json.loads(self._one("SELECT spec FROM studies WHERE name = ?", study))
        return spec.get("fields", {}).get("protocol") if isinstance(spec, dict) else None

    def planned(self, study: str) -> int:
        """Of how many runs a study consists."""
        self._known(study)
        return self._one("SELECT count(*) FROM plan WHERE study = ?", study)

    def status(self, study: str | None = None) -> list[Status]:
        """One entry for each study, or for the named one."""
        self._known(study)
        rows = self._db.execute(
            "SELECT p.study, count(*), total(r.state = 'finished'), total(r.state = 'failed'), "
            "total(r.seconds) FILTER (WHERE r.state = 'finished') "
            "FROM plan p LEFT JOIN runs r USING (run) WHERE ? IN (p.study, '') GROUP BY p.study", (study or "",))
        return [Status(name, int(planned), int(finished), int(failed), seconds)
                for name, planned, finished, failed, seconds in rows]

    def failures(self, study: str | None = None) -> list[Failure]:
        self._known(study)
        rows = self._db.execute(
            "SELECT p.study, p.run, p.dataset, p.algorithm, p.variant, p.pretrained, p.seed, r.error "
            "FROM plan p JOIN runs r USING (run) WHERE r.state = 'failed' AND ? IN (p.study, '') ORDER BY p.study, p.position",
            (study or "",))
        return [Failure(study, run, dataset, algorithm, variant, bool(pretrained), seed, error)
                for study, run, dataset, algorithm, variant, pretrained, seed, error in rows]

    def means(self, study: str, *, by: str | Sequence[str] = CELL,
              measures: str | Sequence[str] = ("acc", "nmi", "ari")) -> list[dict]:
        """Over the finished runs of a study, one dict for each combination of `by`, in the order of the plan.

        by: any of study, dataset, algorithm, pretrained, variant, seed, group, or a factor of the study. measures: acc, nmi,
        ari, seconds, or the name of a further measure. Each dict holds what is in `by`, `runs` (how many), and for each measure
        MEASURE_mean, _std (n - 1), _stderr and _best. Sums are exact, so the order in which runs finished changes nothing.
        """
        by, measures = _several(by), _several(measures)
        width, cells = len(by), {}  # type: int, dict[tuple, list[tuple]]
        for cell, members in groupby(self.finished(study, by, measures), key=lambda row: row[:width]):
            cells.setdefault(cell, []).extend(members)
        made = []
        for cell, rows in cells.items():
            entry = {name: bool(given) if name == "pretrained" else given for name, given in zip(by, cell, strict=True)}
            entry["runs"] = len(rows)
            for name, values in zip(measures, list(zip(*rows, strict=True))[width:], strict=True):
                entry |= {f"{name}_{what}": number for what, number in spread(values).items()}
            made.append(entry)
        return made

    def finished(self, study: str, columns: Sequence[str], measures: Sequence[str],
                 variants: Sequence[str] | None = None) -> list[tuple]:
        """The finished runs of a study, in the order of the plan, as tuples of these columns and measures; see `means`.
        variants: only theirs."""
        self._known(study)
        wanted = ", ".join([*(self._column(study, name) for name in columns), *map(_measure, measures)])
        some = "" if variants is None else f"AND p.variant IN ({', '.join('?' * len(variants))})"
        return self._db.execute(
            f"SELECT {wanted} FROM plan p JOIN runs r USING (run) "
            f"WHERE p.study = ? AND r.state = 'finished' {some} ORDER BY p.position", (study, *(variants or ()))).fetchall()

    def has(self, study: str, variant: str) -> bool:
        """Whether a finished run of a study is of this variant."""
        self._known(study)
        return self._db.execute("SELECT 1 FROM plan p JOIN runs r USING (run) WHERE p.study = ? AND p.variant = ? "
                                "AND r.state = 'finished' LIMIT 1", (study, variant)).fetchone() is not None

    def trained(self, study: str) -> list[tuple]:
        """How long the finished runs of a study were clustered, in the order of the plan: what `CELL` names, the group, how
        many of its runs are of that cell, over how many epochs, and at the start of how many of them an intervention fired."""
        self._known(study)
        cell = ", ".join(f"p.{name}" for name in CELL)
        rows = self._db.execute(
            # A group is committed whole, so that only few runs need to be looked up.
            f"WITH found AS (SELECT {cell}, p.group_key, count(*), min(p.run) AS one, min(p.position) AS place FROM plan p "
            "WHERE p.study = ? AND p.group_key IN (SELECT group_key FROM groups) "
            "AND p.run NOT IN (SELECT run FROM runs WHERE state <> 'finished') GROUP BY p.group_key, p.variant) "
            "SELECT found.*, r.position, c.content, f.epochs, f.shape, f.points FROM found "
            "JOIN runs r ON r.run = found.one JOIN contents c ON c.hash = r.settings LEFT JOIN curves f "
            "ON f.group_key = found.group_key AND f.phase = 'clustering' AND f.name = 'fired' ORDER BY found.place", (study,))
        return [(*named, clustered_for(settings), 0 if points is None else times(fired, shape, points, position))
                for *named, _, _, position, settings, fired, shape, points in rows]

    def shares(self) -> dict[str, dict[str, float]]:
        """Group -> part -> seconds of one of its runs, its share of what the group took."""
        rows = self._db.execute("SELECT group_key, size, seconds FROM groups")
        return {group: {part: spent / size for part, spent in json.loads(seconds).items()} for group, size, seconds in rows}

    def runs(self, study: str | None = None) -> pandas.DataFrame:
        """All planned runs, one row each: study, run, dataset, algorithm, variant, pretrained, seed, one column for each
        factor of the study (keep, lr, …), state (finished, failed, waiting), acc, nmi, ari, seconds, finished_at, error."""
        import pandas

        self._known(study)
        rows = self._db.execute(
            f"SELECT {_PLANNED}, coalesce(r.state, 'waiting'), r.acc, r.nmi, r.ari, r.seconds, r.finished_at, r.error "
            "FROM plan p LEFT JOIN runs r USING (run) WHERE ? IN (p.study, '') ORDER BY p.study, p.position", (study or "",))
        names = ("study", "run", "group", "dataset", "algorithm", "variant", "pretrained", "seed", "factors",
                 "state", "acc", "nmi", "ari", "seconds", "finished_at", "error")
        frame = pandas.DataFrame(rows.fetchall(), columns=list(names))
        frame["pretrained"] = frame["pretrained"].astype(bool)
        given = frame.pop("factors").tolist()
        parsed = {text: json.loads(text) for text in set(given)}
        factors = [parsed[text] for text in given]
        if any(factors):
            extra = pandas.DataFrame(factors, index=frame.index)
            for name in reversed(extra.columns):
                frame.insert(8, name, extra[name])
        return frame

    def seconds(self, study: str) -> pandas.DataFrame:
        """Finished runs with their time by part, one row each: the columns of `runs` and `clustering.training`,
        `clustering.reset`, … A run's share of what its group took, the pretraining it shares with others included."""
        import pandas

        frame, parts = self.runs(study), self.shares()
        frame = frame[frame["state"] == "finished"].reset_index(drop=True)
        known = list(dict.fromkeys(frame["group"]))
        shares = pandas.DataFrame([parts[group] for group in known], index=known)
        return frame.join(shares.loc[frame["group"]].reset_index(drop=True))

    def measures(self, study: str) -> pandas.DataFrame:
        """Further final measures of finished runs, one row each: run, name, value."""
        import pandas

        self._known(study)
        rows = self._db.execute("SELECT m.run, m.name, m.value FROM plan p JOIN measures m USING (run) WHERE p.study = ? "
                                "ORDER BY p.position, m.name", (study,))
        return pandas.DataFrame(rows.fetchall(), columns=["run", "name", "value"])

    def curves(self, study: str, names: str | Sequence[str] | None = None, *, phase: str = "clustering") -> pandas.DataFrame:
        """Curves of all finished runs of a study, one row for each run and epoch: run, epoch, one column for each name.

        names: None takes all that have one number an epoch; `history` has the others too. Epoch -1 is the start of the
        phase. Values are missing at epochs where something was not measured.
        """
        import pandas

        names, parts = None if names is None else _several(names), []
        for group, members in self._groups(study):
            curves = self._curves_of(group, phase, names)
            wanted = {name: curve for name, curve in curves.items() if curve.values.ndim == 2}
            if wanted:
                epochs = np.unique(np.concatenate([curve.epochs for curve in wanted.values()]))
                columns = {name: _at(epochs, curve)[:, list(members)].T.ravel() for name, curve in wanted.items()}
                parts.append(pandas.DataFrame({"run": np.repeat(list(members.values()), len(epochs)),
                                               "epoch": np.tile(epochs, len(members)), **columns}))
        if not parts:
            return pandas.DataFrame(columns=["run", "epoch", *(names or ())])
        whole = pandas.concat(parts, ignore_index=True)
        return whole if names is None else whole.reindex(columns=["run", "epoch", *names])

    def phases(self, study: str) -> list[str]:
        """The phases of which there are curves."""
        self._known(study)
        return [phase for (phase,) in self._db.execute(
            "SELECT DISTINCT phase FROM curves WHERE group_key IN (SELECT group_key FROM plan WHERE study = ?) ORDER BY phase",
            (study,))]

    def history(self, run: str, names: str | Sequence[str] | None = None) -> History:
        """Phase -> name -> `Curve` of one run, values (m, ...). names: only these, which is quicker."""
        names = None if names is None else _several(names)
        group, position = self._place(run)
        phases = [phase for (phase,) in self._db.execute("SELECT DISTINCT phase FROM curves WHERE group_key = ?", (group,))]
        return {phase: {name: Curve(curve.epochs, curve.values[:, position])
                        for name, curve in self._curves_of(group, phase, names).items()} for phase in phases}

    def labels(self, run: str) -> np.ndarray:
        """The final cluster of each sample, (n,), in the order of the data set."""
        return self.array(run, "labels")

    def centers(self, run: str) -> np.ndarray:
        """The final centres, (k, d)."""
        return self.array(run, "centers")

    def array(self, run: str, name: str) -> np.ndarray:
        """Something that was kept of a run: labels, centers, or what its study asked for."""
        group, position = self._place(run)
        row = self._db.execute(
            "SELECT dtype, shape, content FROM arrays WHERE group_key = ? AND name = ?", (group, name)).fetchone()
        if row is None:
            raise KeyError(f"The run {run} has no {name} in {self.path}.")
        return schema.unpack_array(*row)[position]

    def settings(self, run: str) -> Settings:
        """Of one run; those of equal content are one object."""
        content = self._one("SELECT settings FROM runs WHERE run = ?", run)
        if content not in self._settings:
            self._settings[content] = from_json(json.loads(self._one("SELECT content FROM contents WHERE hash = ?", content)))
        return self._settings[content]

    def provenance(self, run: str) -> dict[str, Any]:
        """Versions, commit, device, data, and when: what a number depends on beside its settings and seed."""
        group, _ = self._place(run)
        content = self._one("SELECT provenance FROM groups WHERE group_key = ?", group)
        found = json.loads(self._one("SELECT content FROM contents WHERE hash = ?", content))
        return {**found, "finished_at": self._one("SELECT finished_at FROM runs WHERE run = ?", run)}

    def _groups(self, study: str) -> Iterator[tuple[str, dict[int, str]]]:
        """The groups with finished runs of a study, each with its runs by position."""
        self._known(study)
        rows = self._db.execute(
            "SELECT r.group_key, r.position, p.run FROM plan p JOIN runs r USING (run) "
            "WHERE p.study = ? AND r.state = 'finished' ORDER BY r.group_key, r.position", (study,)).fetchall()
        for group, members in groupby(rows, key=lambda row: row[0]):
            yield group, {position: run for _, position, run in members}

    def _curves_of(self, group: str, phase: str, names: Sequence[str] | None = None) -> dict[str, Curve]:
        some = "" if names is None else f"AND name IN ({', '.join('?' * len(names))})"
        rows = self._db.execute(
            f"SELECT name, epochs, shape, points FROM curves WHERE group_key = ? AND phase = ? {some} ORDER BY name",
            (group, phase, *(names or ())))
        return {name: Curve(*schema.unpack_curve(*content)) for name, *content in rows}

    def _place(self, run: str) -> tuple[str, int]:
        row = self._db.execute("SELECT group_key, position FROM runs WHERE run = ? AND state = 'finished'", (run,)).fetchone()
        if row is None:
            raise KeyError(f"{self.path} has no finished run {run}.")
        return row

    def _one(self, query: str, key: str) -> Any:
        row = self._db.execute(query, (key,)).fetchone()
        if row is None:
            raise KeyError(f"{self.path} has no {key}.")
        return row[0]

    def _known(self, study: str | None) -> None:
        if study is not None and study not in (known := self.studies()):
            raise KeyError(f"{self.path} has no study {study!r}; it has {', '.join(known) or 'none yet'}.")

    def _column(self, study: str, name: str) -> str:
        if name in (plain := ("study", *CELL, "seed")):
            return f"p.{name}"
        if name == "group":
            return "p.group_key"
        rows = self._db.execute("SELECT DISTINCT factors FROM plan WHERE study = ?", (study,))
        if name not in (factors := sorted({factor for (text,) in rows for factor in json.loads(text)})):
            raise KeyError(f"Runs of study {study!r} have no {name!r}; they have {', '.join((*plain, 'group', *factors))}.")
        return f"json_extract(p.factors, {_quoted('$.' + json.dumps(name))})"


def _at(epochs: np.ndarray, curve: Curve) -> np.ndarray:
    """Its values (m, r) at these epochs, its own among them; not a number at the others."""
    values = np.full((len(epochs), *curve.values.shape[1:]), np.nan, dtype=curve.values.dtype)
    values[np.searchsorted(epochs, curve.epochs)] = curve.values
    return values


def readable(path: str | os.PathLike[str]) -> str:
    """The address under which SQLite reads a store, in folders too that cannot be written, where it can note no reader."""
    path = Path(path).absolute()
    frozen = not os.access(path.parent, os.W_OK) and not path.with_name(path.name + "-wal").exists()
    return f"{path.as_uri()}?{'immutable=1' if frozen else 'mode=ro'}"


def _measure(name: str) -> str:
    if name in ("run", "acc", "nmi", "ari", "seconds"):
        return f"r.{name}"
    return f"(SELECT value FROM measures m WHERE m.run = p.run AND m.name = {_quoted(name)})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _several(names: str | Sequence[str]) -> Sequence[str]:
    """A name by itself is a sequence, too, but of its letters."""
    return [names] if isinstance(names, str) else names
