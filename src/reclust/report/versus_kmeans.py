"""Was the deep model worth it? What can be said without labels of it and of plain k-means on the same samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import draws, metrics
from ..data.augmentation.affine import perturbation_of
from ..geometry import local_purity, squared_silhouette
from ..interventions import Every, Exchange, WhenSettled
from ..interventions.reclustering.kmeans import KMeans, kmeans
from ..objectives import nearest
from ..training.result import Model
from .fitted_model import FittedModel

SAMPLES, VIEWS, CHUNK = 3000, 3, 512
SAME = 0.9
"""Adjusted Rand index from which two labelings are called nearly the same."""
MARGIN = 0.05
"""How much steadier one of them must be to be called so."""

CANNOT = ("No labels were used, so this cannot say which of the two is closer to the groups that you have in mind: clusters "
          "may be steady and still not those. Of several replicas the one is kept that such random changes as those of the "
          "first line (of images: rotations and shifts; of tables: noise) disturb least, which favours it a little. "
          "Silhouettes flatter whoever was trained in the space they are measured in, and are shown for orientation only.")
TRAINED = "without a vote: the model was trained to ignore such changes"
SELECTED = "without a vote: replicas that such changes disturb were replaced while they trained"
COPIED = "not known of this model: its replicas were copied from each other while they trained"


@dataclass(frozen=True)
class Evidence:
    """Pairs are (deep model, k-means). All numbers but silhouettes and neighbours are adjusted Rand indices.

    views: labels of samples against those of their random views. refits: mean over pairs of replicas, and of k-means runs from
    other seeds; None where replicas do not tell, as a single one does not. neighbours: share of a sample's ten nearest
    neighbours in input space that are in its cluster. silhouettes_input, silhouettes_embedding: of both
    labelings in both spaces. unfair: which of views and refits has no vote, and why.
    """

    agreement: float
    views: tuple[float, float]
    refits: tuple[float | None, float]
    neighbours: tuple[float, float]
    silhouettes_input: tuple[float, float]
    silhouettes_embedding: tuple[float, float]
    unfair: Mapping[str, str] = field(default_factory=dict)

    @property
    def verdict(self) -> tuple[str, str]:
        """One of "same", "deep", "k-means" and "unclear", and what that means in words."""
        if self.agreement >= SAME:
            return "same", (f"K-means finds nearly the same clusters (adjusted Rand index {self.agreement:.2f}). On this "
                            "evidence plain k-means would do for the labels; what the deep model adds is its embedding.")
        fair = [(deep, plain) for name, (deep, plain) in (("views", self.views), ("refits", self.refits))
                if name not in self.unfair and deep is not None]
        votes = sum(int(np.sign(deep - plain)) for deep, plain in fair if abs(deep - plain) > MARGIN)
        others = f"The two found different clusters (adjusted Rand index {self.agreement:.2f}). "
        if votes > 0:
            return "deep", others + "Those of the deep model are steadier: it was probably worth it."
        if votes < 0:
            return "k-means", others + ("Those of k-means are steadier: on this evidence the deep model was not worth it as it "
                                        "is. More replicas (n_init), more epochs or preset=\"best\" may change that.")
        found = "Neither is clearly steadier" if fair else "Nothing here could fairly tell which of them are steadier"
        return "unclear", others + found + ": look at samples of both, or score a few that you know."

    def rows(self) -> list[dict[str, Any]]:
        """The evidence as lines of a table."""
        why = {name: f"; {reason}" for name, reason in self.unfair.items()}
        said = (("Same cluster after a small random change", self.views,
                 "adjusted Rand index, 0 for chance" + why.get("views", "")),
                ("Same clusters from other seeds", self.refits,
                 "mean adjusted Rand index between runs" + why.get("refits", "")),
                ("Nearest neighbours in the same cluster", self.neighbours, "share of the ten nearest in input space"),
                ("Silhouette in input space", self.silhouettes_input, "flatters k-means"),
                ("Silhouette in the embedding", self.silhouettes_embedding, "flatters the deep model"))
        return [{"what": what, "deep": pair[0], "plain": pair[1], "about": about} for what, pair, about in said]


def compare(model: FittedModel, X: Any, rows: np.ndarray) -> Evidence:
    """The evidence from at most SAMPLES of these rows of X, which the model was fitted on."""
    rows = np.sort(rows[draws.permutation(_key("rows"), len(rows)).numpy()[:SAMPLES]])
    x = model.preparation_.network_input(X[rows]).flatten(1).float()
    z = torch.from_numpy(model.map_samples(X[rows], lambda _, z: z))
    deep, plain = (torch.from_numpy(labels[rows].astype(np.int64)) for labels in (model.labels_, model.baseline_.labels_))
    neighbours, copied = min(10, len(rows) - 1), exchanged(model)
    between = None if copied else _between([one.labels[rows] for one in model.replicas_ if one.failed is None])
    return Evidence(
        agreement=metrics.ari(deep, plain),
        views=_under_views(model, X, rows),
        refits=(between, _k_means_again(model, x)),
        neighbours=_pair(float(local_purity(x, own, neighbors=neighbours).mean()) for own in (deep, plain)),
        silhouettes_input=_pair(_silhouette(x, own) for own in (deep, plain)),
        silhouettes_embedding=_pair(_silhouette(z, own) for own in (deep, plain)),
        unfair={**({"views": SELECTED, "refits": COPIED} if copied else {}),
                **({"views": TRAINED} if model.result_.settings[model.best_replica_].augmentations else {})},
    )


def exchanged(model: FittedModel) -> bool:
    """Whether replicas were copied from each other, so that what they agree on says nothing of other seeds."""
    intervention = model.result_.settings[model.best_replica_].intervention
    return (len(model.replicas_) > 1 and isinstance(intervention, (Every, WhenSettled))
            and any(isinstance(step, Exchange) for step in intervention.steps))


def _under_views(model: FittedModel, X: Any, rows: np.ndarray) -> tuple[float, float]:
    inputs = model.preparation_.inputs(X[rows]).to(torch.device("cpu"), torch.float64)
    augment, centers = perturbation_of(inputs.sample_shape), torch.from_numpy(model.baseline_.cluster_centers_).double()
    found = []
    for again in range(VIEWS):
        def views(again: int = again) -> Iterator[Tensor]:
            for some in torch.arange(len(rows)).split(CHUNK):
                yield inputs.normalize(augment(inputs.take(some), draws.fold(_key("views"), some, again)))

        deep = model.map_batches(views(), Model.assign)
        plain = torch.cat([nearest(view.flatten(1), centers) for view in views()]).numpy()
        found.append((metrics.ari(model.labels_[rows], deep), metrics.ari(model.baseline_.labels_[rows], plain)))
    return _pair(np.mean(found, axis=0).tolist())


def _k_means_again(model: FittedModel, x: Tensor) -> float:
    """Between k-means runs of other seeds, each as that beside the fit, as many as there are replicas and at least four."""
    runs = max(4, len(model.replicas_))
    keys = draws.fold(_key("k-means"), torch.arange(runs))
    labels = [kmeans(x, len(model.baseline_.cluster_centers_), key=key, n_init=KMeans().n_init).labels.numpy() for key in keys]
    between = _between(labels)
    assert between is not None
    return between


def _between(labelings: list[np.ndarray]) -> float | None:
    pairs = [metrics.ari(one, other) for i, one in enumerate(labelings) for other in labelings[:i]]
    return float(np.mean(pairs)) if pairs else None


def _silhouette(points: Tensor, labels: Tensor) -> float:
    return float(squared_silhouette(points, labels).mean())


def _pair(numbers: Any) -> tuple[float, float]:
    deep, plain = numbers
    return deep, plain


def _key(name: str) -> Tensor:
    return draws.fold(draws.key(0), "comparison", name)
