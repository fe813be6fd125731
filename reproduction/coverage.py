"""What the records hold of the paper's studies, what is missing, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from reclust.studies.catalog import named, names
from reclust.studies.store.reader import StoreReader
from reclust.studies.study import Study
from reclust.studies.tables import labels
from reclust.studies.tables.scores import BASELINES, COLOUR_BASELINES
from reclust.studies.tables.table import Cell, Row, Table
from reclust.utils.values import to_json

from .cells import APART, MAIN, OTHER_SEEDS

CONTRASTIVE = ("contrastive", "self-labeling", "resnet-blocks")
ABLATIONS = ("without-augmentation", "reclustering-methods", "native-reclustering", "embedding-reset", "momentum-reset",
             "soft-reset-components", "noise-and-disentangled", "reset-and-centers", "dcn-counts", "dcn-readings",
             "dcn-in-float32", "dec-in-float32", "idec-in-float32", "idec-weights", OTHER_SEEDS, "sensitivity",
             "subsample-size", "runtime")
FOR_FIGURES = ("training-curves", "embeddings", "voronoi")
BEYOND = ("best", "best-of-many-samples", "best-of-few-samples", "best-of-small-images", "best-of-colours",
          "best-variations")
STUDIES = (MAIN, *ABLATIONS, *FOR_FIGURES, *CONTRASTIVE, *BEYOND)
"""Those that the page speaks of, in its order."""
ALL_BASELINES = (BASELINES, COLOUR_BASELINES)
_WHOLE = {whole: part for part, whole in APART.items()}


def study_of(reader: StoreReader, name: str) -> str | None:
    """The study of the catalog that a stored one is, or is a part of by its name as acc-table-kmnist is of acc-table; None for
    small forms and for studies of one's own; the baselines stay what they are. A part that differs in more
    than what it leaves out is refused."""
    if name in ALL_BASELINES:
        return name
    known = None if name.endswith("-mini") else max(
        (one for one in names() if name == one or name.startswith(one + "-")), key=len, default=None)
    if known is not None:
        ours, theirs = named(known), reader.spec(name)
        variants = [to_json(variant) for variant in ours.variants]
        if to_json(theirs.protocol) != to_json(ours.protocol) or any(to_json(one) not in variants for one in theirs.variants):
            raise ValueError(f"{reader.path} has a study {name!r} with another protocol or other variants than {known}: give "
                             f"it a name that does not begin with {known}, or leave it out of the records.")
    return known


@dataclass(frozen=True)
class Covered:
    """How much of a study there is; runs are cells × seeds. sets: data set -> finished and planned runs."""

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
        return [dataset for dataset, (finished, planned) in self.sets.items() if finished < planned]


def covered(reader: StoreReader, name: str) -> Covered:
    """Against the catalog, not against what somebody planned; KMNIST by its test images."""
    study = named(name)
    wanted = {cell: _WHOLE.get(cell[0], cell[0]) for cell in product(
        study.datasets, study.algorithms, study.pretrained, (variant.name for variant in study.variants), study.seeds)}
    found = {(dataset, algorithm, bool(pretrained), variant, seed) for dataset, algorithm, pretrained, variant, seed in (
        reader.finished(name, ("dataset", "algorithm", "pretrained", "variant", "seed"), ())
        if name in reader.studies() else ())}
    sets: dict[str, tuple[int, int]] = {}
    for cell, dataset in wanted.items():
        finished, planned = sets.get(dataset, (0, 0))
        sets[dataset] = finished + ((dataset, *cell[1:]) in found), planned + 1
    return Covered(study, sets)


def coverage_table(reader: StoreReader) -> Table:
    rows = []
    for name in STUDIES:
        own = covered(reader, name)
        done = ", ".join(labels.dataset(one) for one in own.sets if one not in own.missing)
        left = ", ".join(f"{labels.dataset(one)} ({own.sets[one][0]} of {own.sets[one][1]})" if own.sets[one][0]
                         else labels.dataset(one) for one in own.missing)
        rows.append(Row(name, (Cell(f"{own.finished} of {own.planned}", numbers={"": float(own.finished)}),
                               Cell(done or "–"), Cell(left or "–", best=bool(left)), Cell(own.study.about))))
    return Table("Records", ("study", "runs", "complete", "still missing", "what it is"), (tuple(rows),))


def provenance_table(reader: StoreReader) -> Table:
    """One row for each study, data set and kind of run: device, precision, commit, versions, time."""
    rows = []
    for study in (*STUDIES, *ALL_BASELINES):
        if study in reader.studies():
            rows += [Row(f"{study}, {labels.dataset(dataset)}", tuple(map(Cell, cells)))
                     for dataset, *cells in _sources(reader, study)]
    return Table("Provenance", ("study", "runs", "seeds", "device", "precision", "commit", "torch", "seconds", "finished"),
                 (tuple(rows),), "Seconds: of all these runs together, pretraining included, trained in stacks. "
                 "Precision: auto, which older records say, was bf16 on GPUs.")


def _sources(reader: StoreReader, study: str) -> Iterator[tuple[str, ...]]:
    frame = reader.runs(study)
    frame = frame[frame["state"] == "finished"]
    kinds = {run: reader.provenance(run) for run in frame.drop_duplicates("group")["run"]}
    of_group = {group: tuple(str(kinds[run].get(name) or "?") for name in ("device", "precision", "commit", "torch"))
                for group, run in frame.drop_duplicates("group")[["group", "run"]].itertuples(index=False)}
    frame = frame.assign(kind=[of_group[group] for group in frame["group"]])
    for (dataset, kind), own in frame.groupby(["dataset", "kind"], sort=True):
        device, precision, commit, torch = kind
        days = sorted({moment[:10] for moment in own["finished_at"]})
        yield (dataset, str(len(own)), str(own["seed"].nunique()), device, precision,
               commit[:10] + ("-dirty" if commit.endswith("-dirty") else ""), torch, f"{own['seconds'].sum():,.0f}",
               days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}")
