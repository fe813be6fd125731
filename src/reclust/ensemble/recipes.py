"""Recipes of ensembles for tables, embeddings and images."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from ..data.augmentation.affine import Augmentation
from ..data.encoding import FLAG_SCALE, Feature
from ..data.inputs import Inputs
from ..geometry import nearest_neighbors
from ..representations import Neighbors
from ..training.settings import Settings
from ..utils import choices
from . import members
from .consensus import Clustering, by_kmeans, by_mixture, neighbor_graph, normalized_cut
from .members import Member, MemberTraining, neighbor_settings, voters
from .selection import SharedInformation
from .views import principal_components, table_views

Stage = tuple[str, Callable[[], Iterable[Member]]]
EMBEDDING_COLUMNS = 128
CUT_TOLERANCE = 0.02

EMBEDDING_NETWORKS = [(10, Neighbors((512,), 64, temperature=0.5)),
                      (30, Neighbors((512,), 64, temperature=0.2))]


@dataclass(frozen=True)
class Effort:
    """Seeds of each fast member, replicas of each network, and the training steps of a network."""

    seeds: int
    networks: int
    steps: int


EFFORTS = dict(zip(choices.EFFORTS, (Effort(1, 0, 100), Effort(3, 2, 200), Effort(6, 6, 400)),
                   strict=True))


@dataclass(frozen=True)
class EnsembleRecipe:
    """Stages, each of which makes some members, and a graph of neighbors (n, n).

    With `by_cut`, members that separate many more neighbors than the best one do not vote.
    `cluster` finds the consensus among the votes.
    """

    stages: list[Stage]
    graph: sparse.csr_matrix | None = None
    by_cut: bool = False
    cluster: Clustering = by_kmeans

    def votes(self, members: Sequence[Member]) -> np.ndarray:
        """Return the labels of the members that vote, (m, n)."""
        labels = np.stack([member.labels for member in voters(members)])
        if not self.by_cut or self.graph is None:
            return labels
        cuts = np.array([normalized_cut(found, self.graph) for found in labels])
        return labels[cuts <= 2 * cuts.min() + CUT_TOLERANCE]


def table_recipe(rows: np.ndarray, effort: Effort, seed: int, training: MemberTraining,
                 features: Sequence[Feature] = ()) -> EnsembleRecipe:
    """Mixtures on several views of a table (n, d); of each view the likelier half votes."""
    k, device = training.n_clusters, training.device
    views, seeds = table_views(rows, scales(rows, features)), range(seed, seed + effort.seeds)
    tensors = {name: torch.from_numpy(view).float().to(device) for name, view in views.items()}
    used = {name: view for name, view in views.items() if name != "ranks"}
    graph = neighbor_graph(tensors.values())
    if mostly_categories(features):  # Gaussian mixtures do worse on these
        return EnsembleRecipe([("mixtures of numbers and categories", partial(
            members.mixed_type_members, rows, features, tensors, k, seeds))], graph)
    return EnsembleRecipe([
        ("mixtures", partial(members.mixture_members, used, k, [one], device))
        for one in range(seed, seed + 2 * effort.seeds)], graph, cluster=by_mixture)


def embedding_recipe(rows: np.ndarray, effort: Effort, seed: int,
                     training: MemberTraining) -> EnsembleRecipe:
    """K-means and neighbor networks on embeddings (n, d), averaged with neighbors."""
    k, seeds = training.n_clusters, range(seed, seed + effort.seeds)
    x = embedding_rows(rows, training.device)
    near = nearest_neighbors(x, 10)
    stages: list[Stage] = [
        ("k-means", partial(members.kmeans_members, x, "embeddings", k, seeds[:1])),
        ("k-means", partial(members.kmeans_members, members.averaged(x, near),
                            "averaged with neighbors", k,
                            seeds if effort.networks == 0 else seeds[:1]))]
    networks = range(seed, seed + 2 * effort.networks)
    for view, settings in embedding_settings(k, len(rows), effort) if networks else ():
        stages.append(("neighbor networks", partial(
            members.embedding_members, x, near, settings, networks, view, training)))
    return EnsembleRecipe(stages, neighbor_graph([x]), by_cut=True)


def image_recipe(inputs: Inputs, augment: Augmentation, effort: Effort, seed: int,
                 training: MemberTraining, deep: Settings | None = None) -> EnsembleRecipe:
    """Neighbor networks on augmented images, and replicas of a deep clustering on a GPU.

    If there are both, only the half of each that is more stable under augmentation votes, and
    clusters of uneven size are not looked for.
    """
    settings = image_settings(training.n_clusters, inputs, augment, effort)
    replicas = 3 if training.device.type == "cpu" else 4
    families = [("neighbor network", settings, effort.networks * replicas)]
    if deep is not None:
        families.append(("deep clustering with BRB", deep, effort.networks * 5))
    select = None if deep is None else SharedInformation()
    return EnsembleRecipe([
        (name, partial(members.trained_members, inputs, settings, range(seed, seed + replicas),
                       name, "images", training, select, uneven=deep is None))
        for name, settings, replicas in families])


def scales(rows: np.ndarray, features: Sequence[Feature] = ()) -> np.ndarray:
    """Return the fixed scale of each column that must not be standardized, NaN for others, (d,)."""
    if features:
        return np.array([feature.scale for feature in features])
    is_flag = np.isin(rows, (0, 1)).all(0) & (rows != rows[0]).any(0)
    return np.where(is_flag, FLAG_SCALE, np.nan)


def mostly_categories(features: Sequence[Feature]) -> bool:
    kinds = [feature.kind for feature in features]
    return "level" in kinds or kinds.count("flag") > kinds.count("number")


def embedding_rows(rows: np.ndarray, device: torch.device) -> Tensor:
    """Return principal components (n, at most 128) with a mean square of 1."""
    reduced = principal_components(rows, EMBEDDING_COLUMNS)
    return torch.from_numpy(reduced / np.sqrt(np.square(reduced).mean())).float().to(device)


def embedding_settings(k: int, n_samples: int, effort: Effort) -> Iterator[tuple[str, Settings]]:
    steps = min(effort.steps * 5 // 2, max(100, n_samples // 2))  # few rows are learned sooner
    for neighbors, network in EMBEDDING_NETWORKS:
        yield f"{neighbors} neighbors", neighbor_settings(
            network, k, n_samples, steps=steps, lr=1e-3, neighbors=neighbors)


def image_settings(k: int, inputs: Inputs, augment: Augmentation, effort: Effort) -> Settings:
    on_cpu = inputs.device.type == "cpu"
    network = Neighbors((256, 128) if on_cpu else (1024, 512, 256), 64)
    return neighbor_settings(network, k, inputs.n_samples, lr=1e-3, neighbors=5, augment=augment,
                             steps=image_steps(effort.steps, inputs),
                             batch_size=256 if on_cpu else 512)


def image_steps(steps: int, inputs: Inputs) -> int:
    if inputs.device.type != "cpu":
        return steps * 15
    n = inputs.n_samples  # a few hundred images need fewer steps, many small ones gain by more
    return steps * min(10, max(1, min(3, n // 256), n // math.prod(inputs.sample_shape)))
