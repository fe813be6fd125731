"""Definition of a figure, and the runs of a store that it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..store.reader import CELL, StoreReader, grouped

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

CURVES = ("training-curves", "acc-table")  # the first records more often


class MissingData(LookupError):
    """Raised if the store lacks what a figure shows; the message names the study to run."""


@dataclass(frozen=True)
class Choice:
    """Selection of what to draw; None leaves it to the figure; `epoch` picks a reset."""

    study: str | None = None
    datasets: tuple[str, ...] | None = None
    algorithms: tuple[str, ...] | None = None
    pretrained: bool | None = None
    epoch: int | None = None
    variants: tuple[str, ...] | None = None

    def filters(self, defaults: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Map columns of runs to the values to show: those chosen, else the defaults."""
        filters = {}
        for name in ("datasets", "algorithms", "variants", "pretrained"):
            values = getattr(self, name)
            values = defaults.get(name) if values is None else values
            if values is not None:
                column = name.removesuffix("s")
                filters[column] = [values] if isinstance(values, bool) else list(values)
        return filters


@dataclass(frozen=True)
class FigureSpec:
    """A figure: studies with its data, the function that draws it, caption, recorded measures."""

    name: str
    studies: Sequence[str]
    about: str
    draw: Callable[[Runs, Choice], Figure]
    measures: Sequence[str] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)  # what to show unless chosen
    by_dataset: bool = False  # take each data set from the study that has most of it


@dataclass(frozen=True)
class Runs:
    """Finished runs of one study that a figure shows."""

    reader: StoreReader
    spec: FigureSpec
    study: str
    frame: pandas.DataFrame

    @classmethod
    def select(cls, reader: StoreReader, spec: FigureSpec, choice: Choice) -> Runs:
        """Load the chosen study, else the one with most of the data, full or mini."""
        known, study = reader.studies(), choice.study
        names = [study] if study else [*spec.studies, *(f"{name}-mini" for name in spec.studies)]
        frames = {name: reader.runs(name) for name in names if name in known}
        candidates = [
            cls(reader, spec, name, frame[frame["state"] == "finished"].reset_index(drop=True))
            for name, frame in frames.items()]
        if not candidates:
            mini = " --mini" if any(name.endswith("-mini") for name in known) and not study else ""
            others = f", or choose another one with --study: {', '.join(known)}" if known else ""
            raise MissingData(
                f"{spec.name} needs the study {' or '.join(names[: len(spec.studies)])}, which "
                f"{reader.path} does not have: run `reclust study run {names[0]}{mini} "
                f"--store {reader.path}`{others}.")
        filters = choice.filters(spec.defaults)
        runs = max(candidates, key=lambda runs: runs._extent(filters))
        runs.require(not runs.frame.empty, "no finished run")
        return runs._chosen(choice)

    def _extent(self, filters: Mapping[str, list[Any]]) -> tuple[int, int]:
        frame = self.frame
        for column, values in filters.items():
            frame = frame[frame[column].isin(values)]
        return len(frame[list(CELL)].drop_duplicates()), len(frame)

    def _chosen(self, choice: Choice) -> Runs:
        """Keep what was chosen, else the defaults, else the first value, for mini studies."""
        frame = self.only(**choice.filters({})).frame
        for column, values in choice.filters(self.spec.defaults).items():
            present = {*values} & {*frame[column]}
            if column == "variant" and choice.variants is None and present <= {"none"} <= {*values}:
                continue  # all variants of a study without the default interventions
            frame = frame[frame[column].isin(values if present else frame[column].iloc[:1])]
        return replace(self, frame=frame)

    def by_dataset(self, choice: Choice) -> list[Runs]:
        """Return these runs, each data set from the study that has most of it."""
        if not self.spec.by_dataset:
            return [self]
        studies = grouped(self.values("dataset"), lambda dataset: Runs.select(
            self.reader, self.spec, replace(choice, datasets=(dataset,))).study)
        return [Runs.select(self.reader, self.spec,
                            replace(choice, study=study, datasets=tuple(datasets)))
                for study, datasets in studies.items()]

    def only(self, **filters: Sequence[Any]) -> Runs:
        """Keep the runs with these values of columns, at least one."""
        frame = self.frame
        for column, values in filters.items():
            frame = frame[frame[column].isin(values)]
            self.require(len(frame), f"no {column} among {', '.join(map(str, values))}")
        return replace(self, frame=frame)

    @property
    def source(self) -> str:
        few, many = self.frame.groupby(list(CELL)).size().agg(["min", "max"])
        count = f"{few}" if few == many else f"{few} to {many}"
        return f"`{self.study}`, {count} run{'s' if many > 1 else ''} each"

    def require(self, condition: object, what: str) -> None:
        if not condition:
            spec, path = self.spec, self.reader.path
            measures = f", with the measures {', '.join(spec.measures)}" if spec.measures else ""
            raise MissingData(
                f"{spec.name} finds {what} in the study {self.study} of {path}: finish "
                f"`reclust study run {spec.studies[0]} --store {path}`{measures}.")

    def values(self, column: str) -> list[Any]:
        return list(dict.fromkeys(self.frame[column]))

    @property
    def variants(self) -> list[str]:
        return in_order(self.values("variant"))

    def curves(self, *names: str) -> pandas.DataFrame:
        curves = self.reader.curves(self.study, names)
        curves = curves.merge(self.frame[["run", *CELL, "seed"]], on="run")
        for name in names:
            self.require(curves[name].notna().any(), f"no curve {name!r}")
        return curves

    def resets(self) -> dict[str, set[int]]:
        """Map runs to the epochs at whose start an intervention fired."""
        fired = self.reader.curves(self.study, ["fired"])
        fired = fired[(fired["fired"] == 1) & fired["run"].isin(self.frame["run"])]
        return {run: set(epochs) for run, epochs in fired.groupby("run")["epoch"]}

    def resets_of(self, run: str, epoch: int | None = None) -> list[int]:
        """Return the epochs at whose start one run was reset; `epoch` must be among them."""
        resets = sorted(self.resets().get(run, ()))
        self.require(resets, "no run with a reset")
        only = f"only at {', '.join(map(str, resets))},"
        self.require(epoch is None or epoch in resets, f"no reset at epoch {epoch}, {only}")
        return resets

    def columns(self, run: str, *names: str) -> list[Any]:
        """Return curves of one run with their epochs, including arrays."""
        curves = self.reader.history(run).get("clustering", {})
        for name in names:
            self.require(name in curves, f"no curve {name!r}")
        return [curves[name] for name in names]


def in_order(variants: Iterable[str]) -> list[str]:
    """Sort the baseline first and BRB last, so that BRB is drawn on top."""
    return sorted(variants, key=lambda name: (name == "brb", name != "none"))


def over_one_epoch(epochs: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Select the epochs whose label change, since the last evaluation, is over one epoch."""
    if len(measured) and measured[0] > 0:
        return np.isin(epochs - 1, measured)
    return np.ones(len(epochs), dtype=bool)  # all were evaluated, even if some were dropped later
