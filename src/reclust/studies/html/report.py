"""The HTML report of a store: everything in it as plain data, then one page."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from ... import report as page
from ...training.history import AFTER_RESET, Curve
from ...utils.files import check_writable
from ...utils.progress import ProgressOption, progress_bar
from ...utils.values import value
from ...version import __version__
from ..store.reader import CELL, StoreReader
from ..store.summaries import Status, over_one_epoch
from ..study import Study
from .gallery import gallery, sources
from .run_details import Found, Insides, samples_in

Plain = dict[str, Any]
LABEL_CHANGE = "label_change"
TRAINED = "train_acc"
"""The accuracy on the samples trained on, where runs are scored on others."""
MEASURES = ("acc", "nmi", "ari", "seconds")
_KNOWN = ("study", "run", "group", *CELL, "seed", "state", "finished_at", "error", *MEASURES)


@value
class Limits:
    """How much a report holds: points of one curve, numbers in all curves of a study, and of how many runs it shows the
    embeddings, the samples around centres, and the classes against clusters."""

    points: int = 100
    numbers: int = 300_000
    scenes: int = 24
    sheets: int = 24
    confusions: int = 200


def report(store: StoreReader, path: str | os.PathLike[str], *, data: str | os.PathLike[str] | None = None,
           title: str | None = None, limits: Limits = Limits(), figures: bool = True, progress: ProgressOption = None) -> None:
    """Write the report of a store as one HTML file that opens offline.

    data: folder of the data sets, None for the usual one. Images and true classes of sets that are not there are left out, and
    the report says so. figures: draw those of the paper that the store has records for, which takes up to a few seconds each.
    progress: None shows a bar where somebody is watching a terminal; a function is told the share that is done.
    """
    check_writable(path)
    title = title or f"Studies in {store.path.name}"
    drawable = sources(store) if figures else {}
    with progress_bar(len(store.studies()) + len(drawable), progress, desc="report", delay=1.0, leave=False) as parts:
        content = report_data(store, title=title, samples=samples_in(data), limits=limits, done=parts.update)
        content["figures"] = gallery(store, drawable, parts.update)
    page.write(path, title, content)


def report_data(store: StoreReader, *, title: str, samples: Callable[[str], Found], limits: Limits = Limits(),
                done: Callable[[], object] = lambda: None) -> Plain:
    """All that the page shows beside figures, as dicts, lists, strings, numbers and arrays. What several places refer to, by
    its position, stands in lists of its own: runs, settings, provenance, errors, series (curves of a cell) and grids (epochs
    of curves). done: called after each study."""
    pools = {name: _Pool() for name in ("runs", "settings", "provenance", "errors", "series", "grids")}
    insides = Insides(store, samples, {"scene": limits.scenes, "sheet": limits.sheets, "confusion": limits.confusions})
    studies = []
    for name in store.studies():
        studies.append(_study(store, name, pools, limits))
        done()
    trained: dict[str, list[float]] = {}
    for name in store.studies():
        further = store.measures(name)
        for key, accuracy in further.loc[further["name"] == TRAINED, ["run", "value"]].itertuples(index=False):
            trained.setdefault(key, []).append(accuracy)
    for cell in _in_turn(studies):
        run = pools["runs"].things[cell["shown"]]
        insides.add(run["run"], cell["key"]["dataset"], [run["acc"], *trained.get(run["run"], ())])
    metrics = {name: None for series in pools["series"].things for name in series["curves"]}
    return {
        "title": title, "studies": studies, "run_details": insides.runs, "metrics": list(metrics),
        "about": [("Store", store.path.name), ("Written", datetime.now(timezone.utc).isoformat(timespec="seconds")),
                  ("reclust", __version__)],
        **{name: pool.things for name, pool in pools.items()},
    }


class _Pool:
    """Things by position, each once."""

    def __init__(self) -> None:
        self.things: list[Any] = []
        self._places: dict[Hashable, int] = {}

    def place(self, key: Hashable, make: Callable[[], Any]) -> int:
        if key not in self._places:
            self.things.append(make())
            self._places[key] = len(self.things) - 1
        return self._places[key]


@dataclass(frozen=True)
class _History:
    """Curves of one phase with the runs that they belong to: run -> place among the replicas."""

    places: Mapping[str, int]
    columns: Mapping[str, Curve]

    @property
    def shown(self) -> list[str]:
        """The columns that are drawn as lines."""
        return [name for name in self.columns if name != "fired" and not name.endswith(AFTER_RESET)]

    def of(self, runs: Sequence[str]) -> dict[str, Curve]:
        """Those of some runs, nothing where none of them went through this phase."""
        places = [self.places[run] for run in runs if run in self.places]
        return {name: Curve(one.epochs, one.values[:, places]) for name, one in self.columns.items()} if places else {}


def _study(store: StoreReader, name: str, pools: Mapping[str, _Pool], limits: Limits) -> Plain:
    frame = store.runs(name)
    factors = [column for column in frame.columns if column not in _KNOWN]
    means = {tuple(entry[key] for key in CELL): entry for entry in store.means(name, measures=MEASURES)}
    histories = _histories(store, name)
    lines = 2 * len(means) * sum(len(history.shown) for history in histories.values())
    points = int(np.clip(limits.numbers // max(1, lines), 12, limits.points))
    planned: dict[tuple, list[Plain]] = {}
    for row in frame.to_dict("records"):
        planned.setdefault(tuple(row[key] for key in CELL), []).append(row)
    cells = []
    for key, rows in planned.items():
        runs = [_run(store, row, pools) for row in rows]
        finished = [run for run in runs if pools["runs"].things[run]["state"] == "finished"]
        keys = tuple(row["run"] for row in rows if row["state"] == "finished")
        first = rows[0]
        cells.append({
            "key": {name: first[name] for name in (*CELL, *factors) if first[name] == first[name]},
            "means": {measure: [means.get(key, {}).get(f"{measure}_{what}") for what in ("mean", "std", "best")]
                      for measure in MEASURES},
            "runs": runs, "shown": finished[0] if finished else None,
            "series": pools["series"].place(keys, partial(_series, keys, histories, points, pools["grids"])) if keys else None,
        })
    return {"name": name, "about": _about(store, name), "keys": [*CELL, *factors], "cells": cells,
            "status": _status(store, name)}


def _about(store: StoreReader, name: str) -> str:
    spec = json.loads(store._one("SELECT spec FROM studies WHERE name = ?", name))  # also where a part of it is unknown
    return spec["fields"].get("about", "") if isinstance(spec, dict) and spec.get("kind") == Study.__name__ else ""


def _status(store: StoreReader, name: str) -> Plain:
    found = store.status(name)  # nothing where no run is planned
    status = found[0] if found else Status(name, planned=0, finished=0, failed=0, seconds=0.0)
    return {"planned": status.planned, "finished": status.finished, "failed": status.failed, "waiting": status.waiting,
            "seconds": status.seconds}


def _run(store: StoreReader, row: Mapping[str, Any], pools: Mapping[str, _Pool]) -> int:
    """A run's place, with the places of its settings, which runs of one variant in a group share, and of its provenance."""
    def settings() -> int:
        lines = page.records(_settings(store, row["run"]))
        return pools["settings"].place(tuple(lines), lambda: lines)

    def provenance() -> int:
        lines = page.records({name: part for name, part in store.provenance(row["run"]).items() if name != "finished_at"})
        return pools["provenance"].place(tuple(lines), lambda: lines)

    def make() -> Plain:
        entry = {name: row[name] for name in ("run", "seed", "state", *MEASURES, "finished_at")}
        if row["state"] == "finished":
            entry |= {"settings": settings(), "provenance": provenance()}
        if isinstance(row["error"], str):
            entry["error"] = pools["errors"].place(row["error"], lambda: row["error"])
        return entry

    return pools["runs"].place(row["run"], make)


def _settings(store: StoreReader, run: str) -> Any:
    """As they are, or as they were written where a part of somebody's own was not imported."""
    try:
        return store.settings(run)
    except (ValueError, TypeError):  # unknown, or known with other fields
        written = store._one("SELECT content FROM contents WHERE hash = (SELECT settings FROM runs WHERE run = ?)", run)
        return _as_written(json.loads(written)["fields"])


def _as_written(stored: Any) -> Any:
    """The JSON of a value as mappings, its kind among the fields."""
    if isinstance(stored, dict):
        kind = {"kind": stored["kind"]} if "kind" in stored else {}
        fields: Plain = stored.get("fields" if kind else "mapping", stored)
        return {**kind, **{name: _as_written(part) for name, part in fields.items()}}
    if isinstance(stored, list) and any(isinstance(part, dict) for part in stored):
        return {place: _as_written(part) for place, part in enumerate(stored, 1)}
    return stored


def _histories(store: StoreReader, study: str) -> dict[str, _History]:
    """Phase -> its curves of all finished runs side by side; what a run did not measure is not a number."""
    made = {}
    for phase in store.phases(study):
        frame = store.curves(study, phase=phase)
        if not frame.empty:
            table = frame.pivot(index="epoch", columns="run")
            names = [name for name in frame.columns if name not in ("run", "epoch")]
            columns = {name: Curve(table.index.to_numpy(), table[name].to_numpy(np.float64)) for name in names}
            made[phase] = _History({run: place for place, run in enumerate(table[names[0]].columns)}, columns)
    return made


def _series(runs: Sequence[str], histories: Mapping[str, _History], points: int, grids: _Pool) -> Plain:
    """The curves of a cell, by phase.column, and after how many epochs something was reset."""
    made: Plain = {"curves": {}, "resets": []}
    for phase, history in histories.items():
        columns = history.of(runs)
        if LABEL_CHANGE in columns:
            changes = columns[LABEL_CHANGE]
            kept = over_one_epoch(changes.epochs, changes.epochs[np.isfinite(changes.values).any(axis=1)])
            columns[LABEL_CHANGE] = Curve(changes.epochs[kept], changes.values[kept])
        for name in history.shown if columns else ():
            line = page.curve(columns, name, limit=points)
            if line is not None:
                grid = tuple(line.pop("x").tolist())
                made["curves"][f"{phase}.{name}"] = {"grid": grids.place(grid, partial(tuple, grid)), **line}
        if "fired" in columns:
            fired = columns["fired"]
            made["resets"] = fired.epochs[np.nan_to_num(fired.values).any(axis=1)]
    return made


def _in_turn(studies: Sequence[Plain]) -> list[Plain]:
    """Cells with finished runs, the first of each study and data set before the second of any: what is limited is shared."""
    queues: dict[tuple[str, str], list[Plain]] = {}
    for study in studies:
        for cell in study["cells"]:
            if cell["shown"] is not None:
                queues.setdefault((study["name"], cell["key"]["dataset"]), []).append(cell)
    return [cell for turn in zip_longest(*queues.values()) for cell in turn if cell is not None]
