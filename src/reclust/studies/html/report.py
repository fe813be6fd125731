"""The HTML report of a store: its content as plain data, then one page."""

import base64
import json
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import Any

import numpy as np

from ... import report as page
from ...training.history import AFTER_RESET, Curve
from ...utils.files import check_writable
from ...utils.progress import ProgressOption, progress_bar
from ...utils.version import __version__
from ..figures import FIGURES, MissingData, figure, source
from ..figures.panels import rendered
from ..figures.runs import over_one_epoch
from ..store.reader import CELL, Status, StoreReader, grouped
from ..study import Study
from .run_details import Found, RunDetails, samples_in

Plain = dict[str, Any]
LABEL_CHANGE = "label_change"
MEASURES = ("acc", "nmi", "ari", "seconds")
DPI = 96  # CSS pixels per inch
MAX_POINTS, MAX_NUMBERS = 100, 300_000  # of a curve, and in all curves of a study
_KNOWN = ("study", "run", "group", *CELL, "seed", "state", "finished_at", "error", *MEASURES)


def report(store: StoreReader, path: str | os.PathLike[str], *,
           data: str | os.PathLike[str] | None = None, title: str | None = None,
           figures: bool = True, progress: ProgressOption = None) -> None:
    """Write the report of a store as one HTML file; `data` is the folder of the data sets."""
    check_writable(path)
    title = title or f"Studies in {store.path.name}"
    count = len(store.studies()) + (len(FIGURES) if figures else 0)
    with progress_bar(count, progress, desc="report", delay=1.0, leave=False) as parts:
        content = report_data(store, title=title, samples=samples_in(data), done=parts.update)
        content["figures"] = gallery(store, parts.update) if figures else None
    page.write(path, title, content)


def report_data(store: StoreReader, *, title: str, samples: Callable[[str], Found],
                done: Callable[[], object] = lambda: None) -> Plain:
    """Collect the content of the page except figures, calling `done` after each study."""
    # Shown in several places, listed once: series are curves of a cell, grids epochs of curves.
    names = ("runs", "settings", "provenance", "errors", "series", "grids")
    pools = {name: _UniqueList() for name in names}
    details = RunDetails(store, samples)
    studies = []
    train_accuracies: dict[str, list[float]] = {}
    for name in store.studies():
        studies.append(_study(store, name, pools))
        for run, measure, accuracy in store.measures(name).itertuples(index=False):
            if measure == "train_acc":  # of runs that are scored on other samples
                train_accuracies.setdefault(run, []).append(accuracy)
        done()
    cells = [(place, cell) for study in studies for place, cell in enumerate(study["cells"])
             if cell["shown"] is not None]
    for _, cell in sorted(cells, key=lambda pair: pair[0]):  # studies in turn share the limits
        shown = pools["runs"].items[cell["shown"]]
        details.add(shown["run"], cell["key"]["dataset"],
                    [shown["acc"], *train_accuracies.get(shown["run"], ())])
    metrics = dict.fromkeys(name for series in pools["series"].items for name in series["curves"])
    written = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"title": title, "studies": studies, "run_details": details.runs,
            "about": [("Store", store.path.name), ("Written", written), ("reclust", __version__)],
            "metrics": list(metrics), **{name: pool.items for name, pool in pools.items()}}


class _UniqueList:
    def __init__(self) -> None:
        self.items: list[Any] = []
        self._positions: dict[Hashable, int] = {}

    def position(self, key: Hashable, make: Callable[[], Any] | None = None) -> int:
        """Return the position of the item with this key, made if it is new, or the key itself."""
        if key not in self._positions:
            self.items.append(key if make is None else make())
            self._positions[key] = len(self.items) - 1
        return self._positions[key]


def _study(store: StoreReader, name: str, pools: Mapping[str, _UniqueList]) -> Plain:
    frame = store.runs(name)
    factors = [column for column in frame.columns if column not in _KNOWN]
    means = {tuple(entry[key] for key in CELL): entry
             for entry in store.means(name, measures=MEASURES)}
    phases = {}
    for phase in store.phases(name):
        if not (curves := store.curves(name, phase=phase)).empty:
            table = curves.pivot(index="epoch", columns="run")
            phases[phase] = {line: table[line] for line in table.columns.unique(level=0)}
    lines = [line for tables in phases.values() for line in _lines(tables)]
    points = int(np.clip(MAX_NUMBERS // max(1, 2 * len(means) * len(lines)), 12, MAX_POINTS))
    planned = grouped(frame.to_dict("records"), lambda row: tuple(row[key] for key in CELL))
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
    def make() -> Plain:
        entry = {name: row[name] for name in ("run", "seed", "state", *MEASURES, "finished_at")}
        if row["state"] == "finished":
            provenance = dict(store.provenance(row["run"]))
            provenance.pop("finished_at", None)
            settings = page.records(json.loads(store.plain_settings(row["run"])))
            entry |= {"settings": pools["settings"].position(tuple(settings)),
                      "provenance": pools["provenance"].position(tuple(page.records(provenance)))}
        if isinstance(row["error"], str):
            entry["error"] = pools["errors"].position(row["error"])
        return entry

    return pools["runs"].position(row["run"], make)


def _lines(names: Iterable[str]) -> list[str]:
    return [name for name in names if name != "fired" and not name.endswith(AFTER_RESET)]


def _series(runs: Sequence[str], phases: Mapping[str, Mapping[str, Any]], points: int,
            grids: _UniqueList) -> Plain:
    """Collect the curves of these runs from tables of epochs and runs, by phase and name."""
    series: Plain = {"curves": {}, "resets": []}
    for phase, tables in phases.items():
        known = [run for run in runs if run in next(iter(tables.values()))]
        columns = {name: Curve(table.index.to_numpy(), table[known].to_numpy(np.float64))
                   for name, table in tables.items()} if known else {}
        if LABEL_CHANGE in columns:
            changes = columns[LABEL_CHANGE]
            measured = changes.epochs[np.isfinite(changes.values).any(axis=1)]
            comparable = over_one_epoch(changes.epochs, measured)
            columns[LABEL_CHANGE] = Curve(changes.epochs[comparable], changes.values[comparable])
        for name in _lines(columns):
            line = page.curve(columns, name, limit=points)
            if line is not None:
                grid = grids.position(tuple(line.pop("x").tolist()))
                series["curves"][f"{phase}.{name}"] = {"grid": grid, **line}
        if "fired" in columns:
            fired = columns["fired"]
            series["resets"] = fired.epochs[np.nan_to_num(fired.values).any(axis=1)]
    return series


def gallery(store: StoreReader, done: Callable[[], object]) -> dict[str, Any] | None:
    """Draw the figures that the store has data for, calling `done` after each; None without any."""
    drawn, missing = [], []
    for name, spec in FIGURES.items():
        try:
            text = {"name": name, "about": spec.about, "source": f"From {source(store, name)}."}
            drawing = figure(store, name)
            width, height = (round(DPI * inches) for inches in drawing.get_size_inches())
            # As an image, so that its identifiers and styles cannot clash with the page's.
            content = base64.b64encode(rendered(drawing, ".svg")).decode()
            drawn.append({**text, "width": width, "height": height,
                          "picture": f"data:image/svg+xml;base64,{content}"})
        except MissingData:
            missing.append(name)
        except ImportError as error:  # without matplotlib
            return {"drawn": [], "said": [str(error)]}
        done()
    if not drawn:
        return None
    said = [f"Not drawn, no data: {', '.join(missing)}."] if missing else []
    return {"drawn": drawn, "said": said}
