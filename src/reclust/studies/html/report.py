"""The HTML report of a store: its content as plain data, then one page."""

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
from ..figures import FIGURES
from ..figures.runs import over_one_epoch
from ..store.reader import CELL, Status, StoreReader
from ..study import Study
from .gallery import gallery
from .run_details import Found, RunDetails, samples_in

Plain = dict[str, Any]
LABEL_CHANGE = "label_change"
TRAIN_ACCURACY = "train_acc"
"""Accuracy on the training samples, for runs that are scored on other samples."""
MEASURES = ("acc", "nmi", "ari", "seconds")
_KNOWN = ("study", "run", "group", *CELL, "seed", "state", "finished_at", "error", *MEASURES)


@value
class Limits:
    """Limits on the size of a report."""

    points: int = 100  # of a curve
    numbers: int = 300_000  # in all curves of a study
    scenes: int = 24  # runs with embeddings
    sheets: int = 24  # runs with samples around centres
    confusions: int = 200  # runs with a confusion matrix


def report(store: StoreReader, path: str | os.PathLike[str], *,
           data: str | os.PathLike[str] | None = None, title: str | None = None,
           limits: Limits = Limits(), figures: bool = True,
           progress: ProgressOption = None) -> None:
    """Write the report of a store as one HTML file that opens offline.

    `data` is the folder of the data sets, for images and true classes; nothing is downloaded.
    Figures of the paper that the store has data for take up to a few seconds each.
    """
    check_writable(path)
    title = title or f"Studies in {store.path.name}"
    count = len(store.studies()) + (len(FIGURES) if figures else 0)
    with progress_bar(count, progress, desc="report", delay=1.0, leave=False) as parts:
        content = report_data(store, title=title, samples=samples_in(data), limits=limits,
                              done=parts.update)
        content["figures"] = gallery(store, parts.update) if figures else None
    page.write(path, title, content)


def report_data(store: StoreReader, *, title: str, samples: Callable[[str], Found],
                limits: Limits = Limits(), done: Callable[[], object] = lambda: None) -> Plain:
    """Collect the content of the page except figures, calling `done` after each study.

    Things that several places show are listed once and referred to by position: runs, settings,
    provenance, errors, series (curves of a cell) and grids (epochs of curves).
    """
    pools = {name: _UniqueList() for name in ("runs", "settings", "provenance", "errors", "series",
                                        "grids")}
    details = RunDetails(store, samples, {"scene": limits.scenes, "sheet": limits.sheets,
                                          "confusion": limits.confusions})
    studies = []
    train_accuracies: dict[str, list[float]] = {}
    for name in store.studies():
        studies.append(_study(store, name, pools, limits))
        measures = store.measures(name)
        measures = measures.loc[measures["name"] == TRAIN_ACCURACY, ["run", "value"]]
        for key, accuracy in measures.itertuples(index=False):
            train_accuracies.setdefault(key, []).append(accuracy)
        done()
    for cell in _in_turn(studies):
        run = pools["runs"].items[cell["shown"]]
        details.add(run["run"], cell["key"]["dataset"],
                    [run["acc"], *train_accuracies.get(run["run"], ())])
    metrics = dict.fromkeys(name for one in pools["series"].items for name in one["curves"])
    written = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {
        "title": title, "studies": studies, "run_details": details.runs, "metrics": list(metrics),
        "about": [("Store", store.path.name), ("Written", written), ("reclust", __version__)],
        **{name: pool.items for name, pool in pools.items()},
    }


class _UniqueList:
    """List without duplicates."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._positions: dict[Hashable, int] = {}

    def position(self, key: Hashable, make: Callable[[], Any]) -> int:
        """Return the position of the item with this key, made if it is new."""
        if key not in self._positions:
            self.items.append(make())
            self._positions[key] = len(self.items) - 1
        return self._positions[key]


@dataclass(frozen=True)
class _PhaseCurves:
    """Curves of one phase, and the position of each run in them."""

    positions: Mapping[str, int]
    columns: Mapping[str, Curve]

    @property
    def lines(self) -> list[str]:
        return [name for name in self.columns
                if name != "fired" and not name.endswith(AFTER_RESET)]

    def of(self, runs: Sequence[str]) -> dict[str, Curve]:
        positions = [self.positions[run] for run in runs if run in self.positions]
        return {name: Curve(one.epochs, one.values[:, positions])
                for name, one in self.columns.items()} if positions else {}


def _study(store: StoreReader, name: str, pools: Mapping[str, _UniqueList],
           limits: Limits) -> Plain:
    frame = store.runs(name)
    factors = [column for column in frame.columns if column not in _KNOWN]
    means = {tuple(entry[key] for key in CELL): entry
             for entry in store.means(name, measures=MEASURES)}
    phases = _phases(store, name)
    lines = 2 * len(means) * sum(len(phase.lines) for phase in phases.values())
    points = int(np.clip(limits.numbers // max(1, lines), 12, limits.points))
    planned: dict[tuple, list[Plain]] = {}
    for row in frame.to_dict("records"):
        planned.setdefault(tuple(row[key] for key in CELL), []).append(row)
    cells = []
    for key, rows in planned.items():
        runs = [_run(store, row, pools) for row in rows]
        finished = [run for run in runs if pools["runs"].items[run]["state"] == "finished"]
        keys = tuple(row["run"] for row in rows if row["state"] == "finished")
        first = rows[0]
        make_series = partial(_series, keys, phases, points, pools["grids"])
        cells.append({
            "key": {name: first[name] for name in (*CELL, *factors) if first[name] == first[name]},
            "means": {measure: [means.get(key, {}).get(f"{measure}_{what}")
                                for what in ("mean", "std", "best")] for measure in MEASURES},
            "runs": runs, "shown": finished[0] if finished else None,
            "series": pools["series"].position(keys, make_series) if keys else None,
        })
    spec = store.plain_spec(name)
    known = isinstance(spec, dict) and spec.get("kind") == Study.__name__
    empty = Status(name, planned=0, finished=0, failed=0, seconds=0.0)  # if no run is planned
    (status,) = store.status(name) or [empty]
    return {"name": name, "about": spec["fields"].get("about", "") if known else "",
            "keys": [*CELL, *factors], "cells": cells,
            "status": {key: getattr(status, key) for key in (
                "planned", "finished", "failed", "waiting", "seconds")}}


def _run(store: StoreReader, row: Mapping[str, Any], pools: Mapping[str, _UniqueList]) -> int:
    """Return the position of a run."""

    def listed(pool: str, thing: Any) -> int:
        lines = page.records(thing)
        return pools[pool].position(tuple(lines), lambda: lines)

    def make() -> Plain:
        entry = {name: row[name] for name in ("run", "seed", "state", *MEASURES, "finished_at")}
        if row["state"] == "finished":
            provenance = dict(store.provenance(row["run"]))
            provenance.pop("finished_at", None)
            entry |= {"settings": listed("settings", _settings(store, row["run"])),
                      "provenance": listed("provenance", provenance)}
        if isinstance(row["error"], str):
            entry["error"] = pools["errors"].position(row["error"], lambda: row["error"])
        return entry

    return pools["runs"].position(row["run"], make)


def _settings(store: StoreReader, run: str) -> Any:
    """Load settings, or show the JSON if a custom part of them was not imported."""
    try:
        return store.settings(run)
    except (ValueError, TypeError):
        return _as_written(json.loads(store.plain_settings(run))["fields"])


def _as_written(stored: Any) -> Any:
    """Turn the JSON of a value into mappings."""
    if isinstance(stored, dict):
        kind = {"kind": stored["kind"]} if "kind" in stored else {}
        fields: Plain = stored.get("fields" if kind else "mapping", stored)
        return {**kind, **{name: _as_written(part) for name, part in fields.items()}}
    if isinstance(stored, list) and any(isinstance(part, dict) for part in stored):
        return {place: _as_written(part) for place, part in enumerate(stored, 1)}
    return stored


def _phases(store: StoreReader, study: str) -> dict[str, _PhaseCurves]:
    """Return the curves of all finished runs by phase, NaN where a run has no value."""
    made = {}
    for phase in store.phases(study):
        frame = store.curves(study, phase=phase)
        if not frame.empty:
            table = frame.pivot(index="epoch", columns="run")
            names = [name for name in frame.columns if name not in ("run", "epoch")]
            columns = {name: Curve(table.index.to_numpy(), table[name].to_numpy(np.float64))
                       for name in names}
            runs = {run: position for position, run in enumerate(table[names[0]].columns)}
            made[phase] = _PhaseCurves(runs, columns)
    return made


def _series(runs: Sequence[str], phases: Mapping[str, _PhaseCurves], points: int,
            grids: _UniqueList) -> Plain:
    """Return the curves of a cell by phase.column, and the epochs with resets."""
    made: Plain = {"curves": {}, "resets": []}
    for phase, history in phases.items():
        columns = history.of(runs)
        if LABEL_CHANGE in columns:
            changes = columns[LABEL_CHANGE]
            measured = changes.epochs[np.isfinite(changes.values).any(axis=1)]
            kept = over_one_epoch(changes.epochs, measured)
            columns[LABEL_CHANGE] = Curve(changes.epochs[kept], changes.values[kept])
        for name in history.lines if columns else ():
            line = page.curve(columns, name, limit=points)
            if line is not None:
                grid = tuple(line.pop("x").tolist())
                position = grids.position(grid, partial(tuple, grid))
                made["curves"][f"{phase}.{name}"] = {"grid": position, **line}
        if "fired" in columns:
            fired = columns["fired"]
            made["resets"] = fired.epochs[np.nan_to_num(fired.values).any(axis=1)]
    return made


def _in_turn(studies: Sequence[Plain]) -> list[Plain]:
    """Take cells with finished runs from each study and data set in turn, to share the limits."""
    queues: dict[tuple[str, str], list[Plain]] = {}
    for study in studies:
        for cell in study["cells"]:
            if cell["shown"] is not None:
                queues.setdefault((study["name"], cell["key"]["dataset"]), []).append(cell)
    return [cell for turn in zip_longest(*queues.values()) for cell in turn if cell is not None]
