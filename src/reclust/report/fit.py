"""The HTML report of a single fit: what it found, how sure one can be of it, and whether k-means would have done."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

import numpy as np
import torch

from .. import draws, metrics
from ..data import Dataset
from ..data.preparation import as_array, opened
from ..data.streams import dense_rows
from ..geometry import distance_ratio, extremes, squared_silhouette
from ..training.history import AFTER_RESET
from ..training.result import Model
from ..version import __version__
from . import cluster_parts as parts
from .findings import Facts, remarks
from .fitted_model import FittedModel
from .page import write
from .parts import confusion, contact_sheet, curve, records
from .versus_kmeans import CANNOT, Evidence, compare, exchanged

Plain = dict[str, Any]
LIMIT = 20_000
"""Samples that are looked at; sizes and scores are of all."""
NUMBERS = 10**8
"""Numbers of a table that are looked at for profiles, which sparse rows may have more of than there is memory."""
SHOWN = 8
"""Samples around a centre, and as many far from it."""


def write_fit_report(model: FittedModel, path: str | os.PathLike[str], X: Any, y: Any = None, *,
                     title: str | None = None) -> None:
    """The report of a fitted model as one HTML file. X: what it was fitted on; y: known classes, only scored."""
    title = title or f"{type(model).__name__} in {model.n_clusters_} clusters"
    write(path, title, fit_data(model, X, y, title=title), view="fit")


def fit_data(model: FittedModel, X: Any, y: Any = None, *, title: str) -> Plain:
    """All that the page shows, as dicts, lists, strings, numbers and arrays."""
    X = opened(X, model.preparation_.image_shape)
    names = X.feature_names if isinstance(X, Dataset) else None
    names = names or getattr(model, "feature_names_in_", None)
    seen = Seen.of(model, model.check_input(X), y)
    evidence = compare(model, seen.X, seen.rows)
    return {
        "title": title, "facts": _facts(seen), "remarks": [vars(one) for one in remarks(_remarkable(seen))],
        "verdict": _verdict(evidence), "clusters": _clusters(seen),
        "samples": _sheet(seen) if model.preparation_.image_shape else _profiles(seen, names),
        "map": _map(seen),
        "confidence": parts.histogram(seen.confidence), "ratio": None if seen.ratio is None else parts.histogram(seen.ratio),
        "looked_at": len(seen.rows) if len(seen.rows) < seen.X.shape[0] else None,
        "curves": _curves(seen), "replicas": _replicas(seen), "known": _known(seen),
        "settings": [*(records(model.preparation_.lens, "lens") if model.preparation_.image_shape else []),
                     *records(model.result_.settings[model.best_replica_])],
        "provenance": records({**model.result_.provenance, "seeds": model.result_.seeds,
                               "seconds": {name: round(took, 2) for name, took in model.result_.seconds.items()}}),
        "about": [("Written", datetime.now(timezone.utc).isoformat(timespec="seconds")), ("reclust", __version__)],
    }


@dataclass(frozen=True)
class Seen:
    """A model, the samples it was fitted on, and what it says of those looked at: rows (m,), z (m, d), confidence (m,)."""

    model: FittedModel
    X: Any
    classes: np.ndarray | None
    rows: np.ndarray
    z: np.ndarray
    confidence: np.ndarray

    @classmethod
    def of(cls, model: FittedModel, X: Any, y: Any) -> Seen:
        n = len(model.labels_)
        if X.shape[0] != n:
            raise ValueError(f"X has {X.shape[0]} samples, but the model was fitted on {n}: give it those, in the same order.")
        classes = None if y is None else np.asarray(as_array(y)).reshape(-1)
        if classes is not None and classes.dtype.kind == "O":  # of several kinds, perhaps, which have no order
            metrics.refuse_missing(classes)
            classes = classes.astype(str)
        if classes is not None and len(classes) != n:
            raise ValueError(f"y has {len(classes)} labels for {n} samples: give one for each.")
        rows = np.sort(draws.permutation(draws.fold(draws.key(0), "report"), n)[:LIMIT].numpy())
        other = int((model.map_samples(X[rows], Model.assign) != model.labels_[rows]).sum())
        if other:
            raise ValueError(f"{other} of {len(rows)} samples are in another cluster than when the model was fitted: give it "
                             "the samples that it was fitted on, in the same order.")
        return cls(model, X, classes, rows, model.map_samples(X[rows], lambda _, z: z), model.map_samples(X[rows], model.soft_labels).max(1))

    @property
    def labels(self) -> np.ndarray:
        """(m,)."""
        return self.model.labels_[self.rows]

    def names(self, rows: np.ndarray) -> list[str] | None:
        """What the samples of these rows are called, where they have names, such as those of files."""
        ids = self.model.ids_
        return None if ids is None else [str(ids[row]) for row in rows]

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.model.labels_, minlength=self.model.n_clusters_)

    @cached_property
    def ratio(self) -> np.ndarray | None:
        """Distance to the nearest centre over that to the next, (m,); None for a single cluster."""
        if self.model.n_clusters_ < 2:
            return None
        return distance_ratio(torch.from_numpy(self.z), torch.from_numpy(self.model.cluster_centers_)).numpy()

    @cached_property
    def labelings(self) -> dict[int, np.ndarray]:
        """Replica -> its labels of all samples; failed ones have none."""
        return {i: one.labels for i, one in enumerate(self.model.replicas_) if one.failed is None}

    @cached_property
    def between(self) -> np.ndarray:
        """NMI of each two living replicas, by the rows looked at."""
        return parts.pairwise([labels[self.rows] for labels in self.labelings.values()])

    @cached_property
    def agreement(self) -> np.ndarray | None:
        """The share of the other replicas that put a sample in the same cluster, (m,); None for one replica."""
        others = [labels[self.rows] for i, labels in self.labelings.items() if i != self.model.best_replica_]
        return parts.agreement(np.stack(others), self.labels) if others else None


def _facts(seen: Seen) -> list[tuple[str, str]]:
    model, result = seen.model, seen.model.result_
    epochs = " + ".join(str(result.trained_epochs(phase)) for phase in result.history)
    counts = (("sample", seen.X.shape[0]), ("cluster", model.n_clusters_), ("replica", len(model.replicas_)))
    return [*((f"{n:,}", name if n == 1 else f"{name}s") for name, n in counts), (epochs, "epochs"),
            (f"{sum(result.seconds.values()):.3g} s", "of computing")]


def _remarkable(seen: Seen) -> Facts:
    model = seen.model
    settings = model.result_.settings[model.best_replica_]
    assert settings.clustering is not None
    last = list(model.result_.history)[-1]  # clustering, or what went on from it
    pairs = parts.off_diagonal(seen.between)
    return Facts(
        asked=settings.n_clusters, sizes=seen.sizes, replicas=len(model.replicas_), failed=len(model.result_.failed),
        between=float(pairs.mean()) if len(pairs) else None, exchanged=exchanged(model),
        dimensions=parts.effective_dimensions(seen.z),
        ratio=None if seen.ratio is None else float(np.median(seen.ratio)), columns=model.history_[last],
        epochs=model.result_.trained_epochs(last), planned=settings.clustering.epochs,
        batch_size=settings.clustering.batch_size)


def _verdict(evidence: Evidence) -> Plain:
    kind, words = evidence.verdict
    return {"kind": kind, "words": words, "rows": evidence.rows(), "cannot": CANNOT}


def _clusters(seen: Seen) -> list[Plain]:
    k, labels = seen.model.n_clusters_, seen.labels
    silhouette = squared_silhouette(torch.from_numpy(seen.z), torch.from_numpy(labels.astype(np.int64))).numpy()
    columns: dict[str, np.ndarray | None] = {"confidence": seen.confidence, "ratio": seen.ratio, "silhouette": silhouette,
                                             "agreement": seen.agreement}
    means = {name: [None] * k if values is None else parts.mean_per_cluster(values, labels, k)
             for name, values in columns.items()}
    return [{"cluster": i, "size": seen.sizes[i], **{name: each[i] for name, each in means.items()}} for i in range(k)]


def _map(seen: Seen) -> Plain:
    classes = None if seen.classes is None else seen.classes[seen.rows]
    made = parts.embedding_map(seen.z, seen.model.cluster_centers_, seen.labels, seen.rows, classes=classes)
    return made | {"names": seen.names(made["rows"])}


def _around(seen: Seen) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of the samples nearest to their centre and farthest from it, (k, SHOWN) each; -1 where there is none."""
    found = extremes(torch.from_numpy(seen.z), torch.from_numpy(seen.labels.astype(np.int64)),
                     torch.from_numpy(seen.model.cluster_centers_), count=SHOWN)
    near, far = (np.where(rows < 0, -1, seen.rows[rows]) for rows in (one.numpy() for one in found))
    return near, far


def _sheet(seen: Seen) -> Plain | str:
    preparation = seen.model.preparation_
    assert preparation.image_shape is not None
    height, width, channels = preparation.image_shape
    if channels not in (1, 3):
        return f"Images of {channels} channels cannot be shown: 1 or 3 can."
    shown = np.concatenate(_around(seen), axis=1)
    images = dense_rows(seen.X, np.maximum(shown, 0).reshape(-1)).reshape(*shown.shape, height, width, channels)
    made = contact_sheet(preparation.first(images), shown, seen.model.labels_, classes=seen.classes)
    for cluster in made["clusters"]:
        cluster["names"] = seen.names(cluster["samples"])
    return {"kind": "sheet", "nearest": SHOWN, **made}


def _profiles(seen: Seen, names: Any) -> Plain:
    features = seen.X.shape[1]
    some = slice(None, None, -(-len(seen.rows) * features // NUMBERS))
    titles = [f"feature {i}" for i in range(features)] if names is None else names
    return {"kind": "profiles", "clusters": parts.profiles(
        dense_rows(seen.X, seen.rows[some]), seen.labels[some], seen.model.n_clusters_, titles)}


def _curves(seen: Seen) -> Plain:
    """phase.column -> the line of the kept replica, and the mean over all where there are several; where resets were."""
    result, kept = seen.model.result_, seen.model.best_replica_
    lines, resets = {}, []
    for phase, columns in result.history.items():
        flat = {name: one for name, one in columns.items() if one.values.ndim == 2}
        own = {name: type(one)(one.epochs, one.values[:, [kept]]) for name, one in flat.items()}
        for name in flat:
            if name != "fired" and not name.endswith(AFTER_RESET) and (line := curve(own, name)) is not None:
                lines[f"{phase}.{name}"] = {"kept": line, "all": curve(flat, name) if len(result) > 1 else None}
        if "fired" in own:
            resets = own["fired"].epochs[np.nan_to_num(own["fired"].values).any(axis=1)].tolist()
    return {"lines": lines, "resets": resets}


def _replicas(seen: Seen) -> Plain:
    model, places = seen.model, list(seen.labelings)
    rows = [{"replica": i, "seed": one.seed, "score": one.score, "kept": i == model.best_replica_,
             "failed": None if one.failed is None else f"{one.failed[0]}, epoch {one.failed[1]}",
             "nmi": None if one.failed is not None else seen.between[places.index(i), places.index(model.best_replica_)],
             "accuracy": None if seen.classes is None or one.failed is not None else metrics.accuracy(seen.classes, one.labels)}
            for i, one in enumerate(model.replicas_)]
    return {"rows": rows, "between": seen.between, "places": places, "exchanged": exchanged(model),
            "agreement": None if seen.agreement is None else parts.histogram(seen.agreement, bins=10)}


def _known(seen: Seen) -> Plain | None:
    if seen.classes is None:
        return None
    deep, plain = seen.model.labels_, seen.model.baseline_.labels_
    return {"deep": metrics.scores(seen.classes, deep), "plain": metrics.scores(seen.classes, plain),
            "confusion": confusion(seen.classes, deep)}
