"""Reading a store: what tables, figures and reports are made from."""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import Self

from ...data.errors import check_size
from ...training.history import Curve, History
from ...utils.values import from_json
from . import schema
from .schema import marks

if TYPE_CHECKING:
    import pandas

    from ...training.settings import Settings

# Columns that runs of one cell of a table share, besides the factors of their study.
CELL = ("dataset", "algorithm", "pretrained", "variant")


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
    study: str
    run: str
    dataset: str
    algorithm: str
    variant: str
    pretrained: bool
    seed: int
    error: str


@schema.explained
class StoreReader:
    """A store opened for reading, while another process may write to it; runs are known by keys."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"There is no store {path}: `reclust study run` makes one.")
        uri = schema.read_only_uri(self.path)
        with schema.explain_errors(path):
            self._db = sqlite3.connect(uri, uri=True, timeout=60, isolation_level=None)
            schema.check(self._db, self.path)
            self._db.execute("PRAGMA cache_size = -65536")  # KiB: runs of a plan are scattered

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def studies(self) -> list[str]:
        return [name for (name,) in self._db.execute("SELECT name FROM studies ORDER BY name")]

    def spec(self, study: str) -> Any:
        """Return the study as it was planned, a `Study`."""
        return from_json(self.plain_spec(study))

    def plain_spec(self, study: str) -> Any:
        """Return the study as plain JSON, without importing its classes."""
        self._check_study(study)
        return json.loads(self._one("SELECT spec FROM studies WHERE name = ?", study))

    def protocol(self, study: str) -> dict[str, Any] | None:
        spec = self.plain_spec(study)
        return spec.get("fields", {}).get("protocol") if isinstance(spec, dict) else None

    def planned(self, study: str) -> int:
        self._check_study(study)
        return self._one("SELECT count(*) FROM plan WHERE study = ?", study)

    def status(self, study: str | None = None) -> list[Status]:
        """Summarize the progress of one study or all."""
        self._check_study(study)
        rows = self._db.execute(
            "SELECT p.study, count(*), count(*) FILTER (WHERE r.state = 'finished'), "
            "count(*) FILTER (WHERE r.state = 'failed'), "
            "total(r.seconds) FILTER (WHERE r.state = 'finished') "
            "FROM plan p LEFT JOIN runs r USING (run) WHERE ? IN (p.study, '') GROUP BY p.study",
            (study or "",))
        return [Status(*row) for row in rows]

    def failures(self, study: str | None = None) -> list[Failure]:
        """List the failed runs of one study or all."""
        self._check_study(study)
        rows = self._db.execute(
            "SELECT p.study, p.run, p.dataset, p.algorithm, p.variant, p.pretrained, p.seed, "
            "r.error FROM plan p JOIN runs r USING (run) WHERE r.state = 'failed' "
            "AND ? IN (p.study, '') ORDER BY p.study, p.position", (study or "",))
        return [replace(Failure(*row), pretrained=bool(row[5])) for row in rows]

    def means(self, study: str, *, by: str | Sequence[str] = CELL,
              measures: str | Sequence[str] = ("acc", "nmi", "ari")) -> list[dict]:
        """Aggregate the finished runs of a study.

        `by` are any of study, dataset, algorithm, pretrained, variant, seed, group and the factors;
        `measures` are acc, nmi, ari, seconds, or names of further ones. Returns a dict for each
        combination of `by`, in the order of the plan, with the number of `runs` and MEASURE_mean,
        _std (n - 1), _stderr and _best. The order in which runs finished does not matter.
        """
        by, measures = _listed(by), _listed(measures)
        cells = grouped(self.finished(study, by, measures), lambda row: row[: len(by)])
        entries = []
        for cell, rows in cells.items():
            entry = {name: bool(part) if name == "pretrained" else part
                     for name, part in zip(by, cell, strict=True)}
            entry["runs"] = len(rows)
            columns = list(zip(*rows, strict=True))[len(by) :]
            for name, values in zip(measures, columns, strict=True):
                entry |= {f"{name}_{what}": number for what, number in spread(values).items()}
            entries.append(entry)
        return entries

    def finished(self, study: str, columns: Sequence[str], measures: Sequence[str],
                 variants: Sequence[str] | None = None) -> list[tuple]:
        """List columns and measures, see `means`, of the finished runs in the order of the plan."""
        self._check_study(study)
        wanted = [*(self._column(study, name) for name in columns), *map(_measure, measures)]
        some = "" if variants is None else f"AND p.variant IN ({marks(variants)})"
        parameters = [name for _, *names in wanted for name in names]
        return self._db.execute(
            f"SELECT {', '.join(sql for sql, *_ in wanted)} FROM plan p JOIN runs r USING (run) "
            f"WHERE p.study = ? AND r.state = 'finished' {some} ORDER BY p.position",
            (*parameters, study, *(variants or ()))).fetchall()

    def shares(self) -> dict[str, dict[str, float]]:
        """Map groups to the seconds of one of their runs, by part."""
        rows = self._db.execute("SELECT group_key, size, seconds FROM groups")
        return {group: {part: spent / size for part, spent in json.loads(seconds).items()}
                for group, size, seconds in rows}

    def runs(self, study: str | None = None) -> pandas.DataFrame:
        """Return all planned runs, one row each.

        Columns are study, run, group, dataset, algorithm, variant, pretrained, seed, the factors of
        the study, state (finished, failed, waiting), acc, nmi, ari, seconds, finished_at and error.
        """
        import pandas

        self._check_study(study)
        frame = self._frame(
            "SELECT p.study, p.run, p.group_key AS 'group', p.dataset, p.algorithm, p.variant, "
            "p.pretrained, p.seed, p.factors, coalesce(r.state, 'waiting') AS state, r.acc, r.nmi, "
            "r.ari, r.seconds, r.finished_at, r.error FROM plan p LEFT JOIN runs r USING (run) "
            "WHERE ? IN (p.study, '') ORDER BY p.study, p.position", study or "")
        frame["pretrained"] = frame["pretrained"].astype(bool)
        factors = frame.pop("factors")
        parsed = {text: json.loads(text) for text in factors.unique()}
        names = {name for known in parsed.values() for name in known}
        self._check_cells(len(frame) * len(names), times=20)
        extra = pandas.DataFrame([parsed[text] for text in factors], index=frame.index)
        return pandas.concat([frame.iloc[:, :8], extra, frame.iloc[:, 8:]], axis=1,
                             verify_integrity=True)

    def seconds(self, study: str) -> pandas.DataFrame:
        """Return finished runs as `runs` does, with their shares of the group's seconds by part."""
        import pandas

        frame, parts = self.runs(study), self.shares()
        frame = frame[frame["state"] == "finished"].reset_index(drop=True)
        known = list(dict.fromkeys(frame["group"]))
        shares = pandas.DataFrame([parts[group] for group in known], index=known)
        return frame.join(shares.loc[frame["group"]].reset_index(drop=True))

    def measures(self, study: str) -> pandas.DataFrame:
        """Return further measures of finished runs with the columns run, name and value."""
        self._check_study(study)
        return self._frame(
            "SELECT m.run, m.name, m.value FROM plan p JOIN measures m USING (run) "
            "WHERE p.study = ? ORDER BY p.position, m.name", study)

    def curves(self, study: str, names: str | Sequence[str] | None = None, *,
               phase: str = "clustering") -> pandas.DataFrame:
        """Return curves of finished runs: run, epoch (-1 for the start) and one column per name."""
        import pandas

        names, parts, columns, rows = names and _listed(names), [], {"run", "epoch"}, 0
        self._check_study(study)
        found = self._db.execute(
            "SELECT r.group_key, r.position, p.run FROM plan p JOIN runs r USING (run) "
            "WHERE p.study = ? AND r.state = 'finished' ORDER BY r.group_key, r.position",
            (study,)).fetchall()
        for group, some in grouped(found, lambda row: row[0]).items():
            members = {position: run for _, position, run in some}
            curves = self._curves(group, phase, names)
            wanted = {name: curve for name, curve in curves.items() if curve.values.ndim == 2}
            if wanted:
                epochs = np.unique(np.concatenate([curve.epochs for curve in wanted.values()]))
                columns, rows = columns | set(wanted), rows + len(members) * len(epochs)
                self._check_cells(rows * len(columns), times=100)  # of records: up to 11
                values = {name: pandas.DataFrame(curve.values[:, list(members)], curve.epochs)
                          .reindex(epochs).to_numpy().T.ravel() for name, curve in wanted.items()}
                parts.append(pandas.DataFrame({
                    "run": np.repeat(np.array([*members.values()], object), len(epochs)),
                    "epoch": np.tile(epochs, len(members)), **values}))
        if not parts:
            return pandas.DataFrame(columns=["run", "epoch", *(names or ())])
        whole = pandas.concat(parts, ignore_index=True)
        return whole if names is None else whole.reindex(columns=["run", "epoch", *names])

    def phases(self, study: str) -> list[str]:
        self._check_study(study)
        return [phase for (phase,) in self._db.execute(
            "SELECT DISTINCT phase FROM curves WHERE group_key IN "
            "(SELECT group_key FROM plan WHERE study = ?) ORDER BY phase", (study,))]

    def history(self, run: str, names: str | Sequence[str] | None = None) -> History:
        """Return the curves of a run by phase and name, values (m, ...)."""
        (group, position), names = self._place(run), names and _listed(names)
        phases = self._db.execute("SELECT DISTINCT phase FROM curves WHERE group_key = ?", (group,))
        return {phase: {name: Curve(curve.epochs, curve.values[:, position])
                        for name, curve in self._curves(group, phase, names).items()}
                for (phase,) in phases.fetchall()}

    def labels(self, run: str) -> np.ndarray:
        return self.array(run, "labels")

    def array(self, run: str, name: str) -> np.ndarray:
        """Return an array of a run: labels (n,), centers (k, d), or another of its study."""
        group, position = self._place(run)
        dtype, shape, content = self._row("SELECT dtype, shape, content FROM arrays "
                                          "WHERE group_key = ? AND name = ?", group, name)
        return schema.unpack(content, dtype, json.loads(shape))[position]

    def settings(self, run: str) -> Settings:
        return from_json(json.loads(self.plain_settings(run)))

    def plain_settings(self, run: str) -> str:
        """Return the settings of a run as JSON, for readers that do not import their classes."""
        return self._one("SELECT c.content FROM runs r JOIN contents c ON c.hash = r.settings "
                         "WHERE r.run = ?", run)

    def provenance(self, run: str) -> dict[str, Any]:
        """Return versions, commit, device, data and time of a run."""
        content, finished_at = self._row(
            "SELECT c.content, r.finished_at FROM runs r JOIN groups g USING (group_key) "
            "JOIN contents c ON c.hash = g.provenance WHERE run = ? AND state = 'finished'", run)
        return {**json.loads(content), "finished_at": finished_at}

    def check_known(self, what: str, name: str, known: Iterable[str]) -> None:
        if name not in (known := list(known)):
            others = ", ".join(known) or "none yet"
            raise KeyError(f"{self.path} has no {what} {name!r}; it has {others}.")

    def _check_study(self, study: str | None) -> None:
        if study is not None:
            self.check_known("study", study, self.studies())

    def _check_cells(self, cells: int, times: int) -> None:
        size = self._one("PRAGMA page_count") * self._one("PRAGMA page_size")
        check_size(self.path, 8 * cells, size, times)

    def _frame(self, query: str, key: str) -> pandas.DataFrame:
        import pandas

        rows = self._db.execute(query, (key,))
        columns = [name for name, *_ in rows.description]
        return pandas.DataFrame.from_records(rows.fetchall(), columns=columns, coerce_float=True)

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

    def _curves(self, group: str, phase: str, names: Sequence[str] | None) -> dict[str, Curve]:
        some = "" if names is None else f"AND name IN ({marks(names)})"
        rows = self._db.execute(
            "SELECT name, epochs, shape, points FROM curves WHERE group_key = ? AND phase = ? "
            f"{some} ORDER BY name", (group, phase, *(names or ())))
        return {name: Curve(*schema.unpack_curve(*content)) for name, *content in rows}

    def _column(self, study: str, name: str) -> tuple[str, ...]:
        if name in (columns := ("study", *CELL, "seed")):
            return (f"p.{name}",)
        if name == "group":
            return ("p.group_key",)
        rows = self._db.execute("SELECT DISTINCT factors FROM plan WHERE study = ?", (study,))
        factors = sorted({factor for (text,) in rows for factor in json.loads(text)})
        self.check_known("column", name, (*columns, "group", *factors))
        return "(SELECT value FROM json_each(p.factors) WHERE key = ?)", name


def _measure(name: str) -> tuple[str, ...]:
    if name in ("run", "acc", "nmi", "ari", "seconds"):
        return (f"r.{name}",)
    return "(SELECT value FROM measures m WHERE m.run = p.run AND m.name = ?)", name


def _listed(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


def grouped(members: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for member in members:
        groups.setdefault(key(member), []).append(member)
    return groups


def spread(values: Sequence[float | None]) -> dict[str, float]:
    """Compute mean, standard deviation, standard error and maximum of the known values."""
    known = [value for value in values if value is not None]
    if not known:
        return dict.fromkeys(("mean", "std", "stderr", "best"), math.nan)
    std = stdev(known) if len(known) > 1 else math.nan
    return {"mean": fmean(known), "std": std, "stderr": std / math.sqrt(len(known)),
            "best": max(known)}
