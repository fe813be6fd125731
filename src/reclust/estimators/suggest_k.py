"""Suggest a number of clusters without labels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from .. import draws
from ..data.accept import SampleSet, accept
from ..data.encoding import Feature
from ..data.inputs import Inputs, ResidentInputs
from ..data.preparation import Preparation
from ..ensemble import granularity, recipes
from ..ensemble.consensus import agreement, neighbor_graph
from ..ensemble.granularity import KSuggestion, candidate_ks
from ..ensemble.members import averaged_embedding, mixed_type_members
from ..ensemble.recipes import EFFORTS, mostly_categories, scales
from ..ensemble.views import standardized, table_views
from ..geometry import nearest_neighbors
from ..training.monitors.base import evenly_spread
from ..training.monitors.progress import Progress
from ..training.settings import Execution
from ..training.train import train
from ..utils.device import choose_device, resident_limit
from ..utils.progress import ProgressOption, progress_bar
from ..utils.threads import threads_for
from ..utils.values import check_int
from .kinds import augmentation_for, flat_rows, kind_of, lens_for

MAX_ROWS, NETWORK_ROWS = 1_000, 5_000  # that are clustered for each number; that networks learn
MAX_EMBEDDED = 2_000
FEW, FADED = 10, 0.8  # numbers of clusters to try in any case, and agreement that is not enough
VIEWS = ("clipped", "winsorized", "correlated")  # in which outliers are no clusters
NETWORKS, DRAWS = 4, 5  # that embed images; of data without clusters


def suggest_k(X: Any, *, least: int = 2, most: int | None = None, kind: str = "auto",
              image_shape: Sequence[int] | None = None, device: str = "auto", random_state: int = 0,
              progress: ProgressOption = None) -> KSuggestion:
    """Suggest the number of clusters on which clusterings by different methods agree.

    Parameters
    ----------
    X : samples
        As in `Reclust.fit`; a random part of many samples is used.
    least, most : int, optional
        Range of numbers to try; by default 2 to the root of half the samples.
    kind, image_shape, device
        As in `Reclust`.
    random_state : int, default=0
    progress : bool or callable, optional
        Show a bar, by default in a terminal only; or a function of the share that is done.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from reclust import suggest_k
    >>> X, _ = make_blobs(200, 5, centers=4, random_state=1)
    >>> suggest_k(X).k
    4
    """
    samples = accept(X, image_shape=image_shape, min_samples=2)
    seed = check_int("random_state", random_state, 0)
    return suggest(samples, kind, least, most, choose_device(device), seed, progress)


def suggest(samples: SampleSet, kind: str, least: int, most: int | None, device: torch.device,
            seed: int, progress: ProgressOption = None) -> KSuggestion:
    """Do what `suggest_k` does for samples that were accepted."""
    n = samples.n_samples
    least = max(2, check_int("the least number of clusters", least, 1))
    ks = candidate_ks(n, least, most and min(most, n))
    if not ks or ks[-1] > n:
        raise ValueError(f"No number of clusters is between {least} and {most} for {n} samples.")
    key = draws.fold(draws.key(seed), "suggest_k")
    features = samples.encoder.features if samples.encoder is not None else ()
    is_table = kind_of(samples, kind) == "table"
    rows = draws.subset(key, n, MAX_ROWS if is_table else NETWORK_ROWS).numpy()
    some = replace(samples, array=samples.array[rows])
    measured = []
    with (threads_for(512 * len(rows) * samples.n_features),
          progress_bar(len(ks), progress, desc="number of clusters", delay=1, leave=False) as bar):
        if is_table:
            flat = flat_rows(some)
            agreement_on = _table_agreement(flat, features, seed, device)
        else:
            views = _embeddings(some, seed, device, progress)
            agreement_on = partial(_view_agreement, views, seed, device)
        for k in ks:
            measured.append(agreement_on(k))
            bar.update()
            if is_table and k > FEW and max(measured[-2:]) < FADED * max(measured):
                break  # larger numbers hardly agree better again
        found = KSuggestion(ks[: len(measured)], np.array(measured), float("nan"), len(rows))
        if mostly_categories(features):
            return found
        shuffled = granularity.without_clusters
        nulls: list[Callable[[int], float]] = [
            _table_agreement(shuffled(standardized(flat), draw), (), seed, device) if is_table
            else partial(_view_agreement, {name: shuffled(view, draw) for name, view
                                           in views.items()}, seed, device)
            for draw in range(DRAWS)]
        found = replace(found, chance=max(on(found.k) for on in nulls))
        larger = found.larger
        if not found.clear and larger is not None:
            larger = replace(larger, chance=max(on(larger.k) for on in nulls))
            return larger if larger.clear else found
    return found


def _table_agreement(rows: np.ndarray, features: Sequence[Feature], seed: int,
                     device: torch.device) -> Callable[[int], float]:
    """Return a function of the number of clusters."""
    views = table_views(rows, scales(rows, features))
    tensors = {name: torch.from_numpy(view).float() for name, view in views.items()}
    graph = neighbor_graph(tensors.values())
    used = {name: views[name] for name in VIEWS}

    def agreement_on(k: int) -> float:
        if mostly_categories(features):
            members = mixed_type_members(rows, features, tensors, k, [seed])
            labels = np.stack([member.labels for member in members])
        else:
            labels = granularity.labelings(used, k, seed, device, mixtures=True)
        return agreement(labels, k, graph)

    return agreement_on


def _view_agreement(views: Mapping[str, np.ndarray], seed: int, device: torch.device,
                    k: int) -> float:
    return agreement(granularity.labelings(views, k, seed, device, mixtures=False), k)


def _embeddings(samples: SampleSet, seed: int, device: torch.device,
                progress: ProgressOption) -> dict[str, np.ndarray]:
    """Embed images and embeddings with neighbor networks: views (n, d)."""
    augment, effort, seeds = augmentation_for(samples), EFFORTS["normal"], range(seed, seed + 2)
    inputs: Inputs
    if augment is None:
        inputs = ResidentInputs(recipes.embedding_rows(flat_rows(samples), device))
        networks = dict(recipes.embedding_settings(2, samples.n_samples, effort))
    else:
        preparation = Preparation.fit(samples, standardize=True, lens=lens_for(samples, device))
        inputs = preparation.inputs(samples.array, device, limit=resident_limit(device))
        networks = {"images": recipes.image_settings(2, inputs, augment, effort)}
        seeds = range(seed, seed + NETWORKS)
    x = inputs.normalize(inputs.take(torch.arange(inputs.n_samples, device=device)))
    neighbors = None if augment is not None else nearest_neighbors(x, 10)
    bar, views = Progress(shown=False if callable(progress) else progress), {}
    for name, settings in networks.items():
        result = train(inputs, replace(settings, clustering=None), seeds=seeds,
                       monitors=[getattr(progress, "monitor", bar)],
                       execution=Execution(device=str(device)))
        for replica in result.living:
            z = (result.model(replica).to(x.device, x.dtype).embed(x) if neighbors is None
                 else averaged_embedding(result, replica, x, neighbors))
            some = evenly_spread(len(z), MAX_EMBEDDED, z.device)  # samples may be sorted by class
            views[f"{name}, network {replica}"] = z[some].double().cpu().numpy()
    return views
