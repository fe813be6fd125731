"""Self-labeling with scikit-learn's contract."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import Tensor

from ..data.accept import as_array
from ..data.augmentation.affine import Affine, Augmentation, Noise
from ..data.augmentation.strong import StrongViews
from ..data.preparation import Preparation
from ..objectives.self_label import logits
from ..training.checkpoint import Checkpoint
from ..training.monitors.evaluation import Evaluation
from ..training.monitors.progress import Progress
from ..training.result import Model
from ..training.self_label import SelfLabel, self_label
from ..training.settings import Execution, View
from ..utils.device import choose_device, resident_limit
from .baseline import k_means_baseline
from .fitted import FittedClustering


class SelfLabeling(FittedClustering):
    """Goes on from a fitted clusterer: its confident labels teach the network about the other samples.

    Parameters
    ----------
    clusterer : a fitted `DeepClustering`; it stays as it is.
    threshold : how confident the network must be of a sample to learn from it.
    evenness : how strongly predictions are kept spread over all classes, so that none of them dies; 0 where clusters may be of
        very different sizes.
    warmup_epochs : so long a linear head learns the clusters first, while the network stays as it is.
    epochs, batch_size, lr : of self-labeling.
    strong : changes the views that learn, as a callable (x, keys) -> x. "auto" takes `StrongViews` for colour images, for other
        images an affine map and for tables noise, unless the clusterer was trained with an augmentation.
    device, precision, progress, time_budget : as in `DeepClustering`.

    Attributes
    ----------
    Those of a `DeepClustering`; `history_` says in its phase "self-labeling" how many samples and classes were active.
    """

    def __init__(
        self,
        clusterer: Any,
        *,
        threshold: float = 0.99,
        evenness: float = 2.0,
        warmup_epochs: int = 20,
        epochs: int = 200,
        batch_size: int = 1000,
        lr: float = 1e-3,
        strong: Augmentation | str = "auto",
        device: str = "auto",
        precision: Literal["auto", "float32", "bf16"] = "auto",
        progress: bool | None = None,
        time_budget: float | None = None,
    ) -> None:
        self.clusterer = clusterer
        self.threshold = threshold
        self.evenness = evenness
        self.warmup_epochs = warmup_epochs
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.strong = strong
        self.device = device
        self.precision = precision
        self.progress = progress
        self.time_budget = time_budget

    def fit(self, X: Any, y: Any = None, *, checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
            every: int | None = None) -> SelfLabeling:
        """Train on X, as `DeepClustering.fit` takes it, usually what the clusterer was fitted on; `y` is only scored."""
        with self._restore_on_error():
            clusterer = self.clusterer
            check_is_fitted(clusterer, "labels_")
            samples = clusterer.check_input(X)
            self.ids_, X = samples.ids, samples.array
            if y is not None:
                y = column_or_1d(as_array(y))
                check_consistent_length(X, y)
            preparation, device = clusterer.preparation_, choose_device(self.device)
            start = clusterer.result_.only(clusterer.best_replica_)
            how = self._how(preparation, start.settings[0].augment)
            inputs = preparation.inputs(X, limit=resident_limit(device)).to(device, torch.float32)
        execution = Execution(device=self.device, precision=self.precision, time_budget=self.time_budget)
        progress = Progress(shown=self.progress)
        try:
            result = self_label(inputs, start, how, monitors=[progress, *([] if y is None else [Evaluation(y)])],
                                execution=execution, checkpoint=Checkpoint.at(checkpoint, every))
        finally:
            progress.close()
        self.n_features_in_ = clusterer.n_features_in_
        self.baseline_ = k_means_baseline(X, preparation, clusterer.n_clusters_, seed=start.seeds[0], device=device)
        if "feature_names_in_" in vars(clusterer):
            self.feature_names_in_ = clusterer.feature_names_in_
        self._adopt(result, preparation, [float("nan")], 0)
        self._label(X, clusterer.n_clusters_)
        return self

    def soft_labels(self, model: Model, z: Tensor) -> Tensor:
        """The head's softmax."""
        return logits(model.state, z).softmax(-1)

    def _how(self, preparation: Preparation, used: Augmentation | None) -> SelfLabel:
        base = SelfLabel(threshold=self.threshold, evenness=self.evenness)
        learning: View
        if not isinstance(self.strong, str):
            learning = self.strong
        elif self.strong != "auto":
            raise ValueError(f"strong must be 'auto' or an augmentation such as StrongViews(), got {self.strong!r}.")
        elif preparation.channels == 3 and preparation.lens.light == "kept":
            learning = StrongViews(fill=_mean_colour(preparation))
        else:
            learning = used or (Noise() if preparation.channels is None else Affine())
        training = replace(base.training, epochs=self.epochs, lr=self.lr, batch_size=self.batch_size, views=("clean", learning))
        warmup = replace(base.warmup, epochs=self.warmup_epochs, batch_size=self.batch_size)
        return replace(base, warmup=warmup, training=training)


def _mean_colour(preparation: Preparation) -> tuple[float, float, float]:
    """What a network sees as zero."""
    red, green, blue = np.broadcast_to(preparation.second.shift, (3, 1, 1)).ravel().tolist()
    return red, green, blue
