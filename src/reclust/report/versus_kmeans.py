"""Compare a deep model with plain k-means on the same samples, without labels."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import draws, metrics
from ..data.augmentation.affine import perturbation_of
from ..geometry import local_purity, squared_silhouette
from ..interventions import Every, Exchange, WhenSettled
from ..interventions.reclustering.kmeans import KMeans
from ..training.result import Model

SAMPLES, VIEWS, BATCH_SIZE = 3000, 3, 512
SAME = 0.9  # adjusted Rand index from which two labelings count as the same
MARGIN = 0.05  # smallest difference in stability that counts
CAVEAT = ("No labels were used: stable clusters can still be other groups than you have in mind. "
          "Among replicas, the one least affected by random changes was kept, which favors the "
          "deep model a little. A silhouette favors the method that was trained in its space.")
TRAINED = "not counted: the model was trained to ignore such changes"
SELECTED = "not counted: replicas affected by such changes were replaced during training"
METHODS = "not counted: members differ in their methods, not only in their seeds"
COPIED = "unknown for this model: its replicas were copied from each other during training"
FittedModel = Any  # a fitted estimator, see `estimators/fitted.py`


@dataclass(frozen=True)
class KMeansComparison:
    """Label-free measures as pairs (deep model, k-means), and why some of them are not counted."""

    agreement: float  # adjusted Rand index between the two labelings
    views: tuple[float, float]  # between labels of samples and of random views of them
    refits: tuple[float | None, float]  # between replicas, or between k-means runs
    neighbors: tuple[float, float]  # share of the ten nearest neighbors in the same cluster
    silhouettes_input: tuple[float, float]
    silhouettes_embedding: tuple[float, float]
    unfair: Mapping[str, str] = field(default_factory=dict)

    @property
    def verdict(self) -> tuple[str, str]:
        """One of "same", "deep", "k-means" and "unclear", and an explanation."""
        ari = f"(adjusted Rand index {self.agreement:.2f})"
        if self.agreement >= SAME:
            return "same", (f"K-means finds nearly the same clusters {ari}, so it would do if you "
                            "only need labels. The deep model adds its embedding.")
        fair = [(deep, plain) for name, (deep, plain) in
                (("views", self.views), ("refits", self.refits))
                if name not in self.unfair and deep is not None]
        votes = sum(np.sign(deep - plain) for deep, plain in fair if abs(deep - plain) > MARGIN)
        intro = f"The two methods found different clusters {ari}. "
        if votes > 0:
            return "deep", intro + "Those of the deep model are more stable."
        if votes < 0:
            return "k-means", intro + ("Those of k-means are more stable. More replicas (n_init), "
                                       'more epochs, preset="best" or effort="high" may change '
                                       "that.")
        reason = "Neither is clearly" if fair else "It cannot be said fairly which is"
        return "unclear", f"{intro}{reason} more stable: look at samples of both, or label a few."

    def rows(self) -> list[dict[str, Any]]:
        why = {name: f"; {reason}" for name, reason in self.unfair.items()}
        lines = (
            ("Same cluster after a small random change", self.views,
             "adjusted Rand index, 0 for chance" + why.get("views", "")),
            ("Same clusters with other seeds", self.refits,
             "mean adjusted Rand index between runs" + why.get("refits", "")),
            ("Nearest neighbors in the same cluster", self.neighbors,
             "share of the ten nearest in input space"),
            ("Silhouette in input space", self.silhouettes_input, "favors k-means"),
            ("Silhouette in the embedding", self.silhouettes_embedding, "favors the deep model"))
        return [{"what": what, "deep": deep, "plain": plain, "about": about}
                for what, (deep, plain), about in lines]


def compare(model: FittedModel, X: Any, rows: np.ndarray) -> KMeansComparison:
    """Compare on at most `SAMPLES` of these rows of X, the data that the model was fitted on."""
    rows = rows[draws.subset(_key("rows"), len(rows), SAMPLES).numpy()]
    x = model.preparation_.network_input(X[rows]).flatten(1).float()
    z = torch.from_numpy(model.map_samples(X[rows], lambda _, z: z))
    labelings = [torch.from_numpy(labels[rows].astype(np.int64))
                 for labels in (model.labels_, model.baseline_.labels_)]
    copied, augmented = exchanged(model), model.result_.settings[model.best_replica_].augmentations
    replicas = [candidate.labels[rows] for candidate in model.candidates_
                if candidate.failed is None]
    neighbors = min(10, len(rows) - 1)
    return KMeansComparison(
        agreement=metrics.ari(*labelings), views=_stability_under_views(model, X, rows),
        refits=(None if copied else _mean_ari(replicas), _kmeans_stability(model, x)),
        neighbors=_means(local_purity(x, labels, neighbors=neighbors) for labels in labelings),
        silhouettes_input=_means(squared_silhouette(x, labels) for labels in labelings),
        silhouettes_embedding=_means(squared_silhouette(z, labels) for labels in labelings),
        unfair={**({"views": SELECTED, "refits": COPIED} if copied else {}),
                **({"views": TRAINED} if augmented else {}),
                **({"refits": METHODS} if model.kept is None else {})})


def exchanged(model: FittedModel) -> bool:
    intervention = model.result_.settings[model.best_replica_].intervention
    return (len(model.replicas_) > 1 and isinstance(intervention, (Every, WhenSettled))
            and any(isinstance(step, Exchange) for step in intervention.steps))


def _stability_under_views(model: FittedModel, X: Any, rows: np.ndarray) -> tuple[float, float]:
    inputs = model.preparation_.inputs(X[rows]).to(torch.device("cpu"), torch.float64)
    augment = perturbation_of(inputs.sample_shape)
    labels, baseline = model.labels_[rows], model.baseline_.labels_[rows]

    def views(repeat: int) -> Iterator[Tensor]:
        for batch in torch.arange(len(rows)).split(BATCH_SIZE):
            key = draws.fold(_key("views"), batch, repeat)
            yield inputs.normalize(augment(inputs.take(batch), key))

    scores = []
    for repeat in range(VIEWS):
        plain = torch.cat([model.baseline_.assign(view.flatten(1)) for view in views(repeat)])
        scores.append((metrics.ari(labels, model.map_batches(views(repeat), Model.assign)),
                       metrics.ari(baseline, plain.numpy())))
    return tuple(np.mean(scores, axis=0).tolist())


def _kmeans_stability(model: FittedModel, x: Tensor) -> float:
    k, runs = len(model.baseline_.cluster_centers_), max(4, min(20, len(model.candidates_)))
    keys = draws.fold(_key("k-means"), torch.arange(runs))
    weighted = x * torch.from_numpy(model.baseline_.weights_)
    return _mean_ari([KMeans().fit(weighted, k, key).labels.numpy() for key in keys]) or 0.0


def _mean_ari(labelings: Sequence[np.ndarray]) -> float | None:
    pairs = [metrics.ari(*pair) for pair in combinations(labelings, 2)]
    return float(np.mean(pairs)) if pairs else None


def _means(values: Iterable[Tensor]) -> tuple[float, float]:
    deep, plain = (float(value.mean()) for value in values)
    return deep, plain


def _key(name: str) -> Tensor:
    return draws.fold(draws.key(0), "comparison", name)
