"""Prediction, embedding and saving, shared by all fitted estimators."""

import math
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
from ..utils.device import choose_device, resident_limit, rows_at_once
from ..utils.exceptions import collected_warnings, warn
from ..utils.threads import threads_for
from ..utils.values import check_int
from .baseline import k_means_baseline
from .model_file import write_model
from .reporting import Reporting
from .suggest_k import suggest

TREE_ROWS, SHAPE_ROWS = 10_000, 2_000
ON_CPU = 4096  # rows up to which small networks predict on the CPU, whatever they trained on


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
    def fit_and_keep(self: "FittedClustering", *args: Any, **options: Any) -> Any:
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
    subclasses: "ClassVar[dict[str, type[FittedClustering]]]" = {}  # by their name in files

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
        labels = self.map_samples(array, lambda model, z: model.assign(z).int())
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
        """Return labels of the fitted samples, (n,), at another number of clusters, without a fit.

        Fewer merges clusters that are similar, more divides them.
        """
        check_is_fitted(self, "tree_")
        if n_clusters == self.n_clusters_:
            return self.labels_.copy()
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
        return preparation.inputs(samples.array, device, limit=resident_limit(device))

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
        """Apply `function(model, embeddings)` to samples in float64."""
        return self._mapped(X, lambda model, x: (function(model, model.embed(x)),))[0]

    def map_batches(self, batches: Iterable[Tensor],
                    function: Callable[[Model, Tensor], Tensor]) -> np.ndarray:
        """Apply `function(model, embeddings)` to batches of network input in float64."""
        model, device = self._model_for(0)
        with torch.autocast(device.type, enabled=False):
            return torch.cat([function(model, model.embed(batch.to(device))).cpu()
                              for batch in batches]).numpy()

    def _model_for(self, n_samples: int) -> tuple[Model, torch.device]:
        """Return the model in float64 and its device: a GPU for large networks and many samples."""
        if self._model.representation.stacks and n_samples <= ON_CPU:
            return self._model, torch.device("cpu")
        device = choose_device(self.device)
        return self._model.to(device, torch.float64), device

    def _mapped(self, X: Any, function: Callable[[Model, Tensor], tuple[Tensor, ...]]
                ) -> list[np.ndarray]:
        """Apply a function to model and network input, in parts; each result is held only once."""
        model, device = self._model_for(n := X.shape[0])
        width = math.prod(self.preparation_.sample_shape or X.shape[1:])
        step = rows_at_once(device, width) if model.representation.stacks else 512
        results = list[np.ndarray]()
        for start in range(0, n, step):
            with torch.autocast(device.type, enabled=False):
                x = self.preparation_.network_input(X[start : start + step], device)
                parts = [part.cpu().numpy() for part in function(model, x)]
            results = results or [np.empty((n, *part.shape[1:]), part.dtype) for part in parts]
            for result, part in zip(results, parts, strict=True):
                result[start : start + step] = part
        return results

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
        def label(model: Model, x: Tensor) -> tuple[Tensor, Tensor]:
            z = model.embed(x)
            return model.assign(z).int(), self.soft_labels(model, z).amax(-1).float()

        labels, probabilities = self._mapped(X, label)
        return labels, probabilities

    def _label(self, X: Any, n_clusters: int, seed: int) -> None:
        """Label the samples, drop empty clusters, and compute what a fitted model holds besides."""
        self.labels_, self.probabilities_ = self.assign(X)
        nonempty = torch.from_numpy(self.labels_).bincount().nonzero()[:, 0].numpy()
        if len(nonempty) < n_clusters:
            self.labels_ = np.searchsorted(nonempty, self.labels_).astype(np.int32)
        self._keep_clusters(nonempty)
        self.reference_ = Reference.draw(self, X, self.labels_)
        key = draws.fold(draws.key(0), "shapes")
        rows = draws.subset(key, X.shape[0], SHAPE_ROWS).numpy()
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
        return self._mapped(X, lambda _, x: (self.shapes_.score(x.flatten(1)).float(),))[0]

    def _grow_tree(self, X: Any) -> None:
        """Find the tree for `cut`, and the leaf of each sample."""
        rows = draws.subset(draws.fold(draws.key(0), "tree"), X.shape[0], TREE_ROWS).numpy()
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
            return torch.cdist(z, leaves.to(z)).where(own, torch.inf).argmin(1).short()

        self.leaves_ = self.map_samples(X, nearest_leaf)

    def _keep_clusters(self, clusters: np.ndarray) -> None:
        self.nonempty_clusters_ = clusters
        self._model = self._model.only(torch.from_numpy(clusters))
        self.cluster_centers_ = self._model.state["centers"].numpy().copy()
        self.n_clusters_ = len(clusters)

    def restore(self, fitted: dict[str, Any]) -> "FittedClustering":
        """Become the fitted estimator whose attributes were saved, without running its network."""
        try:
            choose_device(self.device)
        except ValueError:  # fitted on a machine with another device
            self.device = "auto"
        scores = fitted.pop("scores")
        self.__dict__.update(fitted)
        self._adopt(self.result_, self.preparation_, scores, self.best_replica_)
        self._keep_clusters(self.nonempty_clusters_)
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
