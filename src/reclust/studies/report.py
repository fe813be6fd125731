"""The HTML report of a store: everything in it as plain data, then one page."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import report as page
from ..monitors import AFTER_RESET
from ..result import Curve
from ..values import value
from ..version import __version__
from .inside import Found, Insides, samples_in
from .reading import CELL, Status, StoreReader
from .spec import Study

if TYPE_CHECKING:
    import pandas

Plain = dict[str, Any]
MEASURES = ("acc", "nmi", "ari", "seconds")
_KNOWN = ("study", "run", "group", *CELL, "seed", "state", "finished_at", "error", *MEASURES)


@value
class Limits:
    """How much a report holds: points of one curve, numbers of all curves of a study, and of how many runs it shows the
    embeddings, the samples around centres, and the classes against clusters."""

    points: int = 100
    numbers: int = 200_000
    scenes: int = 24
    sheets: int = 24
    confusions: int = 200


def report(store: StoreReader, path: str | os.PathLike[str], *, data: str | os.PathLike[str] | None = None,
           title: str | None = None, limits: Limits = Limits()) -> None:
    """Write the report of a store as one HTML file that opens offline.

    data: folder of the data sets, None for the usual one. Images and true classes of sets that are not there are left out, and
    the report says so.
    """
    title = title or f"Studies in {store.path.name}"
    page.write(path, title, report_data(store, title=title, samples=samples_in(data), limits=limits))


def report_data(store: StoreReader, *, title: str, samples: Callable[[str], Found], limits: Limits = Limits()) -> Plain:
    """All that the page shows, as dicts, lists, strings, numbers and arrays. What several places refer to, by its position,
    stands in lists of its own: runs, settings, provenance, errors, series (curves of a cell) and grids (epochs of curves)."""
    pools = {name: _Pool() for name in ("runs", "settings", "provenance", "errors", "series", "grids")}
    insides = Insides(store, samples, {"scene": limits.scenes, "sheet": limits.sheets, "confusion": limits.confusions})
    studies = [_study(store, name, pools, limits) for name in store.studies()]
    for study in studies:
        for cell in _in_turn(study["cells"]):
            run = pools["runs"].things[cell["shown"]]
            insides.add(run["run"], cell["key"]["dataset"], run["acc"])
    metrics = {name: None for series in pools["series"].things for name in series["curves"]}
    return {
        "title": title, "studies": studies, "insides": insides.runs, "metrics": list(metrics),
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


def _study(store: StoreReader, name: str, pools: Mapping[str, _Pool], limits: Limits) -> Plain:
    frame = store.runs(name)
    factors = [column for column in frame.columns if column not in _KNOWN]
    means = {tuple(entry[key] for key in CELL): entry for entry in store.means(name, measures=MEASURES)}
    curves = {phase: store.curves(name, phase=phase) for phase in store.phases(name)}
    lines = 2 * len(means) * max(1, sum(frame.shape[1] - 2 for frame in curves.values()))
    points = int(np.clip(limits.numbers // max(1, lines), 12, limits.points))
    cells = []
    for key, rows in frame.groupby(list(CELL), sort=False):
        runs = [_run(store, row, pools) for row in rows.to_dict("records")]
        finished = [run for run in runs if pools["runs"].things[run]["state"] == "finished"]
        keys = tuple(rows.loc[rows["state"] == "finished", "run"])
        first = rows.iloc[0].to_dict()
        cells.append({
            "key": {name: first[name] for name in (*CELL, *factors) if first[name] == first[name]},
            "means": {measure: [means.get(key, {}).get(f"{measure}_{what}") for what in ("mean", "std", "best")]
                      for measure in MEASURES},
            "runs": runs, "shown": finished[0] if finished else None,
            "series": pools["series"].place(keys, partial(_series, keys, curves, points, pools)) if keys else None,
        })
    return {"name": name, "about": _about(store, name), "keys": [*CELL, *factors], "cells": cells,
            "status": _status(store, name)}


def _about(store: StoreReader, name: str) -> str:
    spec = store.spec(name)
    return spec.about if isinstance(spec, Study) else ""


def _status(store: StoreReader, name: str) -> Plain:
    found = store.status(name)  # nothing where no run is planned
    status = found[0] if found else Status(name, planned=0, finished=0, failed=0, seconds=0.0)
    return {"planned": status.planned, "finished": status.finished, "failed": status.failed, "waiting": status.waiting,
            "seconds": status.seconds}


def _run(store: StoreReader, row: Mapping[str, Any], pools: Mapping[str, _Pool]) -> int:
    """A run's place, with the places of its settings, which runs of one variant in a group share, and of its provenance."""
    def settings() -> int:
        lines = page.records(store.settings(row["run"]))
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


def _series(runs: Sequence[str], curves: Mapping[str, pandas.DataFrame], points: int, pools: Mapping[str, _Pool]) -> Plain:
    """The curves of a cell, by phase.column, and after how many epochs something was reset."""
    made: Plain = {"curves": {}, "resets": []}
    for phase, frame in curves.items():
        own = frame[frame["run"].isin(runs)]
        if own.empty:
            continue
        table = own.pivot(index="epoch", columns="run")
        columns = {name: Curve(table.index.to_numpy(), table[name].to_numpy(np.float64))
                   for name in frame.columns if name not in ("run", "epoch")}
        for name in columns:
            line = None if name == "fired" or name.endswith(AFTER_RESET) else page.curve(columns, name, limit=points)
            if line is not None:
                grid = tuple(line.pop("x"))
                made["curves"][f"{phase}.{name}"] = {"grid": pools["grids"].place(grid, partial(tuple, grid)), **line}
        if "fired" in columns:
            fired = columns["fired"]
            made["resets"] = fired.epochs[np.nan_to_num(fired.values).any(axis=1)]
    return made


def _in_turn(cells: Sequence[Plain]) -> list[Plain]:
    """Cells with finished runs, the first of each data set before the second of any: what is limited is shared fairly."""
    by_set: dict[str, list[Plain]] = {}
    for cell in cells:
        if cell["shown"] is not None:
            by_set.setdefault(cell["key"]["dataset"], []).append(cell)
    return [cell for turn in zip_longest(*by_set.values()) for cell in turn if cell is not None]
