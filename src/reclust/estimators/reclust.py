"""The default estimator: many clusterings vote, and one network learns the consensus."""

import os
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from math import ceil
from typing import Any

import numpy as np
from torch import Tensor

from .. import draws, metrics
from ..data.accept import accept
from ..data.augmentation.affine import Augmentation
from ..data.inputs import Inputs
from ..data.preparation import Preparation
from ..data.texts import accept_texts, is_texts
from ..ensemble import recipes
from ..ensemble.consensus import consensus, vote_shares
from ..ensemble.granularity import KSuggestion
from ..ensemble.members import Member, MemberTraining
from ..ensemble.recipes import EFFORTS, Stage
from ..interventions import Recluster
from ..interventions.reclustering.kmeans import KMeansPlusPlus
from ..objectives import IDECObjective
from ..objectives.prototypes import DistillationObjective, prototype_logits
from ..representations import Neighbors
from ..training.checkpoint import Checkpoint
from ..training.context import Deadline
from ..training.engine.ranks import agreed
from ..training.monitors.base import Monitor
from ..training.monitors.progress import Progress
from ..training.result import Model
from ..training.settings import Schedule, Settings
from ..training.train import train
from ..utils.device import choose_device
from ..utils.exceptions import TrainingFailed, warn
from ..utils.progress import progress_bar
from ..utils.values import check_int
from .fitted import FittedClustering
from .kinds import augmentation_for, flat_rows, kind_of, lens_for
from .presets import best, check_known

QUICK_ROWS, MAX_ROWS, GPU_ROWS = 5_000, 20_000, 100_000  # for members; the network labels all
NETWORK = Neighbors((256,), 16, "student")
IMAGE_NETWORK = Neighbors((512, 256), 32, "student")
LOW_AGREEMENT = 0.3


@dataclass(eq=False, repr=False)
class Reclust(FittedClustering):
    """Cluster any data: many clusterings vote, and one network learns their consensus.

    Parameters
    ----------
    n_clusters : int, "auto" or KSuggestion, default=8
        Number of clusters. "auto" takes what `suggest_k` finds; it is kept in `suggestion_`.
    kind : {"auto", "table", "embeddings", "images"}, default="auto"
        What the samples are. "auto" takes unit-length rows, principal components, and many dense
        columns of similar scale, as embeddings.
    effort : {"quick", "normal", "high"}, default="normal"
        Number of members, and how long their networks train.
    image_shape : (int, int) or (int, int, int), optional
        Height, width and channels of images given as flat rows.
    device : str, default="auto"
        A torch device; "auto" uses a GPU if there is one.
    precision : {"auto", "float32", "float64", "bf16", "tf32"}, default="auto"
        See `Execution`. Predictions are always computed in float64.
    random_state : int, RandomState or None, default=None
    progress : bool, optional
        Show progress bars; by default only in a terminal.
    time_budget : float, optional
        Seconds after which no further members are added.
    min_clusters, max_clusters : int, optional
        Range for "auto"; by default 2 to the root of half the samples.

    Attributes
    ----------
    labels_, probabilities_ : ndarray of shape (n_samples,)
        What the network predicts, and the probabilities of that.
    candidates_ : list of Member
        Method, view, seed and labels (-1 for samples left to the network) of each member, and its
        score, the adjusted Rand index with the consensus.
    agreement_ : float
        Mean score of the members: 1 if all found the same clusters, near 0 if there are none.
    baseline_, suggestion_, outlier_score_, tree_, ids_, warnings_
        As in `DeepClustering`.
    n_clusters_, cluster_centers_, history_, result_
        As in `DeepClustering`, for the network.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from reclust import Reclust
    >>> X, _ = make_blobs(60, 5, random_state=0)
    >>> model = Reclust(n_clusters=3, effort="quick", random_state=0).fit(X)
    >>> model.predict_proba(X).shape
    (60, 3)
    """

    candidate_name = "member"

    n_clusters: int | str | KSuggestion = 8
    _: KW_ONLY
    kind: str = "auto"
    effort: str = "normal"
    image_shape: Sequence[int] | None = None
    random_state: int | np.random.RandomState | None = None
    min_clusters: int = 2
    max_clusters: int | None = None

    def fit(self, X: Any, y: Any = None, *,
            checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
            every: int | None = None, monitors: Sequence[Monitor] = (), embed: Any = None
            ) -> "Reclust":
        """Cluster X.

        Parameters
        ----------
        X : array, tensor, DataFrame, sparse matrix, Dataset, path, ...
            Rows (n, features) or images (n, h, w[, channels]), or a file or folder that
            `reclust.data.read` reads; or texts, with `embed`.
        y : ignored
        checkpoint, every : Checkpoint or path, int, optional
            Where to save the training state, and after how many epochs (10). The same fit continues
            from it after an interruption.
        monitors : sequence of Monitor
            Called while networks train.
        embed : function or model, optional
            Texts (n,) -> vectors (n, d), or an object whose method `encode` does that, such as a
            SentenceTransformer. Model files do not hold it.
        """
        if is_texts(X):
            samples, kind = accept_texts(X, embed, min_samples=2), "embeddings"
        else:
            samples = accept(X, image_shape=self.image_shape, min_samples=2)
            kind = kind_of(samples, self.kind)
        check_known("effort", self.effort, EFFORTS)
        suggestion = self._suggestion(samples, kind)
        k = suggestion.k if suggestion else check_int("n_clusters", self.n_clusters, 1)
        device = choose_device(self.device)
        preparation = Preparation.fit(samples, standardize=True, lens=lens_for(samples, device))
        checkpoint = Checkpoint.at(checkpoint, every)
        [seed] = self._seeds(1, checkpoint)
        with self._fitting(samples):
            self._check_features(X, samples, reset=True)
            most = (QUICK_ROWS if not EFFORTS[self.effort].networks
                    else GPU_ROWS if device.type == "cuda" else MAX_ROWS)
            key = draws.fold(draws.key(seed), "rows")
            rows = draws.subset(key, samples.n_samples, most).numpy()
            some = replace(samples, array=samples.array[rows])
            inputs, augment = self._inputs(some, preparation), augmentation_for(samples)
            execution = self._execution()
            with closing(Progress(shown=self.progress)) as progress:
                training = MemberTraining(k, execution, device, checkpoint, [progress, *monitors])
                effort = EFFORTS[self.effort]
                if augment is not None and effort.networks:
                    deep = None
                    if device.type != "cpu" and preparation.channels != 3:
                        deep = best(k, IDECObjective(), channels=1,
                                    n_samples=samples.n_samples).settings
                    recipe = recipes.image_recipe(inputs, augment, effort, seed, training, deep)
                else:
                    features = preparation.encoder.features if preparation.encoder else ()
                    make: Any = recipes.embedding_recipe if kind != "table" else partial(
                        recipes.table_recipe, features=features)
                    flat = flat_rows(some) if augment is None else preparation.network_input(
                        some.array).flatten(1).numpy()
                    recipe = make(flat, effort, seed, training)
                members = self._members(recipe.stages, execution.time_budget)
                labels = recipe.votes(members)
                voted = consensus(labels, k, recipe.graph, cluster=recipe.cluster, seed=seed)
                targets = (np.eye(k)[voted] + vote_shares(labels, voted, k)) / 2
                spent = time.monotonic() - training.started
                steps = effort.steps * 5 // 2 if kind == "embeddings" else effort.steps
                result = train(inputs, _student(k, inputs, augment, steps), seeds=[seed],
                               targets=targets, monitors=training.monitors, checkpoint=checkpoint,
                               execution=replace(execution, time_budget=None))
            result.seconds["members"] = spent
            self._adopt(result, preparation, [float("nan")], 0)
            self.ids_, self.embed_ = None if samples.texts else samples.ids, embed
            self.suggestion_ = suggestion
            self.members_ = [_finished(member, voted, rows, samples.n_samples)
                             for member in members]
            self._label(samples.array, k, seed)
        if self.agreement_ < LOW_AGREEMENT and k > 1:
            warn(f"The members hardly agree (adjusted Rand index {self.agreement_:.2f}): the data "
                 f"may not have {k} clusters. Compare with baseline_, or try another n_clusters.")
        return self

    @property
    def candidates_(self) -> list[Member]:
        return self.members_

    @property
    def kept(self) -> None:
        return None

    @property
    def agreement_(self) -> float:
        return float(np.mean([member.score for member in self.members_]))

    def soft_labels(self, model: Model, z: Tensor) -> Tensor:
        """Return the softmax of negative squared distances, as sure as members agree: (B, k)."""
        sure = max(0.0, self.agreement_) ** 0.5  # the root, because the index counts pairs
        p = prototype_logits(z, model.state["centers"]).softmax(-1)
        return sure * p + (1 - sure) / p.shape[-1]

    def _members(self, stages: Sequence[Stage], time_budget: float | None) -> list[Member]:
        """Run the stages one after the other, at least one, until the time is over."""
        members: list[Member] = []
        deadline = Deadline(time_budget)
        with progress_bar(len(stages), self.progress, leave=False, delay=1) as bar:
            for title, stage in stages:
                if members and agreed(lambda: deadline.passed):
                    warn(f"The time budget was spent after {len(members)} members.")
                    break
                bar.set_description_str(title)
                try:
                    members += stage()
                except TrainingFailed as error:
                    warn(f"Left out: {title}. {error}")
                bar.update()
        if not members:
            raise TrainingFailed("No member could be trained: see the warnings above.")
        return members


def _finished(member: Member, voted: np.ndarray, rows: np.ndarray, n_samples: int) -> Member:
    """Score a member by the consensus; samples that it did not cluster get label -1."""
    labels = np.full(n_samples, -1, dtype=np.int32)
    labels[rows] = member.labels
    return replace(member, labels=labels, score=metrics.ari(member.labels, voted))


def _student(k: int, inputs: Inputs, augment: Augmentation | None, steps: int) -> Settings:
    """Return the settings of the network that learns the consensus."""
    n_samples = inputs.n_samples
    steps = recipes.image_steps(steps, inputs) if augment is not None else steps
    batch_size = min(256, max(1, n_samples // 2))
    training = Schedule(epochs=ceil(steps / (n_samples // batch_size)), batch_size=batch_size,
                        lr=2e-3, decay="cosine", weight_decay=1e-4, clip_norm=None,
                        views=("clean",) if augment is None else ("clean", "augmented"))
    network = NETWORK if augment is None else IMAGE_NETWORK
    return Settings(k, DistillationObjective(), network, pretraining=None, clustering=training,
                    first_centers=Recluster(KMeansPlusPlus()), augment=augment)
