"""Deep clustering with scikit-learn's contract."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import ClassifierTags, check_random_state, column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import Tensor

from .baseline import k_means_baseline
from .checkpoint import Checkpoint
from .data import Dataset
from .data.augment import Affine, Augmentation, Noise
from .data.color import ColorViews
from .data.inputs import Inputs
from .exceptions import ReclustWarning
from .interventions import Intervention
from .monitors import Evaluation, Monitor, Progress
from .objectives import DCNObjective, DECObjective, IDECObjective, Objective, soft_assignment
from .preparation import Preparation, as_array, check_samples, opened
from .presets import PRESETS
from .representations import Representation
from .result import Curve, Result
from .selection import Candidates, Consistency, Selector
from .settings import PRETRAINING, Execution, Schedule, Settings, check_kinds
from .training import choose_device, train
from .values import whole

AUGMENTATIONS: dict[str, Augmentation] = {"affine": Affine(), "color": ColorViews(), "noise": Noise()}
CHUNK = 4096


@dataclass(frozen=True)
class Replica:
    """One of the `n_init` replicas of a fit: its seed, its label-free score (the higher the better) and its labels."""

    seed: int
    score: float
    labels: np.ndarray
    failed: tuple[str, int] | None = None


class DeepClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Learns an embedding and clusters in it at the same time.

    Parameters
    ----------
    n_clusters : how many clusters to look for.
    objective : what is minimised beside the representation's own loss; the named children have one already.
    intervention : what happens between epochs. "auto" is the preset's BRB; None switches it off.
    representation : how samples become embeddings. None is the preset's autoencoder.
    preset : "everyday", "paper" for the published protocol, or complete settings such as `presets.paper("usps", "idec")`, whose
        number of clusters is not used. What is given beside it takes precedence.
    pretrain_epochs, epochs, batch_size, lr : None takes the preset's; `pretrain_epochs=0` starts from scratch.
    augment : random views of samples: "affine" for images, "color" for colour images, "noise" for tables, or a callable
        (x (..., B, *sample_shape), keys (..., B)) -> x. "auto" is the preset's, None is none.
    image_shape : (h, w) or (h, w, channels) of images given as flat rows. Arrays (n, h, w[, channels]) need no hint.
    standardize : scale each feature, or each channel of images, to mean 0 and standard deviation 1 first.
    n_init : so many replicas train together, and the one that `select` scores highest is kept.
    select : a label-free score; None is the share of samples that keep their cluster under augmentation.
    device : "auto" takes a GPU where there is one.
    precision : "float32", "bf16" or "auto", see `Execution`; predictions are made in float64 in any case.
    random_state : int, RandomState or None.
    progress : show progress bars; None does where somebody is watching a terminal.
    time_budget : seconds after which training stops with what it has.

    Attributes
    ----------
    labels_ (n,), cluster_centers_ (n_clusters_, d), n_clusters_ : of the clusters that have samples, counted from 0.
    history_ : phase -> column -> `Curve` of the kept replica.
    replicas_ : all `n_init` replicas with scores and labels. best_replica_ : which one was kept.
    ids_ : names of the samples, where X had any.
    baseline_ : k-means on the standardised samples. result_ : everything that training produced.
    """

    _own_objective: ClassVar[Objective | None] = None

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        objective: Objective | None = None,
        intervention: Intervention | str | None = "auto",
        representation: Representation | None = None,
        preset: str | Settings = "everyday",
        pretrain_epochs: int | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        augment: Augmentation | str | None = "auto",
        image_shape: Sequence[int] | None = None,
        standardize: bool = True,
        n_init: int = 1,
        select: Selector | None = None,
        device: str = "auto",
        precision: Literal["auto", "float32", "bf16"] = "auto",
        random_state: int | np.random.RandomState | None = None,
        progress: bool | None = None,
        time_budget: float | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.objective = objective
        self.intervention = intervention
        self.representation = representation
        self.preset = preset
        self.pretrain_epochs = pretrain_epochs
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.augment = augment
        self.image_shape = image_shape
        self.standardize = standardize
        self.n_init = n_init
        self.select = select
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.progress = progress
        self.time_budget = time_budget

    def fit(self, X: Any, y: Any = None, *, checkpoint: Checkpoint | None = None) -> DeepClustering:
        """Cluster X; `y` is never needed and only scored in `history_`.

        X: (n, features) or images (n, h, w[, channels]), as an array, tensor, DataFrame, sparse matrix, `Dataset`, or a file
        or folder that `reclust.data.read` knows. What does not fit in memory is streamed from where it is.
        checkpoint: where to keep the training state; an interrupted fit continues from it.
        """
        self._forget()
        X = opened(X)
        self.ids_ = X.ids if isinstance(X, Dataset) else None
        X = check_samples(self, X, reset=True)
        preparation = Preparation.fit(X, self.image_shape, standardize=self.standardize)
        settings, seeds = self._settings(preparation.channels), self._seeds()
        if y is not None:
            y = column_or_1d(as_array(y))
            check_consistent_length(X, y)
        execution = Execution(device=self.device, precision=self.precision, time_budget=self.time_budget)
        device = choose_device(execution.device)
        if X.shape[0] < settings.n_clusters:
            raise ValueError(f"n_clusters={settings.n_clusters} needs at least {settings.n_clusters} samples, "
                             f"X has n_samples={X.shape[0]}. Ask for fewer clusters or bring more samples.")
        inputs = preparation.inputs(X, limit=resident_limit(device)).to(device, torch.float32)
        progress = Progress(shown=self.progress)
        monitors: list[Monitor] = [progress, *([] if y is None else [Evaluation(y)])]
        try:
            result = train(inputs, settings, seeds=seeds, monitors=monitors, execution=execution, checkpoint=checkpoint)
        finally:
            progress.close()
        self._adopt(result, preparation, *self._choose(result, inputs))
        living, self.labels_ = np.unique(self._over(X, self._model.assign), return_inverse=True)
        self._keep_living(living)
        self._warn_of_dead_clusters(settings.n_clusters)
        self.baseline_ = k_means_baseline(X, preparation, settings.n_clusters, seed=seeds[0], device=device)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each sample, (n,)."""
        X = self._checked(X)
        return self._over(X, self._model.assign)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Student-t similarity to each centre, rows sum to one, (n, n_clusters_)."""
        return self._over(self._checked(X), lambda z: soft_assignment(z, self._model.state["centers"]))

    def transform(self, X: Any) -> np.ndarray:
        """The embeddings, (n, d), in the floating type of X."""
        X = self._checked(X)
        return self._over(X, lambda z: z).astype(np.float32 if X.dtype == np.float32 else np.float64, copy=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """The fitted model in one file without pickle; `reclust.load` reads it."""
        from .saving import save_estimator

        check_is_fitted(self, "labels_")
        save_estimator(self, path)

    def _settings(self, channels: int | None = None) -> Settings:
        """The preset with everything on top that was given here; every mistake in the parameters is found at this point."""
        base = self._preset(channels)
        if isinstance(self.intervention, str) and self.intervention != "auto":
            raise ValueError(f"intervention must be 'auto', None or an intervention such as BRB(), got {self.intervention!r}.")
        for name, least in (("n_init", 1), ("epochs", 1), ("pretrain_epochs", 0), ("batch_size", 1)):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), least)
        if base.clustering is None:
            raise ValueError("The settings given as preset stop after pretraining: an estimator needs clustering= as well.")
        pretraining = base.pretraining
        if self.pretrain_epochs is not None:
            pretraining = replace(pretraining or PRETRAINING, epochs=self.pretrain_epochs) if self.pretrain_epochs else None
        settings = replace(
            base,
            representation=base.representation if self.representation is None else self.representation,
            intervention=base.intervention if isinstance(self.intervention, str) else self.intervention,
            pretraining=None if pretraining is None else self._schedule(pretraining, None),
            clustering=self._schedule(base.clustering, self.epochs),
            augment=self._augmentation(base.augment),
        )
        if self.select is not None and not callable(self.select):
            raise ValueError(f"select must be a callable such as selection.Consistency(), or None, got {self.select!r}.")
        check_kinds(settings)
        self._warn_if_it_never_fires(settings)
        return settings

    def _preset(self, channels: int | None) -> Settings:
        objective = self._own_objective if self.objective is None else self.objective
        if isinstance(self.preset, Settings):
            meant = self.preset.objective
            if self.objective is None and self._own_objective is not None and type(meant) is not type(self._own_objective):
                raise ValueError(f"The preset is for {type(meant).__name__}, which is not what {type(self).__name__} "
                                 "minimises: use DeepClustering, or the estimator of that name.")
            return replace(self.preset, n_clusters=self.n_clusters, objective=self.objective or meant)
        if self.preset not in PRESETS:
            raise ValueError(f"preset must be one of {', '.join(PRESETS)}, or complete settings, got {self.preset!r}.")
        if objective is None:
            raise ValueError(f"{type(self).__name__} needs an objective; DEC, IDEC and DCN bring their own.")
        return PRESETS[self.preset](self.n_clusters, objective, channels=channels)

    def _schedule(self, base: Schedule, epochs: int | None) -> Schedule:
        given: dict[str, Any] = {"epochs": epochs, "batch_size": self.batch_size, "lr": self.lr}
        return replace(base, **{name: value for name, value in given.items() if value is not None})

    def _augmentation(self, of_preset: Augmentation | None) -> Augmentation | None:
        if not isinstance(self.augment, str):
            return self.augment
        if self.augment == "auto":
            return of_preset
        if self.augment not in AUGMENTATIONS:
            raise ValueError(f"augment must be auto, {', '.join(AUGMENTATIONS)}, a callable or None, got {self.augment!r}.")
        return AUGMENTATIONS[self.augment]

    def _warn_if_it_never_fires(self, settings: Settings) -> None:
        assert settings.clustering is not None
        epochs, intervention = settings.clustering.epochs, settings.intervention
        if intervention is not None and not any(intervention.fires(epoch) for epoch in range(epochs)):
            warnings.warn(f"The intervention never fires within epochs={epochs}: train longer, choose a shorter interval, "
                          "or pass intervention=None to say that you want none.", ReclustWarning, stacklevel=4)

    def _seeds(self) -> list[int]:
        """One seed a replica; those of a smaller `n_init` come first, so that more replicas never lose one."""
        if self.random_state is None:  # not scikit-learn's way: its global generator belongs to the caller
            return np.random.default_rng().integers(2**31 - 1, size=self.n_init).tolist()
        seed = self.random_state
        if not isinstance(seed, np.random.RandomState):
            seed = whole("random_state", seed, 0)
        return check_random_state(seed).randint(2**31 - 1, size=self.n_init).tolist()

    def _choose(self, result: Result, inputs: Inputs) -> tuple[list[float], int]:
        """Everybody's label-free score, and the replica to keep."""
        if len(result) == 1:
            return [float("nan")], 0
        given = torch.as_tensor((self.select or Consistency())(Candidates(result, inputs)), dtype=torch.float64)
        if given.shape != (len(result),):
            raise ValueError(f"select gave scores of shape {tuple(given.shape)}; needed: one each for {len(result)} replicas.")
        scores = given.masked_fill(given.isnan(), -torch.inf).tolist()
        return scores, max(result.living, key=lambda replica: scores[replica])

    def _forget(self) -> None:
        """A fit that fails leaves nothing of an earlier one behind."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _adopt(self, result: Result, preparation: Preparation, scores: list[float], best: int) -> None:
        """Take over what the chosen replica learned."""
        assert result.labels is not None
        self.result_, self.best_replica_, self._preparation = result, best, preparation
        self.replicas_ = [Replica(seed, score, labels, result.failed.get(i))
                          for i, (seed, score, labels) in enumerate(zip(result.seeds, scores, result.labels, strict=True))]
        self.history_ = {phase: {column: Curve(curve.epochs, curve.values[:, best]) for column, curve in columns.items()}
                         for phase, columns in result.history.items()}
        # In float64, so that what is said of a row does not depend on the rows beside it.
        self._model = result.model(best).to("cpu", torch.float64)

    def _keep_living(self, living: np.ndarray) -> None:
        """Speak of these clusters only."""
        self._living = living
        self._model = self._model.only(torch.from_numpy(living))
        self.cluster_centers_ = self._model.state["centers"].numpy().copy()
        self.n_clusters_ = len(living)

    def _warn_of_dead_clusters(self, wanted: int) -> None:
        if self.n_clusters_ < wanted:
            warnings.warn(f"{wanted - self.n_clusters_} of {wanted} clusters ended without samples; {self.n_clusters_} are "
                          "left. Ask for fewer clusters, or let BRB fire more often.", ReclustWarning, stacklevel=3)

    def _checked(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "labels_")
        return check_samples(self, X, reset=False)

    def _over(self, X: np.ndarray, function: Callable[[Tensor], Tensor]) -> np.ndarray:
        """A function of embeddings, over X in chunks."""
        parts = [function(self._model.embed(self._preparation.network_input(X[rows]))) for rows in _chunks(X.shape[0])]
        return torch.cat(parts).numpy()

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


class DEC(DeepClustering):
    """Deep embedded clustering: no reconstruction while clustering, centres are learned."""

    _own_objective = DECObjective()


class IDEC(DeepClustering):
    """Improved DEC: the same objective at a tenth of its weight beside the reconstruction."""

    _own_objective = IDECObjective()


class DCN(DeepClustering):
    """Deep clustering network: reconstruction and distance to the assigned centre; centres follow their samples."""

    _own_objective = DCNObjective()


def resident_limit(device: torch.device) -> float:
    """Bytes of samples that may be kept on the device; more than that are streamed from where they are."""
    return torch.cuda.mem_get_info(device)[0] / 2 if device.type == "cuda" else 2**30


def _chunks(n: int) -> list[slice]:
    return [slice(start, start + CHUNK) for start in range(0, n, CHUNK)]
