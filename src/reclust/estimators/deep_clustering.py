"""Deep clustering with scikit-learn's contract."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..data.augmentation.affine import Affine, Augmentation, Noise
from ..data.augmentation.color import ColorViews
from ..data.accept import SampleSet, accept, as_array
from ..data.inputs import Inputs
from ..data.lens import Lens
from ..data.preparation import Preparation
from ..interventions import Intervention
from ..objectives import DCNObjective, DECObjective, IDECObjective, Objective
from ..representations import Contrastive, Representation
from ..training.checkpoint import Checkpoint
from ..training.monitors.base import Monitor, check_monitors
from ..training.monitors.evaluation import ClusterCount, Evaluation
from ..training.monitors.progress import Progress
from ..training.result import Result
from ..training.settings import PRETRAINING, Execution, Schedule, Settings
from ..training.train import train
from ..utils import choices
from ..utils.device import choose_device, resident_limit
from ..utils.values import check_int, expanded
from .baseline import k_means_baseline
from .consensus import consensus, vote_weights
from .fitted import FittedClustering
from .presets import PRESETS, Recipe, recipe, usual_objective
from .selection import Candidates, Selector

LOOKED_AT = 500
"""Samples by which a fit without known labels tells how its clusters change, which takes little beside training."""
AUGMENTATIONS: dict[str, Augmentation] = dict(
    zip(choices.AUGMENTATIONS, (Affine(), ColorViews(), Noise()), strict=True))


class DeepClustering(FittedClustering):
    """Learns an embedding and clusters in it at the same time.

    Parameters
    ----------
    n_clusters : how many clusters to look for.
    objective : what is minimised beside the representation's own loss; the named children have one already.
    intervention : what happens between epochs. "auto" is the preset's BRB; None switches it off.
    representation : how samples become embeddings. None is the preset's autoencoder; `SimCLR()` is for colour images.
    preset : "everyday", "paper" for the published protocol, "best" for the best of many replicas (minutes on a CPU for
        thousands of samples), or complete settings such as `presets.paper("usps", "idec")` or a `presets.Recipe`, whose
        number of clusters is not used. What is given beside it takes precedence.
    pretrain_epochs, epochs, batch_size, lr : None takes the preset's; `pretrain_epochs=0` starts from scratch.
    augment : random views of samples: "affine" for images, "color" for colour images, "noise" for tables, or a callable
        (x (..., B, *sample_shape), keys (..., B)) -> x. "auto" is the preset's, None is none.
    image_shape : (h, w) or (h, w, channels) of images given as flat rows. Arrays (n, h, w[, channels]) need no hint.
    lens : a `Lens` enlarges small images, or takes colours without their light; "auto" is the preset's, None is none.
    standardize : scale each feature, or each channel of images, to mean 0 and standard deviation 1 first.
    n_init : so many replicas train together, and the one that `select` scores highest is kept. None takes the preset's, which
        is 1 but for "best".
    select : a label-free score, see `reclust.selection`; None takes the preset's: how much the cluster of an augmented sample
        tells about that of the sample itself.
    consensus : also let the replicas vote on every sample, weighed by their scores.
    device : "auto" takes a GPU where there is one.
    precision : "auto", "float32", "bf16" or "float64", see `Execution`; predictions are made in float64 in any case.
    random_state : int, RandomState or None.
    progress : show progress bars; None does where somebody is watching a terminal.
    time_budget : seconds after which training stops with what it has.

    Attributes
    ----------
    labels_ (n,), cluster_centers_ (n_clusters_, d), n_clusters_ : of the clusters that have samples, counted from 0.
    history_ : phase -> column -> `Curve` of the kept replica. In "clustering", "clusters" says how many had samples: at the
        start, every ten epochs, around each intervention (right after it: clusters_after_reset) and at the end;
        "label_change" how labels change from epoch to epoch.
    replicas_ : all `n_init` replicas with scores and labels. best_replica_ : which one was kept.
    consensus_labels_ (n,) : with `consensus=True`, what the replicas agree on, in the names of labels_.
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
        preset: str | Settings | Recipe = "everyday",
        pretrain_epochs: int | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        augment: Augmentation | str | None = "auto",
        image_shape: Sequence[int] | None = None,
        lens: Lens | str | None = "auto",
        standardize: bool = True,
        n_init: int | None = None,
        select: Selector | None = None,
        consensus: bool = False,
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
        self.lens = lens
        self.standardize = standardize
        self.n_init = n_init
        self.select = select
        self.consensus = consensus
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.progress = progress
        self.time_budget = time_budget

    def fit(self, X: Any, y: Any = None, *, start: Result | FittedClustering | str | os.PathLike[str] | None = None,
            checkpoint: Checkpoint | str | os.PathLike[str] | None = None, every: int | None = None,
            monitors: Sequence[Monitor] = ()) -> DeepClustering:
        """Cluster X; `y` is never needed and only scored in `history_`.

        X: (n, features) or images (n, h, w[, channels]), as an array, tensor, DataFrame, sparse matrix, `Dataset`, or a file
        or folder that `reclust.data.reading` knows. What does not fit in memory is streamed from where it is.
        start: what `pretrain` found, a fitted estimator, or a file that a `Result` was saved to, to go on from instead of
            pretraining.
        checkpoint: a folder or file in which to keep the training state, every so many epochs (10 unless said otherwise);
            the same fit, called again after an interruption, continues from it to the same result.
        monitors: look at training and measure more for `history_`, or pass it on to a tracker, see `reclust.trackers`.
        """
        check_monitors(monitors)
        begun = _as_result(start)  # it may be this very estimator
        with self._restore_on_error():
            samples = self._accept(X, self.image_shape, reset=True)
            self.ids_, X = samples.ids, samples.array
            found, preparation = self._prepared(samples)
            checkpoint = Checkpoint.at(checkpoint, every)
            settings, seeds = found.settings, self._seeds(found.n_init, checkpoint)
            if y is not None:
                y = column_or_1d(as_array(y))
                check_consistent_length(X, y)
            if X.shape[0] < settings.n_clusters:
                raise ValueError(f"n_clusters={settings.n_clusters} needs at least {settings.n_clusters} samples, "
                                 f"X has n_samples={X.shape[0]}. Ask for fewer clusters or bring more samples.")
            device = choose_device(self.device)
            inputs = preparation.inputs(X, limit=resident_limit(device)).to(device, torch.float32)
            if begun is not None and 1 < len(begun) == found.n_init:
                seeds = list(begun.seeds)
        looking: list[Monitor] = [ClusterCount(), Evaluation(limit=LOOKED_AT) if y is None else Evaluation(y), *monitors]
        result = self._train(inputs, settings, seeds, looking, begun, checkpoint)
        with torch.autocast(device.type, enabled=False):  # in which the caller may be
            self._adopt(result, preparation, *_choose(result, inputs, found.select))
        self._label(X, settings.n_clusters)
        if self.consensus:
            weights = vote_weights(np.array([replica.score for replica in self.replicas_]))
            self.consensus_labels_ = consensus(np.stack([one.labels for one in self.replicas_]), self.labels_, weights)
        self.baseline_ = k_means_baseline(X, preparation, settings.n_clusters, seed=seeds[0], device=device)
        return self

    def pretrain(self, X: Any, *, checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
                 every: int | None = None) -> Result:
        """The representation alone, trained on X, for `fit(X, start=…)` of this and of other estimators, and for
        `Result.save`; nothing is fitted."""
        samples = accept(X, image_shape=self.image_shape, min_samples=2)
        found, preparation = self._prepared(samples)
        settings, device = found.settings, choose_device(self.device)
        if settings.pretraining is None:
            raise ValueError("There is no pretraining in these settings: give pretrain_epochs above 0.")
        inputs = preparation.inputs(samples.array, limit=resident_limit(device)).to(device, torch.float32)
        checkpoint = Checkpoint.at(checkpoint, every)
        seeds = self._seeds(found.n_init, checkpoint)
        return self._train(inputs, replace(settings, clustering=None), seeds, [], None, checkpoint)

    def _train(self, inputs: Inputs, settings: Settings, seeds: list[int], monitors: list[Monitor], start: Result | None,
               checkpoint: Checkpoint | None) -> Result:
        execution = Execution(device=self.device, precision=self.precision, time_budget=self.time_budget)
        progress = Progress(shown=self.progress)
        try:
            return train(inputs, settings, seeds=seeds, start=start, monitors=[progress, *monitors], execution=execution,
                         checkpoint=checkpoint)
        finally:
            progress.close()

    def _prepared(self, samples: SampleSet) -> tuple[Recipe, Preparation]:
        for name in ("standardize", "consensus"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        found = self._recipe(samples.image_shape and samples.image_shape[2], samples.n_samples)
        preparation = Preparation.fit(samples, standardize=self.standardize, lens=found.lens)
        if isinstance(self.lens, str) and not isinstance(found.settings.representation, Contrastive):
            preparation.warn_if_light_varies(samples.array)
        return found, preparation

    def _recipe(self, channels: int | None = None, n_samples: int = 10_000) -> Recipe:
        """The preset with everything on top that was given here; every mistake in the parameters is found at this point."""
        preset = self._preset(channels, n_samples)
        base = preset.settings
        if isinstance(self.intervention, str) and self.intervention != "auto":
            raise ValueError(f"intervention must be 'auto', None or an intervention such as BRB(), got {self.intervention!r}.")
        for name, least in (("n_init", 1), ("epochs", 1), ("pretrain_epochs", 0), ("batch_size", 1)):
            if getattr(self, name) is not None:
                check_int(name, getattr(self, name), least)
        if base.clustering is None:
            raise ValueError("The settings given as preset stop after pretraining: an estimator needs clustering= as well.")
        pretraining = base.pretraining
        if self.pretrain_epochs is not None:
            pretraining = replace(pretraining or PRETRAINING, epochs=self.pretrain_epochs) if self.pretrain_epochs else None
        settings = replace(
            base,
            representation=base.representation if self.representation is None else self.representation,
            intervention=base.intervention if isinstance(self.intervention, str) else self.intervention,
            pretraining=None if pretraining is None else self._schedule(pretraining, self.pretrain_epochs),
            clustering=self._schedule(base.clustering, self.epochs),
            augment=self._augmentation(base.augment),
        )
        if self.select is not None and (isinstance(self.select, type) or not callable(self.select)):
            raise ValueError(f"select must be a callable such as selection.Consistency(), or None, got {self.select!r}.")
        if not (self.lens is None or isinstance(self.lens, Lens) or isinstance(self.lens, str) and self.lens == "auto"):
            raise ValueError(f"lens must be 'auto', None or a Lens such as Lens(least_side=16), got {self.lens!r}.")
        return Recipe(settings, preset.n_init if self.n_init is None else self.n_init, self.select or preset.select,
                      preset.lens if isinstance(self.lens, str) else self.lens or Lens())

    def _preset(self, channels: int | None, n_samples: int) -> Recipe:
        objective = usual_objective(self._own_objective, self.representation) if self.objective is None else self.objective
        if isinstance(self.preset, (Settings, Recipe)):
            given = Recipe(self.preset) if isinstance(self.preset, Settings) else self.preset
            meant = given.settings.objective
            if self.objective is None and self._own_objective is not None and _kind(meant) != _kind(self._own_objective):
                raise ValueError(f"The preset is for {type(meant).__name__}, which is not what {type(self).__name__} "
                                 "minimises: use DeepClustering, or the estimator of that name.")
            settings = replace(given.settings, n_clusters=self.n_clusters, objective=self.objective or meant)
            return replace(given, settings=settings)
        if not isinstance(self.preset, str) or self.preset not in PRESETS:
            raise ValueError(f"preset must be one of {', '.join(PRESETS)}, or complete settings, got {self.preset!r}.")
        if objective is None:
            raise ValueError(f"{type(self).__name__} needs an objective; DEC, IDEC and DCN bring their own.")
        return recipe(self.preset, self.n_clusters, objective, channels=channels, representation=self.representation,
                      device=choose_device(self.device).type, n_samples=n_samples)

    def _schedule(self, base: Schedule, epochs: int | None) -> Schedule:
        given: dict[str, Any] = {"epochs": epochs, "batch_size": self.batch_size, "lr": self.lr}
        made = replace(base, **{name: value for name, value in given.items() if value is not None})
        if epochs is None:
            return made
        return replace(made, warmup_epochs=min(made.warmup_epochs, made.epochs // 5))  # of a run shorter than the preset's

    def _augmentation(self, of_preset: Augmentation | None) -> Augmentation | None:
        if not isinstance(self.augment, str):
            return self.augment
        if self.augment == "auto":
            return of_preset
        if self.augment not in AUGMENTATIONS:
            raise ValueError(f"augment must be auto, {', '.join(AUGMENTATIONS)}, a callable or None, got {self.augment!r}.")
        return AUGMENTATIONS[self.augment]

    def _seeds(self, n_init: int, checkpoint: Checkpoint | None) -> list[int]:
        """One seed a replica; those of a smaller `n_init` come first, so that more replicas never lose one
        (where they do not learn from each other by `Exchange`)."""
        begun = None if checkpoint is None else checkpoint.seeds()
        if begun is not None and len(begun) == n_init and isinstance(self.random_state, np.random.RandomState | None):
            return begun  # which would draw others now
        if self.random_state is None:  # not scikit-learn's way: its global generator belongs to the caller
            return np.random.default_rng().integers(2**31 - 1, size=n_init).tolist()
        seed = self.random_state
        if not isinstance(seed, np.random.RandomState):
            seed = check_int("random_state", seed, 0)
        return check_random_state(seed).randint(2**31 - 1, size=n_init).tolist()


class DEC(DeepClustering):
    """Deep embedded clustering: no reconstruction while clustering, centres are learned."""

    _own_objective = DECObjective()


class IDEC(DeepClustering):
    """Improved DEC: the same objective at a tenth of its weight beside the reconstruction."""

    _own_objective = IDECObjective()


class DCN(DeepClustering):
    """Deep clustering network: reconstruction and distance to the assigned centre; centres follow their samples."""

    _own_objective = DCNObjective()


def _as_result(start: Result | FittedClustering | str | os.PathLike[str] | None) -> Result | None:
    if isinstance(start, (str, os.PathLike)):
        return Result.load(start)
    if isinstance(start, FittedClustering):
        check_is_fitted(start, "result_")
        return start.result_.only(start.best_replica_)
    if not isinstance(start, Result | None):
        raise TypeError(f"start must be a Result, a fitted estimator, or the path of a Result, got {type(start).__name__}.")
    return start


def _choose(result: Result, inputs: Inputs, select: Selector) -> tuple[list[float], int]:
    """Everybody's label-free score, and the replica to keep."""
    if len(result) == 1:
        return [float("nan")], 0
    blind = replace(result, history={})  # which holds scores against `y`, if that was given
    given = torch.as_tensor(select(Candidates(blind, inputs)), dtype=torch.float64)
    if given.shape != (len(result),):
        raise ValueError(f"select gave scores of shape {tuple(given.shape)}; needed: one each for {len(result)} replicas.")
    scores = given.masked_fill(given.isnan(), -torch.inf).tolist()
    return scores, max(result.living, key=lambda replica: scores[replica])


def _kind(objective: Objective) -> tuple[type, bool]:
    """DEC and IDEC are one class: what tells them apart is whether the representation's own loss counts."""
    return type(expanded(objective)), objective.representation_weight == 0
