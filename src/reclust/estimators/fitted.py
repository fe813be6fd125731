"""What every fitted estimator can do, whatever it was fitted by: predict, embed, save."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..data.preparation import Preparation, check_samples
from ..objectives import soft_assignment
from ..training.history import Curve
from ..training.result import Model, Result
from ..utils.device import choose_device
from ..utils.exceptions import warn
from .model_file import FittedState, write_model


@dataclass(frozen=True)
class Replica:
    """One of the `n_init` replicas of a fit: its seed, its label-free score (the higher the better) and its labels."""

    seed: int
    score: float
    labels: np.ndarray
    failed: tuple[str, int] | None = None


class FittedClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Children fit, and take over what they found with `_adopt` and `_label`."""

    device: str
    subclasses: ClassVar[dict[str, type[FittedClustering]]] = {}
    """Estimators that `load` can create, by the name in their files."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.subclasses[cls.__name__] = cls

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each sample, (n,)."""
        return self.map_samples(self.check_input(X), Model.assign)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Student-t similarity to each centre, rows sum to one, (n, n_clusters_)."""
        return self.map_samples(self.check_input(X), self.soft_labels)

    def transform(self, X: Any) -> np.ndarray:
        """The embeddings, (n, d), in the floating type of X."""
        X = self.check_input(X)
        return self.map_samples(X, lambda model, z: z).astype(np.float32 if X.dtype == np.float32 else np.float64, copy=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """The fitted model in one file without pickle; `reclust.load` reads it."""
        check_is_fitted(self, "labels_")
        write_model(path, self._state())

    def report(self, path: str | os.PathLike[str], X: Any, y: Any = None, *, title: str | None = None) -> None:
        """One HTML file that opens offline: curves and resets, clusters with their samples or features, how sure one can be of
        them, replicas, k-means beside it, and warnings in plain words.

        X: the samples of `fit`, in the same order. y: known classes, which are only shown and scored.
        """
        from ..report.fit import write_fit_report

        check_is_fitted(self, "labels_")
        write_fit_report(self, path, X, y, title=title)

    def export_onnx(self, path: str | os.PathLike[str]) -> None:
        """Scaling, encoder and assignment as one ONNX graph: X (n, features) in float32 -> label (n,), embedding (n, d).

        Images are given as flat rows (height × width × channels). Needs the extra `onnx`.
        """
        from .onnx import export_onnx

        check_is_fitted(self, "labels_")
        export_onnx(self._model, self.preparation_, self.n_features_in_, path)

    def soft_labels(self, model: Model, z: Tensor) -> Tensor:
        """What `predict_proba` gives, of embeddings (B, d)."""
        q = soft_assignment(z, model.state["centers"])
        return q.nan_to_num(nan=1 / q.shape[-1])  # squares overflow for samples to which all centres are equally far

    @contextmanager
    def _anew(self) -> Iterator[None]:
        """What is refused before training leaves an earlier fit whole; training that fails leaves nothing of it."""
        before = vars(self).copy()
        for name in [name for name in before if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _adopt(self, result: Result, preparation: Preparation, scores: list[float], best: int) -> None:
        """Take over what the chosen replica learned."""
        assert result.labels is not None
        self.result_, self.best_replica_, self.preparation_ = result, best, preparation
        self.replicas_ = [Replica(seed, score, labels, result.failed.get(i))
                          for i, (seed, score, labels) in enumerate(zip(result.seeds, scores, result.labels, strict=True))]
        self.history_ = {phase: {column: Curve(curve.epochs, curve.values[:, best]) for column, curve in columns.items()}
                         for phase, columns in result.history.items()}
        # In float64, so that what is said of a row does not depend on the rows beside it.
        self._model = result.model(best).to("cpu", torch.float64)

    def _label(self, X: np.ndarray, wanted: int) -> None:
        """Label the samples of a fit, and speak of the clusters that have any."""
        living, self.labels_ = np.unique(self.map_samples(X, Model.assign), return_inverse=True)
        self._keep_living(living)
        if self.n_clusters_ == 1 < wanted and self._is_one_point(X):
            warn("All samples are nearly one point to the encoder: there is nothing to tell clusters apart. Check "
                 "that the samples differ and that their scale is reasonable (standardize=True), pretrain longer, "
                 "or give the representation more weight.")
        elif self.n_clusters_ < wanted:
            warn(f"{wanted - self.n_clusters_} of {wanted} clusters ended without samples; {self.n_clusters_} are "
                 "left. Ask for fewer clusters, or let BRB fire more often.")

    def _is_one_point(self, X: np.ndarray) -> bool:
        """Whether the embeddings of X, of up to a thousand of its samples, are the same but for rounding."""
        z = self.map_samples(X[:: max(1, X.shape[0] // 1000)], lambda model, z: z)
        return bool(np.ptp(z, axis=0).max() <= 1e-6 * np.abs(z).max())

    def _keep_living(self, living: np.ndarray) -> None:
        """Speak of these clusters only."""
        self._living = living
        self._model = self._model.only(torch.from_numpy(living))
        self.cluster_centers_ = self._model.state["centers"].numpy().copy()
        self.n_clusters_ = len(living)

    def check_input(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "labels_")
        X = check_samples(self, X, reset=False)
        self.preparation_.warn_of_another_scale(X)
        return X

    def map_samples(self, X: np.ndarray, function: Callable[[Model, Tensor], Tensor]) -> np.ndarray:
        """A function of the model and of embeddings, over X in chunks."""
        step = 4096 if self._model.representation.stacks else 512
        samples = (self.preparation_.network_input(X[start : start + step]) for start in range(0, X.shape[0], step))
        return self.map_batches(samples, function)

    def map_batches(self, samples: Iterable[Tensor], function: Callable[[Model, Tensor], Tensor]) -> np.ndarray:
        """The same over chunks of what the network sees, in float64."""
        model, device = self._model, torch.device("cpu")
        if not model.representation.stacks:  # too heavy for a processor that has a GPU beside it
            device = choose_device(self.device)
            model = model.to(device, torch.float64)
        with torch.autocast(device.type, enabled=False):  # in which the caller may be
            return torch.cat([function(model, model.embed(some.to(device))).cpu() for some in samples]).numpy()

    def _state(self) -> FittedState:
        return FittedState(
            type(self).__name__, self.get_params(deep=False), self.n_features_in_,
            list(getattr(self, "feature_names_in_", [])), self.ids_, self.preparation_, self.result_, self.best_replica_,
            [replica.score for replica in self.replicas_], self._living, self.labels_,
            getattr(self, "consensus_labels_", None), self.baseline_)

    def set_state(self, state: FittedState) -> FittedClustering:
        """Become the fitted estimator that was saved."""
        try:
            choose_device(self.device)
        except ValueError:  # fitted on a machine with another device
            self.device = "auto"
        self.n_features_in_ = state.n_features_in
        if state.feature_names_in:
            self.feature_names_in_ = np.array(state.feature_names_in, dtype=object)
        self.ids_, self.labels_, self.baseline_ = state.ids, state.labels, state.baseline
        if state.consensus_labels is not None:
            self.consensus_labels_ = state.consensus_labels
        self._adopt(state.result, state.preparation, state.scores, state.best_replica)
        self._keep_living(state.nonempty)
        return self

    @property
    def _n_features_out(self) -> int:
        return self.cluster_centers_.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        # Not a classifier, but scikit-learn's check of sparse input asks these tags of whatever has predict_proba.
        tags.classifier_tags = ClassifierTags()
        return tags
