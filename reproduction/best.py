"""The best preset beside shallow baselines, the paper's best and the field's best."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from reclust.studies import published
from reclust.studies.baselines import EncodedKMeans, PixelKMeans
from reclust.studies.store.reader import StoreReader
from reclust.studies.tables import labels
from reclust.studies.tables.scores import BASELINES
from reclust.studies.tables.selection import DEFAULT_SCORE, Repetition, mean, repetitions
from reclust.studies.tables.table import Cell, Row, Table, number, plus_minus

from .baselines import COLOUR_BASELINES, UmapMixture
from .cells import MAIN, PARTIAL


@dataclass(frozen=True)
class Line:
    """A row: a data set, the study and variant of the preset, and the study of its baselines."""

    dataset: str
    study: str = "best"
    baselines: str = BASELINES
    variant: str = "split and merge"


LINES = (Line("optdigits"), Line("usps"),
         Line("mnist", "best-of-many-samples", variant="more motion"),
         Line("fmnist", "best-of-many-samples", variant="more motion"),
         Line("kmnist_test"), Line("gtsrb"), Line("gtsrb", "best-of-colours", COLOUR_BASELINES),
         Line("digits", "best-of-few-samples"), Line("digits", "best-of-small-images"))
STUDIES = tuple(dict.fromkeys(line.study for line in LINES))
PUBLISHED = ("best", "best-of-many-samples", "best-of-few-samples")
"""Studies whose samples are prepared as published; no data set is in two of them."""
PREPARED = {"best-of-colours": " without light", "best-of-small-images": ", enlarged"}
"""Suffixes for data sets that other studies prepare differently."""
SHALLOW = (PixelKMeans.algorithm, UmapMixture.algorithm, EncodedKMeans.algorithm)
SCORE_NAME = labels.measure(DEFAULT_SCORE)
NOT_RUN, NONE = Cell("not run"), Cell("–")


def best_table(reader: StoreReader) -> Table:
    """Tabulate accuracies in percent; the highest of each row is bold."""
    shallow = {name: baselines(reader, name)
               for name in dict.fromkeys(line.baselines for line in LINES)}
    rows = []
    for line in LINES:
        own = [one for one in all_repetitions(reader, line.study)
               if (one.dataset, one.variant) == (line.dataset, line.variant)]
        cells = [*(_seeds(shallow[line.baselines].get((method, line.dataset), ()))
                   for method in SHALLOW),
                 papers_best(line.dataset), fields_best(line.dataset),
                 _seeds([one.kept() for one in own])]
        highest = max((float(cell.numbers[""]) for cell in cells if cell.numbers), default=math.nan)
        shown = [replace(cell, best=cell.numbers.get("") == highest) for cell in cells]
        rows.append(Row(labels.dataset(line.dataset) + PREPARED.get(line.study, ""),
                        (*shown, *_replicas(own))))
    return Table(
        'preset="best" beside others, ACC',
        ("", *SHALLOW, "the paper's best", "the field's best", "ours", "best replica",
         "mean replica", "seconds"), (tuple(rows),),
        "Percent, mean ± standard error; in parentheses the number of seeds, or of repetitions for "
        f"ours. A repetition trains twenty replicas and selects one by {SCORE_NAME}, without "
        "labels; the next columns show the best and the mean replica, and the seconds of a "
        f"repetition{_devices(reader)}. Baselines see the same samples as the networks, resized "
        "and scaled as published (digits, enlarged: as estimators prepare them). The autoencoder "
        "is that of the pretrained runs of the main table, or one trained in the same way. "
        "Published numbers have other protocols, and those of KMNIST are for all 70,000 images.")


def baselines(reader: StoreReader, study: str) -> dict[tuple[str, str], list[float]]:
    """Map (method, data set) to accuracies in percent by seed.

    Without runs of its own, the autoencoder is scored at the start of the main table's pretrained
    runs, which have the same encoders.
    """
    found: dict[tuple[str, str], list[float]] = {}
    if study == BASELINES and MAIN in reader.studies():
        runs, curves = reader.runs(MAIN), reader.curves(MAIN, ["accuracy"])
        starts = runs[runs["pretrained"]].merge(curves[curves["epoch"] == -1], on="run")
        starts = starts.dropna(subset=["accuracy"]).drop_duplicates(["dataset", "seed"])
        for dataset, own in starts.groupby("dataset"):
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
    """Return the paper's highest mean on a data set."""
    whole = PARTIAL.get(dataset, dataset)
    own = {key: one for key, one in published.paper().items()
           if key[1] == whole and key[5] == "acc" and not key[0].endswith(published.BEST)}
    if not own:
        return NONE
    key = max(own, key=lambda key: own[key].mean)
    _, _, pretrained, algorithm, variant, _ = key
    top = own[key]
    return Cell(plus_minus(top.mean, math.nan if top.stderr is None else top.stderr, 1),
                labels.method(algorithm, variant, pretrained=pretrained == "yes"), {"": top.mean})


@lru_cache(maxsize=1)
def field() -> list[dict[str, str]]:
    """Best results of others: dataset, method, acc, augmentation, trained_from_scratch, note."""
    text = Path(__file__).with_name("field.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def fields_best(dataset: str) -> Cell:
    own = [row for row in field() if row["dataset"] == PARTIAL.get(dataset, dataset)]
    if not own:
        return NONE
    top = max(own, key=lambda row: float(row["acc"]))
    augmented = {"yes": "augmented", "no": "not augmented"}
    views = augmented.get(top["augmentation"], "augmentation unknown")
    return Cell(f"{float(top['acc']):.1f}", f"{top['method']}, {views}", {"": float(top["acc"])})


def _replicas(own: Sequence[Repetition]) -> list[Cell]:
    if not own:
        return [NONE, NONE, NONE]
    return [mean([one.acc.max() for one in own], 1), mean([one.acc.mean() for one in own], 1),
            number(sum(one.seconds for one in own) / len(own), 0)]


def _seeds(values: Sequence[float]) -> Cell:
    return replace(mean(values, 1), aside=str(len(values))) if values else NOT_RUN


def _devices(reader: StoreReader) -> str:
    groups = {group: run for study in STUDIES if study in reader.studies()
              for group, run in reader.finished(study, ("group",), ("run",))}
    found = sorted({str(reader.provenance(run).get("device") or "unknown")
                    for run in groups.values()})
    return f" on {' or '.join(found)}" if found else ""
