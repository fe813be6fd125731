"""What `preset="best"` reaches beside shallow baselines, the paper's best and the field's best, one row for each data set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reclust.studies import published
from reclust.studies.baselines import EncodedKMeans, PixelKMeans, UmapMixture
from reclust.studies.store.reader import StoreReader
from reclust.studies.tables import labels
from reclust.studies.tables.scores import BASELINES, COLOUR_BASELINES
from reclust.studies.tables.selection import (
    DEFAULT_SCORE,
    Repetition,
    mean,
    repetitions,
)
from reclust.studies.tables.table import Cell, Row, Table, number

from .cells import APART, MAIN


@dataclass(frozen=True)
class Line:
    """A row of the table: a set as a study prepared it, and as the baselines beside it did. variant: what the preset is for so
    many samples."""

    dataset: str
    study: str = "best"
    baselines: str = BASELINES
    variant: str = "split and merge"


LINES = (Line("optdigits"), Line("usps"), Line("mnist", "best-of-many-samples", variant="more motion"),
         Line("fmnist", "best-of-many-samples", variant="more motion"), Line("kmnist_test"), Line("gtsrb"),
         Line("gtsrb", "best-of-colours", COLOUR_BASELINES), Line("digits", "best-of-few-samples"),
         Line("digits", "best-of-small-images"))
STUDIES = tuple(dict.fromkeys(line.study for line in LINES))
PUBLISHED = ("best", "best-of-many-samples", "best-of-few-samples")
"""Those whose samples are prepared as published; no set is in two of them."""
PREPARED = {"best-of-colours": " without light", "best-of-small-images": ", enlarged"}
"""How the others prepare theirs, behind the name of a set."""
SHALLOW = (PixelKMeans.algorithm, UmapMixture.algorithm, EncodedKMeans.algorithm)
NOT_YET, NONE = Cell("not run yet"), Cell("–")


def best_table(reader: StoreReader) -> Table:
    """Accuracies in percent; the highest of the baselines, the published and ours is bold."""
    rows, shallow = [], {name: baselines(reader, name) for name in dict.fromkeys(line.baselines for line in LINES)}
    for line in LINES:
        own = [one for one in all_repetitions(reader, line.study) if (one.dataset, one.variant) == (line.dataset, line.variant)]
        cells = [*(_seeds(shallow[line.baselines].get((method, line.dataset), ())) for method in SHALLOW),
                 papers_best(line.dataset),
                 fields_best(line.dataset), _seeds([one.kept() for one in own])]
        highest = max((float(cell.numbers[""]) for cell in cells if cell.numbers), default=math.nan)
        shown = [Cell(cell.text, cell.aside, cell.numbers, best=cell.numbers.get("") == highest) for cell in cells]
        rows.append(Row(labels.dataset(line.dataset) + PREPARED.get(line.study, ""), (*shown, *_about(own))))
    return Table(
        'preset="best" beside others, ACC',
        ("", *SHALLOW, "the paper's best", "the field's best", "ours", "best replica", "average replica", "seconds"),
        (tuple(rows),),
        "Percent, mean ± standard error, in parentheses over how many seeds or, of ours, independent repetitions. A repetition "
        f"trains twenty replicas and keeps one by its {labels.measure(DEFAULT_SCORE)}, without labels; beside it what the best and the "
        f"average replica had, and the seconds of a repetition{_devices(reader)}. Baselines see the samples as networks do, "
        "resized and scaled as published (digits, enlarged: ours as estimators prepare them); the autoencoder is that of the "
        "main table's pretrained runs before their first epoch, or, of GTSRB, KMNIST and digits, one trained alike for "
        "this. Published numbers are others' own, with other protocols, single runs or means, and those of KMNIST are of all "
        "70,000 images. The highest of a row is bold.")


def baselines(reader: StoreReader, study: str) -> dict[tuple[str, str], list[float]]:
    """(method, data set) -> accuracies in percent, one a seed. Of the autoencoder what the pretrained runs of the main table
    start from, where no run of its own is there: the same encoders."""
    found: dict[tuple[str, str], list[float]] = {}
    if study == BASELINES and MAIN in reader.studies():
        runs, curves = reader.runs(MAIN), reader.curves(MAIN, ["accuracy"])
        starts = runs[runs["pretrained"]].merge(curves[curves["epoch"] == -1], on="run").dropna(subset=["accuracy"])
        for dataset, own in starts.drop_duplicates(["dataset", "seed"]).groupby("dataset"):
            found[EncodedKMeans.algorithm, str(dataset)] = (100 * own["accuracy"]).tolist()
    recorded: dict[tuple[str, str], list[float]] = {}
    if study in reader.studies():
        for method, dataset, acc in reader.finished(study, ("algorithm", "dataset"), ("acc",)):
            recorded.setdefault((method, dataset), []).append(100 * acc)
    return found | recorded


def all_repetitions(reader: StoreReader, *studies: str) -> list[Repetition]:
    return [one for study in studies if study in reader.studies()
            for one in repetitions(reader, study, PREPARED.get(study, ""))]


def papers_best(dataset: str) -> Cell:
    """The highest mean of any cell that the paper has for a set."""
    whole = APART.get(dataset, dataset)
    own = [(one.mean, one.stderr, key) for key, one in published.paper().items()
           if key[1] == whole and key[5] == "acc" and not key[0].endswith(published.BEST)]
    if not own:
        return NONE
    top, stderr, (_, _, pretrained, algorithm, variant, _) = max(own, key=lambda one: one[0])
    return Cell(f"{top:.1f}" + ("" if stderr is None else f" ± {stderr:.1f}"),
                labels.method(algorithm, variant, pretrained=pretrained == "yes"), {"": top})


def fields_best(dataset: str) -> Cell:
    own = [row for row in published.field() if row["dataset"] == APART.get(dataset, dataset)]
    if not own:
        return NONE
    top = max(own, key=lambda row: float(row["acc"]))
    views = {"yes": "augmented", "no": "not augmented"}.get(top["augmentation"], "augmentation unknown")
    return Cell(f"{float(top['acc']):.1f}", f"{top['method']}, {views}", {"": float(top["acc"])})


def _about(own: Sequence[Repetition]) -> list[Cell]:
    if not own:
        return [NONE, NONE, NONE]
    return [mean([one.acc.max() for one in own], 1), mean([one.acc.mean() for one in own], 1),
            number(sum(one.seconds for one in own) / len(own), 0)]


def _seeds(values: Sequence[float]) -> Cell:
    if not values:
        return NOT_YET
    cell = mean(values, 1)
    return Cell(cell.text, str(len(values)), cell.numbers)


def _devices(reader: StoreReader) -> str:
    groups = {group: run for study in STUDIES if study in reader.studies()
              for group, run in reader.finished(study, ("group",), ("run",))}
    named = sorted({str(reader.provenance(run).get("device") or "unknown") for run in groups.values()})
    return f" on {' or '.join(named)}" if named else ""
