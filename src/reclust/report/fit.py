"""HTML report of a single fit: its clusters, how far to trust them, and k-means beside it."""

import os
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_consistent_length

from .. import draws, metrics
from ..data.accept import SampleSet, as_array
from ..data.dataset import as_text, dense_rows
from ..geometry import distance_ratio, extremes, squared_silhouette
from ..training.history import AFTER_RESET
from ..training.result import Model
from ..utils.progress import duration
from ..utils.version import __version__
from . import parts
from .describe import describe
from .findings import findings
from .page import write
from .versus_kmeans import CAVEAT, FittedModel, compare, exchanged

Plain = dict[str, Any]
MAX_SAMPLES = 20_000  # used for everything but sizes and scores
MAX_NUMBERS = 10**8  # table cells used for profiles: sparse rows may not fit into memory
DESCRIBED = ("cluster", "size", "description", "coverage", "precision", "typical", "doubtful")
IN_WORDS = "Words and typical texts are in the first table."
LIGHT = ("Only the shares of the colors of a pixel were compared, which Reclust does where the "
         "brightness of images varies a lot. To keep it: IDEC(lens=None), or --light kept.")
SHOWN = 8  # samples shown near each center, and far from it


def write_fit_report(model: FittedModel, path: str | os.PathLike[str], X: Any, y: Any = None, *,
                     title: str | None = None) -> None:
    """Write the report of a model fitted on X; y are true classes, used only for scoring."""
    title = title or f"{type(model).__name__} in {model.n_clusters_} clusters"
    write(path, title, fit_data(model, X, y, title=title), view="fit")


def fit_data(model: FittedModel, X: Any, y: Any = None, *, title: str) -> Plain:
    samples = model.check_input(X)
    names = samples.feature_names or getattr(model, "feature_names_in_", None)
    fit = FitSample.draw(model, samples, y)
    comparison, result = compare(model, fit.X, fit.rows), model.result_
    kind, words = comparison.verdict
    images = model.preparation_.image_shape is not None
    seconds = {phase: duration(spent) for phase, spent in result.seconds.items()}
    suggestion = getattr(model, "suggestion_", None)
    provenance = result.provenance | {"seeds": result.seeds, "seconds": seconds}
    return {
        "title": title, "facts": _facts(fit), "findings": _findings(fit),
        "described": [{name: entry[name] for name in DESCRIBED}
                      for entry in describe(model, samples)],
        "verdict": {"kind": kind, "words": words, "rows": comparison.rows(), "caveat": CAVEAT},
        "number": None if suggestion is None else {
            "ks": suggestion.ks, "agreement": suggestion.agreement, "chance": suggestion.chance,
            "k": suggestion.k, "words": suggestion.answer}, "tree": _tree(model),
        "clusters": _clusters(fit), "samples": _sheet(fit) if images
        else IN_WORDS if samples.texts else _profiles(fit, names),
        "map": _map(fit), "confidence": parts.histogram(fit.confidence),
        "ratio": None if fit.ratio is None else parts.histogram(fit.ratio),
        "used": len(fit.rows) if len(fit.rows) < fit.X.shape[0] else None,
        "curves": _curves(fit), "replicas": _replicas(fit),
        "known": None if fit.classes is None else _known(fit.classes, model),
        "settings": [*(parts.records(model.preparation_.lens, "lens") if images else []),
                     *parts.records(result.settings[model.best_replica_])],
        "provenance": parts.records(provenance), "about": [
            ("Written", datetime.now(timezone.utc).isoformat(timespec="seconds")),
            ("reclust", __version__)]}


@dataclass(frozen=True)
class FitSample:
    """A fitted model, its data, and a random sample of m rows with their embeddings (m, d)."""

    model: FittedModel
    X: Any
    classes: np.ndarray | None
    rows: np.ndarray
    z: np.ndarray
    confidence: np.ndarray
    names: np.ndarray | None

    @classmethod
    def draw(cls, model: FittedModel, samples: SampleSet, y: Any) -> "FitSample":
        X, n = samples.array, len(model.labels_)
        used = np.flatnonzero(model.candidates_[0].labels >= 0)
        key = draws.fold(draws.key(0), "report")
        rows = used[draws.subset(key, len(used), MAX_SAMPLES).numpy()]
        if X.shape[0] != n or (
                model.map_samples(X[rows], Model.assign) != model.labels_[rows]).any():
            raise ValueError(f"A report needs the {n} samples that the model was fitted on, in the "
                             f"same order; got {X.shape[0]} samples or other ones.")
        classes = None if y is None else np.asarray(as_array(y)).reshape(-1)
        check_consistent_length(model.labels_, classes)
        if classes is not None and classes.dtype.kind == "O":  # mixed types cannot be sorted
            metrics.refuse_missing(classes)
            classes = as_text(classes)
        confidence = model.map_samples(X[rows], model.soft_labels).max(1)
        return cls(model, X, classes, rows, model.map_samples(X[rows], lambda _, z: z), confidence,
                   samples.ids if samples.texts else model.ids_)

    @property
    def labels(self) -> np.ndarray:
        return self.model.labels_[self.rows].astype(np.int64)

    def ids(self, rows: np.ndarray) -> list[str] | None:
        return None if self.names is None else list(map(str, self.names[rows]))

    @cached_property
    def centers(self) -> np.ndarray:
        """Return the centers (k, d); means for an ensemble, whose network has only prototypes."""
        centers = self.model.cluster_centers_
        if self.model.kept is not None:
            return centers
        return np.stack([self.z[self.labels == cluster].mean(0) for cluster in range(len(centers))])

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.model.labels_, minlength=self.model.n_clusters_)

    @cached_property
    def ratio(self) -> np.ndarray | None:
        """Distance to the nearest center over that to the next, (m,); None if it means little."""
        if self.model.n_clusters_ < 2 or self.model.kept is None:
            return None
        centers = torch.from_numpy(self.model.cluster_centers_)
        return distance_ratio(torch.from_numpy(self.z), centers).numpy()

    @cached_property
    def labelings(self) -> dict[int, np.ndarray]:
        return {i: replica.labels[self.rows] for i, replica in enumerate(self.model.candidates_)
                if replica.failed is None}

    @cached_property
    def nmi(self) -> np.ndarray:
        labelings = self.labelings.values()
        return np.array([[metrics.nmi(a, b) for b in labelings] for a in labelings])

    @cached_property
    def agreement(self) -> np.ndarray | None:
        """Share of the other replicas that agree on each sample, (m,); None for one replica."""
        agree = [metrics.matched(labels, self.labels) == self.labels
                 for i, labels in self.labelings.items() if i != self.model.kept]
        return np.mean(agree, axis=0) if agree else None


def _facts(fit: FitSample) -> list[tuple[str, str]]:
    model, result = fit.model, fit.model.result_
    epochs = " + ".join(str(result.trained_epochs(phase)) for phase in result.history)
    counts = (("sample", fit.X.shape[0]), ("cluster", model.n_clusters_),
              (model.candidate_name, len(model.candidates_)))
    return [*((f"{n:,}", name + "s" * (n != 1)) for name, n in counts), (epochs, "epochs"),
            (duration(sum(result.seconds.values())), "training time")]


def _findings(fit: FitSample) -> list[dict[str, str]]:
    model, result = fit.model, fit.model.result_
    settings, last = result.settings[model.best_replica_], list(result.history)[-1]
    assert settings.clustering is not None
    ensemble = model.kept is None  # its network learns from labels
    pairs = fit.nmi[np.tril_indices(len(fit.nmi), -1)]
    told = [{"level": "warning", "title": "Warning of the fit", "text": text}
            for text in model.warnings_]
    if model.preparation_.lens.light == "removed":
        told.append({"level": "note", "title": "Brightness was removed", "text": LIGHT})
    return told + findings(
        sizes=fit.sizes, nmi=float(pairs.mean()) if len(pairs) else None,
        dimensions=parts.effective_dimensions(fit.z),
        ratio=None if fit.ratio is None else float(np.median(fit.ratio)),
        label_change=model.history_[last].get("label_change"), epochs=result.trained_epochs(last),
        batch_size=None if ensemble else settings.clustering.batch_size, noun=model.candidate_name)


def _clusters(fit: FitSample) -> list[Plain]:
    silhouette = squared_silhouette(torch.from_numpy(fit.z), torch.from_numpy(fit.labels)).numpy()
    columns = {"confidence": fit.confidence, "ratio": fit.ratio, "silhouette": silhouette,
               "agreement": fit.agreement}
    rows = []
    for cluster, size in enumerate(fit.sizes):
        members = fit.labels == cluster
        means = {name: None if values is None or not members.any() else values[members].mean()
                 for name, values in columns.items()}
        rows.append({"cluster": cluster, "size": size, **means})
    return rows


def _map(fit: FitSample) -> Plain:
    scene = parts.embedding_map(fit.z, fit.centers, fit.labels, fit.rows,
                                classes=None if fit.classes is None else fit.classes[fit.rows])
    return scene | {"names": fit.ids(scene["rows"])}


def _sheet(fit: FitSample) -> Plain | str:
    preparation = fit.model.preparation_
    assert preparation.image_shape is not None
    height, width, channels = preparation.image_shape
    if channels not in (1, 3):
        return f"Images with {channels} channels cannot be shown, only with 1 or 3."
    z, labels = torch.from_numpy(fit.z), torch.from_numpy(fit.labels)
    rows = torch.cat(extremes(z, labels, torch.from_numpy(fit.centers), count=SHOWN), 1).numpy()
    shown = np.where(rows < 0, -1, fit.rows[rows])
    images = dense_rows(fit.X, np.maximum(shown, 0).reshape(-1))
    images = preparation.first(images.reshape(*shown.shape, height, width, channels))
    sheet = parts.contact_sheet(images, shown, fit.model.labels_, classes=fit.classes)
    for cluster in sheet["clusters"]:
        cluster["names"] = fit.ids(cluster["samples"])
    return {"kind": "sheet", "nearest": SHOWN, **sheet}


def _profiles(fit: FitSample, names: Any) -> Plain:
    features = fit.X.shape[1]
    some = slice(None, None, -(-len(fit.rows) * features // MAX_NUMBERS))
    names = [f"feature {i}" for i in range(features)] if names is None else names
    return {"kind": "profiles", "clusters": parts.profiles(
        dense_rows(fit.X, fit.rows[some]), fit.labels[some], fit.model.n_clusters_, names)}


def _tree(model: FittedModel) -> Plain | None:
    if not hasattr(model, "tree_"):  # files of version 0.1
        return None
    sizes = np.bincount(model.leaves_, minlength=len(model.tree_) + 1).tolist()
    clusters = dict(zip(model.leaves_.tolist(), model.labels_.tolist(), strict=True))
    return {"merges": model.tree_[:, :3].tolist(), "leaves": [
        {"cluster": clusters.get(leaf), "size": size} for leaf, size in enumerate(sizes)]}


def _curves(fit: FitSample) -> Plain:
    result, best = fit.model.result_, fit.model.best_replica_
    lines, resets = {}, []
    for phase, columns in result.history.items():
        flat = {name: curve for name, curve in columns.items() if curve.values.ndim == 2}
        best_curves = {name: type(curve)(curve.epochs, curve.values[:, [best]])
                       for name, curve in flat.items()}
        for name in flat:
            shown = name != "fired" and not name.endswith(AFTER_RESET)
            if shown and (line := parts.curve(best_curves, name)) is not None:
                mean = parts.curve(flat, name) if len(result) > 1 else None
                lines[f"{phase}.{name}"] = {"kept": line, "all": mean}
        if "fired" in best_curves:
            fired = np.nan_to_num(best_curves["fired"].values).any(axis=1)
            resets = best_curves["fired"].epochs[fired].tolist()
    return {"lines": lines, "resets": resets}


def _replicas(fit: FitSample) -> Plain:
    model, places = fit.model, list(fit.labelings)
    rows = []
    for i, replica in enumerate(model.candidates_):
        failed = replica.failed and f"{replica.failed[0]}, epoch {replica.failed[1]}"
        nmi = None if failed else metrics.nmi(fit.labels, fit.labelings[i])
        accuracy = (None if failed or fit.classes is None
                    else metrics.accuracy(fit.classes[fit.rows], fit.labelings[i]))
        rows.append({"replica": i, "seed": replica.seed, "score": replica.score, "failed": failed,
                     "name": replica.name, "kept": i == model.kept, "nmi": nmi,
                     "accuracy": accuracy})
    return {"rows": rows, "noun": model.candidate_name, "nmi": fit.nmi, "places": places,
            "exchanged": exchanged(model),
            "agreement": None if fit.agreement is None else parts.histogram(fit.agreement, bins=10)}


def _known(classes: np.ndarray, model: FittedModel) -> Plain:
    return {"deep": metrics.scores(classes, model.labels_),
            "plain": metrics.scores(classes, model.baseline_.labels_),
            "confusion": parts.confusion(classes, model.labels_)}
