"""Recipes of ensembles for tables, embeddings and images."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from ..data.augmentation.affine import Augmentation
from ..data.augmentation.tables import SwapValues
from ..data.encoding import FLAG_SCALE, Feature
from ..data.inputs import Inputs, ResidentInputs
from ..geometry import nearest_neighbors
from ..representations import Neighbors
from ..training.settings import Settings
from ..utils import choices
from .consensus import neighbor_graph
from .members import (
    MIXTURES,
    Member,
    MemberTraining,
    kmeans_members,
    mixed_members,
    mixture_members,
    neighbor_settings,
    trained_members,
)
from .selection import SharedInformation
from .views import principal_components, table_views

Stage = tuple[str, Callable[[], Iterable[Member]]]
EMBEDDING_COLUMNS = 128

TABLE_NETWORKS: list[tuple[str, Neighbors, Augmentation | None]] = [
    ("standardized", Neighbors((128,), 8, "student"), None),
    ("clipped", Neighbors((128,), 8, "student"), None),
    ("clipped", Neighbors((128,), 32), SwapValues(0.2))]

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
    """Stages, each of which makes some members, and a graph of neighbors (n, n)."""

    stages: list[Stage]
    graph: sparse.csr_matrix | None = None


def table_recipe(rows: np.ndarray, effort: Effort, seed: int, training: MemberTraining,
                 features: Sequence[Feature] = ()) -> EnsembleRecipe:
    """Mixtures and neighbor networks on several views of a table (n, d)."""
    k, device = training.n_clusters, training.device
    is_flag = np.isin(rows, (0, 1)).all(0) & (rows != rows[0]).any(0)
    scales = (np.array([feature.scale for feature in features]) if features
              else np.where(is_flag, FLAG_SCALE, np.nan))
    views, seeds = table_views(rows, scales), range(seed, seed + effort.seeds)
    tensors = {name: torch.from_numpy(view).float().to(device) for name, view in views.items()}
    used = {name: view for name, view in views.items() if name != "ranks"}
    stages: list[Stage] = [
        (f"mixtures, {covariance} covariance",
         partial(mixture_members, used, covariance, k, seeds, device)) for covariance in MIXTURES]
    kinds = [feature.kind for feature in features]
    if "level" in kinds or kinds.count("flag") > kinds.count("number"):
        # Networks and Gaussian mixtures do worse on categories.
        return EnsembleRecipe([("mixtures of numbers and categories", partial(
            mixed_members, rows, features, tensors, k, seeds))], neighbor_graph(tensors.values()))
    for view, network, augment in TABLE_NETWORKS if effort.networks else ():
        settings = neighbor_settings(network, k, len(rows), steps=effort.steps, augment=augment,
                                     batch_size=128)
        stages.append(_networks(tensors[view], settings, view, seed, effort.networks, training))
    return EnsembleRecipe(stages, neighbor_graph(tensors.values()))


def embedding_recipe(rows: np.ndarray, effort: Effort, seed: int,
                     training: MemberTraining) -> EnsembleRecipe:
    """K-means, also of rows averaged with neighbors, and neighbor networks on embeddings (n, d)."""
    k, seeds = training.n_clusters, range(seed, seed + effort.seeds)
    reduced = principal_components(rows, EMBEDDING_COLUMNS)
    scaled = reduced / np.sqrt(np.square(reduced).mean())
    x = torch.from_numpy(scaled).float().to(training.device)
    near = nearest_neighbors(x, 10)
    averaged = x
    for _ in range(2):
        averaged = torch.cat([averaged.unsqueeze(1), averaged[near]], 1).mean(1)
    averaged = torch.nn.functional.normalize(averaged, dim=1)
    stages: list[Stage] = [
        ("k-means", partial(kmeans_members, x, "embeddings", k, seeds[:1])),
        ("k-means", partial(kmeans_members, averaged, "averaged with neighbors", k,
                            seeds if effort.networks == 0 else seeds[:1]))]
    for neighbors, network in EMBEDDING_NETWORKS if effort.networks else ():
        settings = neighbor_settings(network, k, len(rows), steps=effort.steps * 5 // 2, lr=1e-3,
                                     neighbors=neighbors)
        stages.append(_networks(x, settings, f"{neighbors} neighbors", seed, 2 * effort.networks,
                                training))
    return EnsembleRecipe(stages, neighbor_graph([x]))


def image_recipe(inputs: Inputs, augment: Augmentation, effort: Effort, seed: int,
                 training: MemberTraining, deep: Settings | None = None) -> EnsembleRecipe:
    """Neighbor networks on augmented images, and replicas of a deep clustering on a GPU.

    Their score is how stable their clusters are under augmentation.
    """
    on_cpu = training.device.type == "cpu"
    network = Neighbors((256, 128) if on_cpu else (1024, 512, 256), 64)
    settings = neighbor_settings(network, training.n_clusters, inputs.n_samples, lr=1e-3,
                                 steps=effort.steps * (3 if on_cpu else 15), neighbors=5,
                                 batch_size=256 if on_cpu else 512, augment=augment)
    families = [("neighbor network", settings, effort.networks * (3 if on_cpu else 4))]
    if deep is not None:
        families.append(("deep clustering with BRB", deep, effort.networks * 5))
    return EnsembleRecipe([
        (name, partial(trained_members, inputs, settings, range(seed, seed + replicas), name,
                       "images", training, SharedInformation()))
        for name, settings, replicas in families])


def _networks(x: Tensor, settings: Settings, view: str, seed: int, count: int,
              training: MemberTraining) -> Stage:
    network = settings.representation
    assert isinstance(network, Neighbors)
    method = f"neighbor network, {network.kernel} kernel"
    return "neighbor networks", partial(
        trained_members, ResidentInputs(x), settings, range(seed, seed + count), method, view,
        training)
