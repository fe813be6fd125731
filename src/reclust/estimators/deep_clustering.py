"""Deep clustering with scikit-learn's interface."""

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from .. import metrics
from ..data.accept import SampleSet, accept
from ..data.augmentation.affine import Affine, Augmentation, Noise
from ..data.augmentation.color import ColorViews
from ..data.inputs import Inputs
from ..data.lens import Lens
from ..data.preparation import Preparation
from ..ensemble.consensus import consensus
from ..ensemble.granularity import KSuggestion
from ..ensemble.selection import Selector, better_half, choose_replica
from ..interventions import Intervention
from ..objectives import Objective
from ..representations import Representation
from ..training.checkpoint import Checkpoint
from ..training.monitors.base import Monitor
from ..training.monitors.evaluation import ClusterCount, Evaluation
from ..training.monitors.progress import Progress
from ..training.result import Result
from ..training.settings import CLUSTERING, PRETRAINING, Schedule, Settings, check_part
from ..training.train import train
from ..utils.device import choose_device
from ..utils.values import check_int, expanded
from .baseline import in_common_units
from .fitted import FittedClustering, check_labels
from .presets import Recipe, check_known, recipe, usual_objective

MONITORED_SAMPLES = 500  # whose label changes are monitored in a fit without known labels
AUGMENTATIONS: dict[str, Augmentation] = {
    "affine": Affine(), "color": ColorViews(), "noise": Noise()}


@dataclass(eq=False, repr=False)
class DeepClustering(FittedClustering):
    """Deep clustering with any objective: learn an embedding and cluster in it at the same time.

    Parameters
    ----------
    n_clusters : int, "auto" or KSuggestion, default=8
        Number of clusters. "auto" takes what `suggest_k` finds; it is kept in `suggestion_`.
    objective : Objective, optional
        Clustering loss; `DEC`, `IDEC` and `DCN` have their own.
    intervention : Intervention, "auto" or None, default="auto"
        Changes between epochs. "auto" is the preset's BRB, None is none.
    representation : Representation, optional
        Network that embeds the samples; the preset's autoencoder by default. `SimCLR()` is for
        color images.
    preset : {"everyday", "paper", "best"}, Settings or Recipe, default="everyday"
        "paper" is the published protocol; "best" keeps the best of many replicas, which takes
        minutes on a CPU for thousands of samples. Other parameters override the preset.
    pretrain_epochs, epochs, batch_size, lr : number, optional
        The preset's by default. `pretrain_epochs=0` starts from scratch.
    augment : {"auto", "affine", "color", "noise"}, callable or None, default="auto"
        Random views of samples: "affine" for images, "color" for color images, "noise" for tables,
        or a function (x (..., B, *sample_shape), keys (..., B)) -> x. "auto" is the preset's.
    lens : Lens, "auto" or None, default="auto"
        Enlarges small images or removes brightness. "auto" is the preset's.
    standardize : bool, default=True
        Scale each feature, or each channel of images, to mean 0 and standard deviation 1. Features
        are divided by one number instead if k-means finds more structure in them that way, as in
        pixels.
    n_init : int, optional
        Number of replicas, of which the one with the highest score is kept; 1 except for "best".
    select : callable, optional
        Label-free score from `reclust.ensemble.selection`, by default
        `NormalizedInformation()`, with other presets `SharedInformation()`.
    consensus : bool, default=False
        Also let the replicas vote on every sample.
    time_budget : float, optional
        Seconds after which training stops with what it has.
    image_shape, device, precision, random_state, progress, min_clusters, max_clusters
        As in `Reclust`.

    Attributes
    ----------
    labels_, probabilities_ : ndarray of shape (n_samples,)
        Clusters of the samples, and their probabilities.
    n_clusters_, cluster_centers_ : int, ndarray of shape (n_clusters_, n_dimensions)
        Number and centers of the clusters that have samples.
    history_ : dict
        Curves of the kept replica, by phase ("pretraining", "clustering") and column.
    replicas_, best_replica_ : list of Replica, int
        Seeds, scores and labels of all replicas, and the index of the kept one.
    consensus_labels_ : ndarray of shape (n_samples,)
        With `consensus=True`, what the replicas voted for, matched to `labels_`.
    suggestion_ : KSuggestion or None
        Evidence for the number of clusters with `n_clusters="auto"`.
    outlier_score_ : ndarray of shape (n_samples,)
        Distance from every cluster by its shape: 0 for a typical sample, above 6 for one that
        belongs nowhere.
    tree_ : ndarray of shape (n_leaves - 1, 4)
        Linkage matrix of parts of the clusters, for `cut`.
    ids_ : ndarray of shape (n_samples,) or None
        Names of the samples, if X had any.
    baseline_ : Baseline
        K-means on the samples as they are or standardized.
    result_ : Result
        Everything that training produced.
    warnings_ : list of str
        Messages of the warnings of the fit.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from reclust import DeepClustering, IDECObjective
    >>> X, _ = make_blobs(60, 5, random_state=0)
    >>> model = DeepClustering(3, objective=IDECObjective(0.5), pretrain_epochs=1, epochs=2,
    ...                        intervention=None, random_state=0).fit(X)
    >>> model.transform(X).shape
    (60, 3)
    """

    _default_objective: ClassVar[Objective | None] = None

    n_clusters: int | str | KSuggestion = 8
    _: KW_ONLY
    objective: Objective | None = None
    intervention: Intervention | str | None = "auto"
    representation: Representation | None = None
    preset: str | Settings | Recipe = "everyday"
    pretrain_epochs: int | None = None
    epochs: int | None = None
    batch_size: int | None = None
    lr: float | None = None
    augment: Augmentation | str | None = "auto"
    image_shape: Sequence[int] | None = None
    lens: Lens | str | None = "auto"
    standardize: bool = True
    n_init: int | None = None
    select: Selector | None = None
    consensus: bool = False
    random_state: int | np.random.RandomState | None = None
    min_clusters: int = 2
    max_clusters: int | None = None

    def fit(self, X: Any, y: Any = None, *,
            start: Result | FittedClustering | str | os.PathLike[str] | None = None,
            checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
            every: int | None = None, monitors: Sequence[Monitor] = ()) -> "DeepClustering":
        """Cluster X.

        Parameters
        ----------
        X : array, tensor, DataFrame, sparse matrix, Dataset, path, ...
            Rows (n, features) or images (n, h, w[, channels]), or a file or folder that
            `reclust.data.read` reads. Data that does not fit in memory is streamed.
        y : array of shape (n,), optional
            Known classes, scored in `history_` and never used for training.
        start : Result, fitted estimator or path, optional
            Continue from this instead of pretraining, such as from the result of `pretrain`.
        checkpoint, every : Checkpoint or path, int, optional
            Where to save the training state, and after how many epochs (10). The same fit continues
            from it after an interruption.
        monitors : sequence of Monitor
            Measure more for `history_`, or report to a tracker.
        """
        start, checkpoint = _as_result(start), Checkpoint.at(checkpoint, every)
        samples, recipe, preparation, inputs, suggestion = self._prepare(X)
        y = None if y is None else check_labels(y, samples)
        n_clusters, device = recipe.settings.n_clusters, choose_device(self.device)
        seeds = (list(start.seeds) if start is not None and 1 < len(start) == recipe.n_init
                 else self._seeds(recipe.n_init, checkpoint))
        with self._fitting(samples):
            self._check_features(X, samples, reset=True)
            evaluation = Evaluation(limit=MONITORED_SAMPLES) if y is None else Evaluation(y)
            result = self._train(inputs, recipe.settings, seeds, start, checkpoint,
                                 ClusterCount(), evaluation, *monitors)
            with torch.autocast(device.type, enabled=False):
                scores, best = choose_replica(result, inputs, recipe.select)
            self._adopt(result, preparation, scores, best)
            self.ids_, self.suggestion_ = samples.ids, suggestion
            self._label(samples.array, n_clusters, seeds[0])
            if self.consensus:
                labels = np.stack([replica.labels for replica in better_half(self.replicas_)])
                agreed = consensus(labels, self.n_clusters_, seed=seeds[0])
                self.consensus_labels_ = metrics.matched(agreed, self.labels_)
        return self

    def pretrain(self, X: Any, *, checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
                 every: int | None = None) -> Result:
        """Train the representation only, for `fit(X, start=…)` of this and other estimators.

        The parameters are those of `fit`.
        """
        _, recipe, _, inputs, _ = self._prepare(X)
        if recipe.settings.pretraining is None:
            raise ValueError("These settings have no pretraining: pass pretrain_epochs above 0.")
        checkpoint = Checkpoint.at(checkpoint, every)
        return self._train(inputs, replace(recipe.settings, clustering=None),
                           self._seeds(recipe.n_init, checkpoint), None, checkpoint)

    def _prepare(self, X: Any) -> tuple[SampleSet, Recipe, Preparation, Inputs, KSuggestion | None]:
        samples = accept(X, image_shape=self.image_shape, min_samples=2)
        suggestion = self._suggestion(samples)
        recipe = self._recipe(samples.image_shape and samples.image_shape[2], samples.n_samples,
                              suggestion.k if suggestion else self.n_clusters)
        preparation = Preparation.fit(samples, standardize=self.standardize, lens=recipe.lens)
        if self.standardize and preparation.image_shape is None and samples.encoder is None:
            preparation = in_common_units(preparation, samples.array, recipe.settings.n_clusters)
        return samples, recipe, preparation, self._inputs(samples, preparation), suggestion

    def _train(self, inputs: Inputs, settings: Settings, seeds: list[int], start: Result | None,
               checkpoint: Checkpoint | None, *monitors: Monitor) -> Result:
        with closing(Progress(shown=self.progress)) as progress:
            return train(inputs, settings, seeds=seeds, start=start, monitors=[progress, *monitors],
                         execution=self._execution(), checkpoint=checkpoint)

    def _recipe(self, channels: int | None = None, n_samples: int = 10_000,
                n_clusters: int | str | KSuggestion | None = None) -> Recipe:
        """Apply the parameters to the preset, which also checks them."""
        known = 8 if self.n_clusters == "auto" else self.n_clusters
        preset = self._preset(channels, n_samples, n_clusters or known)
        base = preset.settings
        for name, least in (("epochs", 1), ("pretrain_epochs", 0), ("batch_size", 1)):
            if getattr(self, name) is not None:
                check_int(name, getattr(self, name), least)
        pretraining = base.pretraining
        if self.pretrain_epochs is not None:
            pretraining = (pretraining or PRETRAINING) if self.pretrain_epochs else None
        augment = self.augment
        if isinstance(augment, str):
            check_known("augment", augment, ("auto", *AUGMENTATIONS))
            augment = AUGMENTATIONS.get(augment, base.augment)
        intervention: Any = base.intervention if self.intervention == "auto" else self.intervention
        lens: Any = preset.lens if self.lens == "auto" else self.lens or Lens()
        settings = replace(
            base, representation=self.representation or base.representation,
            intervention=intervention, augment=augment,
            pretraining=pretraining and self._schedule(pretraining, self.pretrain_epochs),
            clustering=self._schedule(base.clustering or CLUSTERING, self.epochs))
        return Recipe(settings, preset.n_init if self.n_init is None else self.n_init,
                      preset.select if self.select is None else self.select, lens)

    def _preset(self, channels: int | None, n_samples: int, n_clusters: Any) -> Recipe:
        objective = self.objective or usual_objective(self._default_objective, self.representation)
        if not isinstance(self.preset, (Settings, Recipe)):
            return recipe(self.preset, n_clusters, objective, channels=channels,
                          representation=self.representation, n_samples=n_samples,
                          device=choose_device(self.device).type)
        preset = Recipe(self.preset) if isinstance(self.preset, Settings) else self.preset
        of_preset, usual = preset.settings.objective, self._default_objective
        if self.objective is None and usual is not None and _kind(of_preset) != _kind(usual):
            raise ValueError(f"The preset is for {type(of_preset).__name__}, not for "
                             f"{type(self).__name__}: use DeepClustering or its own estimator.")
        settings = replace(preset.settings, n_clusters=n_clusters,
                           objective=self.objective or of_preset)
        return replace(preset, settings=settings)

    def _schedule(self, base: Schedule, epochs: int | None) -> Schedule:
        changes: dict[str, Any] = {"epochs": epochs, "batch_size": self.batch_size, "lr": self.lr}
        schedule = replace(base, **{name: new for name, new in changes.items() if new is not None})
        if epochs is None:
            return schedule
        return replace(schedule, warmup_epochs=min(schedule.warmup_epochs, schedule.epochs // 5))


def _as_result(start: Any) -> Result | None:
    if isinstance(start, (str, os.PathLike)):
        return Result.load(start)
    if isinstance(start, FittedClustering):
        check_is_fitted(start, "result_")
        return start.result_.only(start.best_replica_)
    if start is not None:
        check_part("start", start, Result)
    return start


def _kind(objective: Objective) -> tuple[type, bool]:
    """Tell DEC from IDEC, which weighs the representation's loss."""
    return type(expanded(objective)), objective.representation_weight == 0
