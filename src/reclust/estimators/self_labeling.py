"""Self-labeling with scikit-learn's interface."""

import os
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..data.augmentation.affine import Augmentation, perturbation_of
from ..data.augmentation.strong import StrongViews
from ..data.preparation import Preparation
from ..training.checkpoint import Checkpoint
from ..training.monitors.evaluation import Evaluation
from ..training.monitors.progress import Progress
from ..training.result import Model
from ..training.self_label import SelfLabel, logits, self_label
from ..utils.values import change
from .fitted import FittedClustering, check_labels


@dataclass(eq=False, repr=False)
class SelfLabeling(FittedClustering):
    """Refine a fitted clustering: its confident labels teach the network the other samples.

    Parameters
    ----------
    clusterer : DeepClustering
        Fitted estimator to continue from; it is not changed.
    threshold : float or None, default=None
        Confidence above which a sample's label is learned from. None uses the surest samples of
        each cluster.
    evenness : float, default=2
        How strongly predictions are kept spread over all clusters; 0 if cluster sizes may differ a
        lot.
    warmup_epochs : int, default=20
        Epochs in which a linear head learns the clusters while the network is frozen.
    epochs, batch_size, lr : int, int and float, default=200, 1000, 1e-3
    strong : callable or "auto", default="auto"
        Augmentation of the views that learn, (x, keys) -> x. "auto" is `StrongViews` for color
        images; otherwise the clusterer's augmentation, or an affine map or noise if it has none.
    device, precision, progress, time_budget
        As in `DeepClustering`.

    Attributes
    ----------
    labels_, cluster_centers_, n_clusters_, history_, result_, ...
        As in `DeepClustering`; phases of `history_` are "warm-up" and "self-labeling".

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from reclust import IDEC, SelfLabeling
    >>> X, _ = make_blobs(60, 5, random_state=0)
    >>> model = IDEC(3, pretrain_epochs=5, epochs=2, intervention=None, random_state=0).fit(X)
    >>> refined = SelfLabeling(model, threshold=0.2, warmup_epochs=5, epochs=1).fit(X)
    >>> refined.labels_.shape
    (60,)
    """

    clusterer: Any
    _: KW_ONLY
    threshold: float | None = None
    evenness: float = 2.0
    warmup_epochs: int = 20
    epochs: int = 200
    batch_size: int = 1000
    lr: float = 1e-3
    strong: Augmentation | str = "auto"

    def fit(self, X: Any, y: Any = None, *,
            checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
            every: int | None = None) -> "SelfLabeling":
        """Train on X, usually the samples of the clusterer; see `DeepClustering.fit`."""
        clusterer = self.clusterer
        check_is_fitted(clusterer, "labels_")
        samples = clusterer.check_input(X)
        y = None if y is None else check_labels(y, samples)
        preparation = clusterer.preparation_
        start = clusterer.result_.only(clusterer.best_replica_)
        inputs = self._inputs(samples, preparation)
        how = self._self_label(preparation, inputs.sample_shape, start.settings[0].augment)
        with self._fitting(samples):
            with closing(Progress(shown=self.progress)) as progress:
                measured = [] if y is None else [Evaluation(y)]
                result = self_label(inputs, start, how, monitors=[progress, *measured],
                                    execution=self._execution(),
                                    checkpoint=Checkpoint.at(checkpoint, every))
            self.n_features_in_, self.ids_ = clusterer.n_features_in_, samples.ids
            self.suggestion_ = None
            if "feature_names_in_" in vars(clusterer):
                self.feature_names_in_ = clusterer.feature_names_in_
            self._adopt(result, preparation, [float("nan")], 0)
            self._label(samples.array, clusterer.n_clusters_, start.seeds[0])
        return self

    def soft_labels(self, model: Model, z: Tensor) -> Tensor:
        return logits(model.state, z).softmax(-1)

    def _self_label(self, preparation: Preparation, sample_shape: tuple[int, ...],
                    of_clusterer: Augmentation | None) -> SelfLabel:
        strong: Any = self.strong
        if strong == "auto":
            strong = of_clusterer or perturbation_of(sample_shape)
            if preparation.channels == 3 and preparation.lens.light == "kept":
                mean_color = np.broadcast_to(preparation.second.shift, (3, 1, 1)).ravel().tolist()
                strong = StrongViews(fill=tuple(mean_color))
        return change(SelfLabel(threshold=self.threshold, evenness=self.evenness), {
            "warmup": {"epochs": self.warmup_epochs, "batch_size": self.batch_size},
            "training": {"epochs": self.epochs, "lr": self.lr, "batch_size": self.batch_size,
                         "views": ("clean", strong)}})
