"""Which runs of the paper's studies the records have, and where they were made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from reclust.studies.catalog import named, names
from reclust.studies.published import FORMS
from reclust.studies.store.reader import CELL, StoreReader
from reclust.studies.study import Study
from reclust.studies.tables import labels
from reclust.studies.tables.scores import BASELINES
from reclust.studies.tables.table import Cell, Row, Table
from reclust.utils.values import to_json

from .baselines import COLOUR_BASELINES
from .cells import MAIN, OTHER_SEEDS, PARTIAL

CONTRASTIVE = ("contrastive", "self-labeling", "resnet-blocks")
ABLATIONS = (
    "without-augmentation", "reclustering-methods", "native-reclustering", "embedding-reset",
    "momentum-reset", "soft-reset-components", "noise-and-disentangled", "reset-and-centers",
    "dcn-counts", "dcn-readings", "dcn-in-float32", "dec-in-float32", "idec-in-float32",
    "idec-weights", OTHER_SEEDS, "sensitivity", "subsample-size", "runtime")
FOR_FIGURES = ("training-curves", "embeddings", "voronoi")
BEYOND = ("best", "best-of-many-samples", "best-of-few-samples", "best-of-small-images",
          "best-of-colours", "best-variations")
STUDIES = (MAIN, *ABLATIONS, *FOR_FIGURES, *CONTRASTIVE, *BEYOND)
"""Studies on the pages, in their order."""
ALL_BASELINES = (BASELINES, COLOUR_BASELINES)
PART_OF = {whole: part for part, whole in PARTIAL.items()}


def catalog_study(reader: StoreReader, name: str) -> str | None:
    """Return the catalog's study that a stored one is or is a part of; None for custom ones.

    Parts are named after it and its form, such as acc-table-kmnist and acc-table-program-kmnist.
    """
    if name in ALL_BASELINES:
        return name
    known = None if name.endswith("-mini") else max(
        (one for plain in names() for one in (plain, *(plain + form for form in FORMS))
         if name == one or name.startswith(one + "-")), key=len, default=None)
    if known is not None:
        ours, theirs = named(known), reader.spec(name)
        variants = [to_json(variant) for variant in ours.variants]
        if to_json(theirs.protocol) != to_json(ours.protocol) \
                or any(to_json(one) not in variants for one in theirs.variants):
            raise ValueError(f"{name!r} in {reader.path} has another protocol or other variants "
                             f"than {known}: give it a name that does not begin with {known}.")
    return known


@dataclass(frozen=True)
class Coverage:
    """Finished and planned runs of a study by data set."""

    study: Study
    sets: dict[str, tuple[int, int]]

    @property
    def finished(self) -> int:
        return sum(finished for finished, _ in self.sets.values())

    @property
    def planned(self) -> int:
        return sum(planned for _, planned in self.sets.values())

    @property
    def missing(self) -> list[str]:
        return [name for name, (finished, planned) in self.sets.items() if finished < planned]


def coverage(reader: StoreReader, name: str) -> Coverage:
    """Count the runs of a study of the catalog, those of KMNIST by its test part."""
    study = named(name)
    found = {(dataset, algorithm, bool(pretrained), variant, seed)
             for dataset, algorithm, pretrained, variant, seed in (
                 reader.finished(name, (*CELL, "seed"), ()) if name in reader.studies() else ())}
    sets: dict[str, tuple[int, int]] = {}
    for whole, *cell in product(study.datasets, study.algorithms, study.pretrained,
                                (variant.name for variant in study.variants), study.seeds):
        dataset = PART_OF.get(whole, whole)
        finished, planned = sets.get(dataset, (0, 0))
        sets[dataset] = finished + ((dataset, *cell) in found), planned + 1
    return Coverage(study, sets)


def coverage_table(reader: StoreReader) -> Table:
    rows = []
    for name in STUDIES:
        own = coverage(reader, name)
        done = [labels.dataset(one) for one in own.sets if one not in own.missing]
        left = []
        for one in own.missing:
            finished, planned = own.sets[one]
            left.append(labels.dataset(one) + (f" ({finished} of {planned})" if finished else ""))
        rows.append(Row(name, (
            Cell(f"{own.finished} of {own.planned}", numbers={"": float(own.finished)}),
            Cell(", ".join(done) or "–"), Cell(", ".join(left) or "–", best=bool(left)),
            Cell(own.study.about))))
    return Table("Records", ("study", "runs", "complete", "still missing", "what it is"),
                 (tuple(rows),))


def provenance_table(reader: StoreReader) -> Table:
    """Tabulate device, precision, commit, versions and time of every study and data set."""
    rows = [Row(f"{study}, {labels.dataset(dataset)}", tuple(map(Cell, cells)))
            for study in (*STUDIES, *ALL_BASELINES) if study in reader.studies()
            for dataset, *cells in _sources(reader, study)]
    return Table("Provenance", ("study", "runs", "seeds", "device", "precision", "commit", "torch",
                                "seconds", "finished"), (tuple(rows),),
                 "Seconds: of all these runs together, with pretraining, trained in stacks. "
                 "Precision auto, in older records, was bf16 on GPUs.")


def _sources(reader: StoreReader, study: str) -> Iterator[tuple[str, ...]]:
    frame = reader.runs(study)
    frame = frame[frame["state"] == "finished"]
    kinds = {}
    for group, run in frame.drop_duplicates("group")[["group", "run"]].itertuples(index=False):
        provenance = reader.provenance(run)
        kinds[group] = tuple(str(provenance.get(name) or "?")
                             for name in ("device", "precision", "commit", "torch"))
    frame = frame.assign(kind=[kinds[group] for group in frame["group"]])
    for (dataset, kind), own in frame.groupby(["dataset", "kind"], sort=True):
        device, precision, commit, torch = kind
        days = sorted({moment[:10] for moment in own["finished_at"]})
        yield (dataset, str(len(own)), str(own["seed"].nunique()), device, precision,
               commit[:10] + ("-dirty" if commit.endswith("-dirty") else ""), torch,
               f"{own['seconds'].sum():,.0f}",
               days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}")
