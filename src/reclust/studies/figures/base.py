"""What a figure is, and what figures share: choosing runs, curves with bands, marks at resets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..store.reader import CELL, StoreReader
from ..store.summaries import over_one_epoch
from ..tables import labels

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 3.4
"""Inches of a column of text: the unit of all sizes."""


class MissingData(LookupError):
    """The store lacks what a figure draws; the message says which study to run."""


@dataclass(frozen=True)
class Choice:
    """What to draw; None leaves it to the figure. study: a study of the store. epoch: at whose start a reset fired.

    datasets, algorithms, variants: those of the study to show, one of them where the figure has room for one.
    """

    study: str | None = None
    datasets: tuple[str, ...] | None = None
    algorithms: tuple[str, ...] | None = None
    pretrained: bool | None = None
    epoch: int | None = None
    variants: tuple[str, ...] | None = None


CURVES = ("training-curves", "acc-table")
"""What has curves of distances, norms and reconstruction: of the same runs, the first of more measures."""


@dataclass(frozen=True)
class Recipe:
    """A figure: its name, the studies that feed it, and what draws it.

    measures: what these studies must have recorded beside scores, by the names of `reclust.studies.measures`.
    usual: which datasets, algorithms, variants and start (pretrained) it shows unless others are asked for; what it does not
    name is shown in full. Of several studies the one that has most of this is drawn, of equals that of more runs.
    by_dataset: that is asked for each data set by itself.
    """

    name: str
    studies: tuple[str, ...]
    draw: Callable[[Runs, Choice], Figure]
    about: str
    measures: tuple[str, ...] = ()
    usual: Mapping[str, Any] = field(default_factory=dict)
    by_dataset: bool = False

    def wanted(self, choice: Choice) -> dict[str, list[Any]]:
        """Column of runs -> the values to show: those asked for, else the usual ones."""
        wanted = {}
        for name in ("datasets", "algorithms", "variants", "pretrained"):
            asked = getattr(choice, name)
            given = self.usual.get(name) if asked is None else asked
            if given is not None:
                wanted[name.removesuffix("s")] = [given] if isinstance(given, bool) else list(given)
        return wanted


@dataclass(frozen=True)
class Runs:
    """Finished runs of the study that a figure draws."""

    reader: StoreReader
    recipe: Recipe
    study: str
    frame: pandas.DataFrame

    @classmethod
    def of(cls, reader: StoreReader, recipe: Recipe, choice: Choice) -> Runs:
        """Of the named study, else of the recipe's that has most of what is to be shown, in full or in its small form."""
        known, study = reader.studies(), choice.study
        wanted = [study] if study else [*recipe.studies, *(f"{name}-mini" for name in recipe.studies)]
        candidates = [cls._finished(reader, recipe, name) for name in wanted if name in known]
        if not candidates:
            small = " --mini" if study is None and any(name.endswith("-mini") for name in known) else ""
            raise MissingData(f"The figure {recipe.name} is drawn from the study {' or '.join(wanted[: len(recipe.studies)])}, "
                              f"which {reader.path} does not have: run `reclust study run {wanted[0]}{small} "
                              f"--store {reader.path}`"
                              + (f", or draw it from another one with --study: {', '.join(known)}." if known else "."))
        runs = max(candidates, key=lambda one: one._extent(recipe.wanted(choice)))
        if runs.frame.empty:
            raise runs.missing("no finished run")
        return runs

    @classmethod
    def _finished(cls, reader: StoreReader, recipe: Recipe, study: str) -> Runs:
        frame = reader.runs(study)
        return cls(reader, recipe, study, frame[frame["state"] == "finished"].reset_index(drop=True))

    def _extent(self, wanted: Mapping[str, list[Any]]) -> tuple[int, int]:
        """In how many of the wanted cells there are runs, over all that is not wanted in particular; how many runs."""
        frame = self.frame
        for column, values in wanted.items():
            frame = frame[frame[column].isin(values)]
        return len(frame[list(CELL)].drop_duplicates()), len(frame)

    @property
    def source(self) -> str:
        """The study and how many runs each cell has, for a caption."""
        counts = self.frame.groupby(list(CELL)).size()
        few, many = counts.min(), counts.max()
        each = f"{few} run{'s' if few > 1 else ''} each" if few == many else f"{few} to {many} runs each"
        return f"`{self.study}`, {each}"

    def missing(self, what: str) -> MissingData:
        return MissingData(f"The figure {self.recipe.name} finds {what} of the study {self.study} in {self.reader.path}: run "
                           f"`reclust study run {self.recipe.studies[0]} --store {self.reader.path}` to its end"
                           + (f", with the measures {', '.join(self.recipe.measures)}." if self.recipe.measures else "."))

    def only(self, *, datasets: Sequence[str] | None = None, algorithms: Sequence[str] | None = None,
             pretrained: bool | None = None, variants: Sequence[str] | None = None) -> Runs:
        """Those of these kinds. What the study has none of is passed over; nothing left at all is an error."""
        frame = self.frame
        wanted = {"dataset": datasets, "algorithm": algorithms, "variant": variants,
                  "pretrained": None if pretrained is None else [pretrained]}
        for column, given in wanted.items():
            if given is not None:
                frame = frame[frame[column].isin(list(given))]
                if frame.empty:
                    raise self.missing(f"no {column} among {', '.join(map(str, given))} in the finished runs")
        return replace(self, frame=frame)

    def by_dataset(self, choice: Choice) -> list[Runs]:
        """What is `chosen`; where the recipe says so, of each data set from the study that has most of it, by studies."""
        chosen = self.chosen(choice)
        if not self.recipe.by_dataset:
            return [chosen]
        studies: dict[str, list[str]] = {}
        for dataset in chosen.values("dataset"):
            own = Runs.of(self.reader, self.recipe, replace(choice, datasets=(dataset,)))
            studies.setdefault(own.study, []).append(dataset)
        each = [replace(choice, study=study, datasets=tuple(datasets)) for study, datasets in studies.items()]
        return [Runs.of(self.reader, self.recipe, one).chosen(one) for one in each]

    def chosen(self, choice: Choice) -> Runs:
        """`only` what was asked for, else what is usual; what is usual and the study does not have is replaced by the first it
        has: small forms have other data sets. Of variants it is all, where of the usual ones only the baseline is there."""
        frame = self.only(datasets=choice.datasets, algorithms=choice.algorithms, pretrained=choice.pretrained,
                          variants=choice.variants).frame
        for column, values in self.recipe.wanted(choice).items():
            found = {*values} & {*frame[column]}
            if column == "variant" and choice.variants is None and "none" in values and found <= {"none"}:
                continue
            frame = frame[frame[column].isin(values if found else frame[column].iloc[:1])]
        return replace(self, frame=frame)

    def values(self, column: str) -> list[Any]:
        """What occurs in a column, in the order of the plan."""
        return list(dict.fromkeys(self.frame[column]))

    @property
    def variants(self) -> list[str]:
        return in_order(self.values("variant"))

    def curves(self, *names: str) -> pandas.DataFrame:
        """One row for each run and epoch: run, epoch, dataset, algorithm, variant, pretrained, seed and these curves."""
        curves = self.reader.curves(self.study, names)
        curves = curves.merge(self.frame[["run", "dataset", "algorithm", "variant", "pretrained", "seed"]], on="run")
        for name in names:
            if not curves[name].notna().any():
                raise self.missing(f"no curve {name!r}")
        return curves

    def resets(self) -> dict[str, set[int]]:
        """Run -> at the start of which epochs an intervention fired."""
        fired = self.reader.curves(self.study, ["fired"])
        fired = fired[(fired["fired"] == 1) & fired["run"].isin(self.frame["run"])]
        return {run: set(own) for run, own in fired.groupby("run")["epoch"]}

    def resets_of(self, run: str, epoch: int | None = None) -> list[int]:
        """Of one run, to which those of others that trained stacked with it do not belong; epoch: which must be among them."""
        marks = self.reader.history(run, ["fired"]).get("clustering", {}).get("fired")
        found = [] if marks is None else marks.epochs[marks.values == 1].tolist()
        if not found:
            raise MissingData(f"The figure {self.recipe.name} shows a reset, and in the run of {self.study} that it would show "
                              f"no intervention fired ({self.reader.path}).")
        if epoch is not None and epoch not in found:
            raise MissingData(f"There was no reset at the start of epoch {epoch}; there were at {', '.join(map(str, found))}.")
        return found

    def columns(self, run: str, *names: str) -> list[Any]:
        """The curves of one run with their epochs, also those of more than one number."""
        own = self.reader.history(run).get("clustering", {})
        for name in names:
            if name not in own:
                raise self.missing(f"no curve {name!r}")
        return [own[name] for name in names]


def in_order(variants: Iterable[str]) -> list[str]:
    """Without interventions first and BRB last, so that BRB is drawn on top."""
    return sorted(variants, key=lambda name: (name == "brb", name != "none"))


def panels(rows: int = 1, columns: int = 1, *, width: float = WIDTH, height: float = 2.4,
           **options: Any) -> tuple[Figure, np.ndarray]:
    """A figure with a grid of axes (rows, columns) of this size each, in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def banded(axes: Axes, curves: pandas.DataFrame, column: str, variants: Sequence[str], points: bool = False) -> None:
    """The mean over runs of a curve for each variant, in a band of one standard error; as points where nothing is known in
    between."""
    colors = labels.colors(variants)
    for i, variant in enumerate(variants):
        own = curves[curves["variant"] == variant].dropna(subset=[column])
        wide = own.pivot_table(index="epoch", columns="run", values=column).sort_index()
        if wide.empty:
            continue
        scale = 100 if column in labels.PERCENT else 1
        mean, runs = scale * wide.mean(axis=1), wide.count(axis=1)
        spread = (scale * wide.std(axis=1, ddof=1) / np.sqrt(runs)).fillna(0.0)
        # An epoch's number is taken at its end, the start is epoch -1: one more makes it "epochs trained".
        epochs = wide.index.to_numpy() + 1
        style = "-" if variant == "brb" else labels.STYLES[1 + i % (len(labels.STYLES) - 1)]
        form: dict[str, Any] = {"color": colors[variant], "label": name_of(variant), "zorder": 3 + (variant == "brb")}
        if points:
            axes.errorbar(epochs, mean, spread, linestyle="none", marker="o", markersize=2, linewidth=0.8, **form)
            continue
        axes.plot(epochs, mean, linestyle=style, linewidth=1.2, **form)
        axes.fill_between(epochs, mean - spread, mean + spread, color=colors[variant], alpha=0.2, linewidth=0)
    axes.set_ylabel(labels.measure(column))


def mark_resets(axes: Axes, epochs: Iterable[int]) -> None:
    """A dotted line from bottom to top for each, all of them one path, which keeps files small."""
    places = np.array(sorted(epochs), dtype=float)
    axes.plot(np.repeat(places, 3), np.tile([0, 1, np.nan], len(places)), color="0.75", linewidth=0.5, linestyle=":", zorder=0,
              transform=axes.get_xaxis_transform(), scaley=False)


def name_of(variant: str) -> str:
    return "no intervention" if variant == "none" else labels.variant(variant)


def title(runs: Runs, variant: str = "none") -> str:
    """Of a figure that shows one algorithm on one data set, and how its runs began."""
    (algorithm, *_), (dataset, *_), (start, *_) = (runs.values(name) for name in ("algorithm", "dataset", "pretrained"))
    return f"{labels.method(algorithm, variant)}, {labels.dataset(dataset)}, {labels.value('pretrained', start)}"


def legend(figure: Figure, axes: Axes, **options: Any) -> None:
    """One legend for all panels, below them; points are shown large enough to be told apart."""
    from matplotlib.collections import PathCollection

    handles, names = axes.get_legend_handles_labels()
    columns = max(1, min(len(names), int(figure.get_figwidth() / 1.1)))  # what the width has room for
    given: dict[str, Any] = {"loc": "outside lower center", "ncols": columns, "frameon": False} | options
    made = figure.legend(handles, names, **given)
    for handle in made.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set_sizes([18])
            handle.set_alpha(1)


def curve_panels(several: Sequence[Runs], columns: Sequence[str]) -> Figure:
    """Rows of panels, one for each curve; columns of panels, one for each data set and algorithm of these runs."""
    from matplotlib.ticker import MaxNLocator

    cells = [(runs, cell) for runs in several
             for cell in dict.fromkeys(runs.frame[["dataset", "algorithm", "pretrained"]].itertuples(index=False, name=None))]
    kept = in_order(dict.fromkeys(variant for runs in several for variant in runs.variants))
    curves, resets = {runs.study: runs.curves(*columns) for runs in several}, {runs.study: runs.resets() for runs in several}
    figure, grid = panels(len(columns), len(cells), height=2.4 if len(columns) == 1 else 1.7, sharex="col")
    for place, (runs, (dataset, algorithm, pretrained)) in zip(grid.T, cells, strict=True):
        own = runs.only(datasets=[dataset], algorithms=[algorithm], pretrained=pretrained)
        shown = curves[runs.study][curves[runs.study]["run"].isin(own.frame["run"])]
        fired = set().union(*(resets[runs.study].get(run, ()) for run in own.frame["run"]))
        for axes, column in zip(place, columns, strict=True):
            mark_resets(axes, fired)
            some = _comparable(shown) if column == "label_change" else shown
            banded(axes, some, column, kept, points=len(some) < len(shown))
            if axes not in grid[:, 0]:
                axes.set_ylabel("")
        place[0].set_title(f"{labels.method(algorithm, 'none', pretrained=pretrained)}, {labels.dataset(dataset)}")
        place[-1].set_xlabel("epochs")
        place[-1].xaxis.set_major_locator(MaxNLocator(6, integer=True))
    legend(figure, grid[0, 0])
    return figure


def _comparable(curves: pandas.DataFrame) -> pandas.DataFrame:
    looked = np.unique(curves.loc[curves["label_change"].notna(), "epoch"])
    return curves[over_one_epoch(curves["epoch"].to_numpy(), looked)]
