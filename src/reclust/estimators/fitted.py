"""Prediction, embedding and saving, shared by all fitted estimators."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn import base
from sklearn.utils import ClassifierTags, check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from torch import Tensor

from .. import draws
from ..data.accept import SampleSet, accept, as_array
from ..data.formats.memory import is_dataframe
from ..data.inputs import Inputs
from ..data.preparation import Preparation
from ..data.texts import accept_texts, is_texts
from ..ensemble.granularity import KSuggestion
from ..ensemble.outliers import OUTLYING, ClusterShapes
from ..ensemble.tree import cluster_tree, cut, parts_of, similarity
from ..objectives import soft_assignment
from ..report.drift import Reference
from ..training.checkpoint import Checkpoint
from ..training.engine.ranks import agreed
from ..training.history import Curve
from ..training.result import Model, Result
from ..training.settings import Execution
from ..utils import choices
from ..utils.device import choose_device, resident_limit
from ..utils.exceptions import collected_warnings, warn
from ..utils.threads import threads_for
from ..utils.values import check_int
from .baseline import k_means_baseline
from .model_file import write_model
from .reporting import Reporting
from .suggest_k import suggest

TREE_ROWS, SHAPE_ROWS, CHUNK = 10_000, 2_000, 4_096


def check_labels(y: Any, samples: SampleSet) -> np.ndarray:
    y = column_or_1d(as_array(y))
    check_consistent_length(samples.array, y)
    return y


@dataclass(frozen=True)
class Replica:
    """One of the `n_init` replicas of a fit; a higher label-free score is better."""

    seed: int
    score: float
    labels: np.ndarray
    failed: tuple[str, int] | None = None
    name: str = ""


def _keep_warnings(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let `fit` leave the messages of its warnings in `warnings_`."""

    @wraps(fit)
    def fit_and_keep(self: FittedClustering, *args: Any, **options: Any) -> Any:
        with collected_warnings() as messages:
            try:
                fit(self, *args, **options)
            finally:
                if hasattr(self, "labels_") and not hasattr(self, "warnings_"):
                    self.warnings_ = messages
        return self

    return fit_and_keep


@dataclass(eq=False, repr=False, kw_only=True)
class FittedClustering(Reporting, base.ClassNamePrefixFeaturesOutMixin, base.TransformerMixin,
                       base.ClusterMixin, base.BaseEstimator):
    """Base class of the estimators, which fit and then call `_adopt` and `_label`."""

    device: str = "auto"
    precision: choices.PrecisionName = "auto"
    progress: bool | None = None
    time_budget: float | None = None
    subclasses: ClassVar[dict[str, type[FittedClustering]]] = {}  # by their name in files

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.subclasses[cls.__name__] = cls
        if "fit" in vars(cls):
            cls.fit = _keep_warnings(cls.fit)  # type: ignore[attr-defined]

    candidate_name: ClassVar[str] = "replica"

    @property
    def candidates_(self) -> Sequence[Any]:
        """The clusterings that a report compares."""
        return self.replicas_

    @property
    def kept(self) -> int | None:
        """The candidate that became the fitted model, if it is one of them."""
        return self.best_replica_

    def predict(self, X: Any, outliers: int | None = None) -> np.ndarray:
        """Return the cluster of each sample, (n,).

        With `outliers=-1`, samples that are far from every cluster get -1: those whose score, as in
        `outlier_score_`, is above 6.
        """
        array = self.check_input(X).array
        labels = self.map_samples(array, Model.assign)
        if outliers is not None:
            labels[self._outlier_score(array) > OUTLYING] = outliers
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each cluster, (n, n_clusters_)."""
        return self.map_samples(self.check_input(X).array, self.soft_labels)

    def transform(self, X: Any) -> np.ndarray:
        """Return the embeddings, (n, d), in the floating type of X."""
        array = self.check_input(X).array
        kind = np.float32 if array.dtype == np.float32 else np.float64
        return self._embed(array).astype(kind, copy=False)

    def cut(self, n_clusters: int) -> np.ndarray:
        """Return labels of the fitted samples at another number of clusters, without a new fit.

        Parameters
        ----------
        n_clusters : int
            Fewer merges clusters that are similar, more divides them.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "tree_")
        if n_clusters == self.n_clusters_:
            return self.labels_
        most = len(self.tree_) + 1
        if not 1 <= check_int("n_clusters", n_clusters, 1) <= most:
            raise ValueError(f"The tree of this fit has 1 to {most} clusters, not {n_clusters}.")
        return cut(self.tree_, n_clusters)[self.leaves_]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file without pickle, for `reclust.load`."""
        check_is_fitted(self, "labels_")
        write_model(path, type(self).__name__, self.get_params(deep=False), self.__dict__)

    def check_input(self, X: Any) -> SampleSet:
        check_is_fitted(self, "labels_")
        fitted = self.preparation_.image_shape
        encoder, columns = self.preparation_.encoder, None
        if encoder is None and not is_dataframe(X):
            columns = getattr(self, "feature_names_in_", None)
        samples = accept_texts(X, getattr(self, "embed_", None)) if is_texts(X) else accept(
            X, image_shape=fitted, columns=columns, encoder=encoder, numeric=encoder is None)
        self._check_features(X, samples, reset=False)
        if samples.image_shape != fitted:
            raise ValueError("The model was fitted on a table, not on images of shape "
                             f"{samples.image_shape}.")
        self.preparation_.warn_if_units_differ(samples)
        return samples

    def _check_features(self, X: Any, samples: SampleSet, *, reset: bool) -> None:
        if samples.encoder is not None:  # finds its columns by name
            self.feature_names_in_ = np.array(samples.encoder.names, dtype=object)
            self.n_features_in_ = len(self.feature_names_in_)
            return
        frame = is_dataframe(X)
        rows = np.broadcast_to(0.0, (samples.n_samples, samples.n_features))
        by_name = samples.feature_names is not None and hasattr(self, "feature_names_in_")
        if frame or not by_name:  # `accept` selected columns by name
            validate_data(self, X if frame else rows, reset=reset, skip_check_array=True)
        if reset and samples.feature_names is not None and not frame:
            self.feature_names_in_ = np.asarray(samples.feature_names, dtype=object)

    def _inputs(self, samples: SampleSet, preparation: Preparation) -> Inputs:
        device = choose_device(self.device)
        inputs = preparation.inputs(samples.array, limit=resident_limit(device))
        return inputs.to(device, torch.float32)

    def _suggestion(self, samples: SampleSet, kind: str = "auto") -> KSuggestion | None:
        """Look for a number of clusters if `n_clusters` is "auto", or else check it."""
        if isinstance(self.n_clusters, KSuggestion):
            found = self.n_clusters
        elif self.n_clusters == "auto":
            found = suggest(samples, kind, self.min_clusters, self.max_clusters,
                            choose_device(self.device), 0, self.progress)
        else:
            if samples.n_samples < check_int("n_clusters", self.n_clusters, 1):
                raise ValueError(f"n_clusters={self.n_clusters} needs at least {self.n_clusters} "
                                 f"samples, X has n_samples={samples.n_samples}.")
            return None
        if not found.clear:
            warn(found.answer)
        return found

    def _seeds(self, n_init: int, checkpoint: Checkpoint | None) -> list[int]:
        return agreed(lambda: self._draw_seeds(n_init, checkpoint))

    def _draw_seeds(self, n_init: int, checkpoint: Checkpoint | None) -> list[int]:
        """Return one seed per replica; a larger `n_init` keeps the seeds of a smaller one."""
        saved = None if checkpoint is None else checkpoint.seeds()
        unknown = isinstance(self.random_state, np.random.RandomState | None)
        if unknown and saved is not None and len(saved) >= n_init:
            return saved[:n_init]
        if self.random_state is None:  # leave numpy's global generator to the caller
            return np.random.default_rng().integers(2**31 - 1, size=n_init).tolist()
        return check_random_state(self.random_state).randint(2**31 - 1, size=n_init).tolist()

    def _execution(self) -> Execution:
        return Execution(device=self.device, precision=self.precision, time_budget=self.time_budget)

    def map_samples(self, X: Any, function: Callable[[Model, Tensor], Tensor]) -> np.ndarray:
        step = 4096 if self._model.representation.stacks else 512
        batches = (self.preparation_.network_input(X[start : start + step])
                   for start in range(0, X.shape[0], step))
        return self.map_batches(batches, function)

    def map_batches(self, batches: Iterable[Tensor],
                    function: Callable[[Model, Tensor], Tensor]) -> np.ndarray:
        """Apply `function(model, embeddings)` to batches of network input in float64."""
        model, device = self._model, torch.device("cpu")
        if not model.representation.stacks:  # large networks use the GPU
            device = choose_device(self.device)
            model = model.to(device, torch.float64)
        with torch.autocast(device.type, enabled=False):
            return torch.cat([function(model, model.embed(batch.to(device))).cpu()
                              for batch in batches]).numpy()

    def _embed(self, X: Any) -> np.ndarray:
        return self.map_samples(X, lambda model, z: z)

    def soft_labels(self, model: Model, z: Tensor) -> Tensor:
        """Return the Student-t similarity of embeddings (B, d) to each center, summing to 1."""
        q = soft_assignment(z, model.state["centers"])
        return q.nan_to_num(nan=1 / q.shape[-1])  # squares overflow far from all centers

    @contextmanager
    def _fitting(self, samples: SampleSet) -> Iterator[None]:
        """Clear the attributes of an earlier fit, and those of this one if it fails."""
        self._forget()
        try:
            # Members compare blocks of some hundred samples with all others.
            with threads_for(512 * samples.n_samples * samples.n_features):
                yield
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_") and name[0] != "_"]:
            delattr(self, name)

    def _adopt(self, result: Result, preparation: Preparation, scores: list[float],
               best: int) -> None:
        assert result.labels is not None
        self.result_, self.best_replica_, self.preparation_ = result, best, preparation
        self.replicas_ = [Replica(result.seeds[i], score, result.labels[i], result.failed.get(i))
                          for i, score in enumerate(scores)]
        self.history_ = {phase: {column: Curve(curve.epochs, curve.values[:, best])
                                 for column, curve in columns.items()}
                         for phase, columns in result.history.items()}
        # In float64 the prediction for a row does not depend on the rows beside it.
        self._model = result.model(best).to("cpu", torch.float64)

    def assign(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the clusters of accepted samples and the probabilities of these, (n,) each."""
        labels, probabilities = self.map_samples(X, lambda model, z: torch.stack(
            [model.assign(z), self.soft_labels(model, z).max(-1).values], 1)).T
        return labels.astype(np.int64), probabilities

    def _label(self, X: Any, n_clusters: int, seed: int) -> None:
        """Label the samples, drop empty clusters, and compute what a fitted model holds besides."""
        labels, self.probabilities_ = self.assign(X)
        nonempty, self.labels_ = np.unique(labels, return_inverse=True)
        self._keep_clusters(nonempty)
        self.reference_ = Reference.draw(self, X, self.labels_)
        order = draws.permutation(draws.fold(draws.key(0), "shapes"), X.shape[0])
        rows = order[:SHAPE_ROWS].sort().values.numpy()
        x = self.preparation_.network_input(X[rows]).flatten(1).numpy()
        self.shapes_ = ClusterShapes.fit(x, self.labels_[rows], self.n_clusters_)
        self.outlier_score_ = self._outlier_score(X)
        self.sample_embedding_ = self._embed(X[rows]).astype(np.float32)
        if self.n_clusters_ < n_clusters:
            warn(f"{n_clusters - self.n_clusters_} of {n_clusters} clusters ended without samples. "
                 "Use a smaller n_clusters, pretrain longer, or reset more often (BRB).")
        self.baseline_ = k_means_baseline(X, self.preparation_, n_clusters, seed=seed,
                                          device=choose_device(self.device))
        self._grow_tree(X)

    def _outlier_score(self, X: Any) -> np.ndarray:
        parts = range(0, X.shape[0], CHUNK)
        return np.concatenate([self.shapes_.score(self.preparation_.network_input(
            X[start : start + CHUNK]).flatten(1).numpy()) for start in parts])

    def _grow_tree(self, X: Any) -> None:
        """Find the tree for `cut`, and the leaf of each sample."""
        order = draws.permutation(draws.fold(draws.key(0), "tree"), X.shape[0])
        rows = order[:TREE_ROWS].sort().values.numpy()
        labels, k = self.labels_[rows], self.n_clusters_
        leaves, cluster_of = parts_of(torch.from_numpy(self._embed(X[rows])), labels, k)
        others = [candidate.labels[rows] for candidate in self.candidates_ if not candidate.failed]
        if len(others) == 1:
            soft = self.map_samples(X[rows], self.soft_labels)
            shares = np.eye(k)[labels].T @ soft / np.bincount(labels, minlength=k)[:, None]
            similar = shares @ shares.T
        else:
            similar = similarity(labels, others, k)
        self.tree_ = cluster_tree(similar, leaves.numpy(), cluster_of)
        clusters = torch.from_numpy(cluster_of)

        def nearest_leaf(model: Model, z: Tensor) -> Tensor:
            own = model.assign(z)[:, None] == clusters.to(z.device)
            return torch.cdist(z, leaves.to(z)).where(own, torch.inf).argmin(1)

        self.leaves_ = self.map_samples(X, nearest_leaf)

    def _keep_clusters(self, clusters: np.ndarray) -> None:
        self.nonempty_clusters_ = clusters
        self._model = self._model.only(torch.from_numpy(clusters))
        self.cluster_centers_ = self._model.state["centers"].numpy().copy()
        self.n_clusters_ = len(clusters)

    def restore(self, fitted: dict[str, Any]) -> FittedClustering:
        """Become the fitted estimator whose attributes were saved."""
        try:
            choose_device(self.device)
        except ValueError:  # fitted on a machine with another device
            self.device = "auto"
        scores = fitted.pop("scores")
        self.__dict__.update(fitted)
        self._adopt(self.result_, self.preparation_, scores, self.best_replica_)
        self._keep_clusters(self.nonempty_clusters_)
        for name in ("labels_", "baseline_", "candidates_"):
            getattr(self, name)  # the file is refused if it lacks one
        return self

    @property
    def _n_features_out(self) -> int:
        return self.cluster_centers_.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        # No classifier, but scikit-learn's sparse check expects these tags next to predict_proba.
        tags.classifier_tags = ClassifierTags()
        return tags
