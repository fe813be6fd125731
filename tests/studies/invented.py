"""Whole studies with invented numbers, for tests of what is made from records: scores around the paper's, curves that jump at
resets."""

from dataclasses import replace

import numpy as np

from reclust.studies import Outcome, PlannedRun, named, published
from reclust.training.history import Curve

EPOCHS, RESETS = 400, tuple(range(20, 400, 20))
LEVELS = {"accuracy": 0.8, "nmi": 0.7, "ari": 0.6, "label_change": 2.0, "intra_class_distance": 0.3, "inter_class_distance": 0.6,
          "silhouette": 0.4, "silhouette_predicted": 0.6, "reconstruction_loss": 0.5, "embedding_norm": 5.0, "center_norm": 4.0,
          "gradient_norm": 3.0}
RESULT_ONLY = ("sensitivity", "reclustering-methods", "subsample-size", "runtime", "embedding-reset", "momentum-reset",
               "native-reclustering")
KMNIST = {"kmnist": "kmnist_test"}


def fill(store, name, *, seeds=10, sets=None, score=None, commit="0" * 40, study=None):
    """A study of the catalog with all its runs finished. score: (cell as a dict, seed's number) -> acc in percent, else the
    paper's. sets: only these. study: the name in the store."""
    spec = named(name)
    chosen = [KMNIST.get(dataset, dataset) for dataset in spec.datasets if sets is None or KMNIST.get(dataset, dataset) in sets]
    rng, groups = np.random.default_rng(len(name)), []
    for dataset in chosen:
        for algorithm in spec.algorithms:
            for pretrained in spec.pretrained:
                groups.append((f"{study or name}/{dataset}/{algorithm}/{pretrained}", dataset, algorithm, pretrained))
    used = spec.seeds[:seeds]
    plans = {key: [PlannedRun(f"{key}/{variant.name}/{seed}", key, dataset, algorithm, variant.name, pretrained, seed,
                              variant.factors) for variant in spec.variants for seed in used]
             for key, dataset, algorithm, pretrained in groups}
    store.plan(study or name, spec, [run for runs in plans.values() for run in runs])
    for key, dataset, algorithm, pretrained in groups:
        runs = plans[key]
        base = spec.protocol.settings(dataset, algorithm, pretrained=pretrained)
        numbers = {measure: np.array([
            (score or paper)({**vars(run), "metric": measure, "study": name}, rng) for run in runs]) / 100
            for measure in ("acc", "nmi", "ari")}
        store.add(Outcome(
            group=key, runs=[run.key for run in runs],
            settings=[replace(base, intervention=variant.intervention) for variant in spec.variants for _ in used],
            scores=numbers, history={"clustering": curves(name, runs, numbers["acc"], rng)},
            arrays={"labels": rng.integers(0, 10, (len(runs), 300)), "centers": rng.normal(size=(len(runs), 10, 10)),
                    **({"shown_classes": np.tile(np.arange(100) % 4, (len(runs), 1))} if "embeddings" in spec.measures else {})},
            seconds={"clustering.training": 40.0, "clustering.clustering": 1.0, "clustering.reset": 0.1,
                     "clustering.embedding": 0.2, "clustering.momentum": 0.01},
            provenance={"commit": commit, "device": "invented", "precision": "float32", "torch": "2.0", "reclust": "0.1.0"}))


def paper(cell, rng):
    known = {**cell, "dataset": {"kmnist_test": "kmnist"}.get(cell["dataset"], cell["dataset"])}
    found = published.find(cell["study"], known, cell["metric"])
    return (70.0 if found is None else found.mean) + 0.5 * rng.normal()


def curves(name, runs, final, rng):
    """Column -> Curve, values (m, r)."""
    count, resets = len(runs), np.array([run.variant not in ("none", "recluster") for run in runs])
    epochs = np.array(sorted({-1, EPOCHS - 1, *range(9, EPOCHS, 10), *RESETS, *(e - 1 for e in RESETS)}))
    fired = np.array(RESETS)
    made = {"fired": Curve(fired, np.broadcast_to([run.variant != "none" for run in runs], (len(fired), count)).astype(float))}
    if name in RESULT_ONLY:
        return made
    at_reset, shift = np.isin(epochs, fired)[:, None] & resets, resets * 0.1
    for column, level in LEVELS.items():
        values = level * (1 + 0.2 * np.log1p(epochs + 1)[:, None] / 6 + shift + 0.02 * rng.normal(size=(len(epochs), count)))
        if column == "accuracy":
            values = final * (0.7 + 0.3 * (epochs[:, None] + 1) / EPOCHS) + 0.01 * rng.normal(size=values.shape)
        elif column in ("label_change", "reconstruction_loss", "intra_class_distance"):
            values = values + level * at_reset * 0.5
        made[column] = Curve(epochs, values)
        made[f"{column}_after_reset"] = Curve(fired, values[np.isin(epochs, fired)] * (1 + 0.3 * resets))
    spec = named(name)
    if "ratios" in spec.measures:
        counts = rng.multinomial(300, np.linspace(1, 2, 20) / 30, (len(epochs), count)).astype(float)
        made["distance_ratio_histogram"] = Curve(epochs, counts)
        made["distance_ratio_histogram_after_reset"] = Curve(fired, counts[np.isin(epochs, fired)] + 5 * np.arange(20))
    if "embeddings" in spec.measures:
        width = 2 if name == "voronoi" else 10
        middle = 3 * rng.normal(size=(4, width))
        for ending, when in (("", epochs), ("_after_reset", fired)):
            made["embedding" + ending] = Curve(when, middle[np.arange(100) % 4] + rng.normal(size=(len(when), count, 100, width)))
            made["centers" + ending] = Curve(when, np.broadcast_to(middle, (len(when), count, 4, width)).astype(float))
    return made
