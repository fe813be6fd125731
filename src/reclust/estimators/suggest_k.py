"""Suggest a number of clusters without labels: the largest that halves of the data agree on."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import torch

from .. import draws, metrics
from ..data.accept import accept
from ..data.dataset import dense_rows
from ..data.inputs import Inputs
from ..data.lens import Lens
from ..data.preparation import Preparation
from ..ensemble.selection import Candidates, Silhouette
from ..interventions import BRB, Recluster
from ..interventions.reclustering.kmeans import KMeans
from ..objectives import IDECObjective
from ..representations import Autoencoder
from ..training.monitors.base import Snapshot
from ..training.settings import Execution, Schedule, Settings
from ..training.train import train
from ..utils.device import choose_device
from ..utils.progress import ProgressOption, progress_bar
from ..utils.values import check_int, check_ints

STRONG = 0.8  # prediction strength from which clusters count as found again
MAX_SAMPLES, MAX_K = 4000, 14
SAMPLES_PER_CLUSTER = 4  # two in each half


@dataclass(frozen=True)
class KSuggestion:
    """Result of `suggest_k`: measures for each number of clusters, printed as a table.

    Parameters
    ----------
    ks : tuple of int
        Numbers of clusters.
    strength, agreement, resets, silhouette : ndarray of shape (K, 2)
        Means over models and their standard errors, which do not cover the variation of other data.
        Prediction strength between models of two halves (the share of pairs in a cluster that the
        other model also puts together, in the worst cluster), adjusted Rand index between such
        models, and between labels before successive resets, and silhouette in the embedding.
    n_samples : int

    Examples
    --------
    >>> import numpy as np
    >>> from reclust import KSuggestion
    >>> measures = np.array([[0.9, 0.05], [0.85, 0.05], [0.5, 0.05]])
    >>> KSuggestion((2, 3, 4), measures, measures, measures, measures, n_samples=100).k
    3
    """

    ks: tuple[int, ...]
    strength: np.ndarray
    agreement: np.ndarray
    resets: np.ndarray
    silhouette: np.ndarray
    n_samples: int

    @property
    def k(self) -> int | None:
        """The largest number of clusters that are found again; None if there is none."""
        return max((k for k, mean in zip(self.ks, self.strength[:, 0], strict=True)
                    if mean >= STRONG), default=None)

    @property
    def plausible(self) -> tuple[int, ...]:
        """Numbers whose strength is above the threshold or within two standard errors of it."""
        return tuple(k for k, (mean, error) in zip(self.ks, self.strength, strict=True)
                     if mean + 2 * np.nan_to_num(error) >= STRONG)

    @property
    def by_silhouette(self) -> int:
        """The number with the highest silhouette, which exists even without clusters."""
        return self.ks[int(self.silhouette[:, 0].argmax())]

    def __str__(self) -> str:
        lines = ["  k   found again    agreement   across resets     silhouette"]
        measures = (self.strength, self.agreement, self.resets, self.silhouette)
        for k, *row in zip(self.ks, *measures, strict=True):
            cells = [f"{mean:7.2f} " + ("      " if np.isnan(error) else f"± {error:.2f}")
                     for mean, error in row]
            lines.append(f"{k:>3}" + " ".join(cells) + ("  <-" if k == self.k else ""))
        others = ", ".join(str(k) for k in self.plausible if k != self.k)
        answer = (f"{self.k} clusters: the largest number that is found again from half of the "
                  f"samples.{others and f' Also plausible: {others}.'} The silhouette suggests "
                  f"{self.by_silhouette}.")
        if self.k is None:
            answer = (f"No clear answer: no number of clusters is found again from half of the "
                      f"{self.n_samples} samples (prediction strength below {STRONG:g})."
                      f"{others and f' Closest: {others}.'} There may be no separate groups, or "
                      "too few samples.")
        return "\n".join([*lines, "", answer])

    def plot(self, ax: Any = None) -> Any:
        """Plot strength and silhouette with two standard errors; return the matplotlib axes."""
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")[1]
        for measure, label, color, style in ((self.strength, "found again", "#0072b2", "o-"),
                                             (self.silhouette, "silhouette", "#8a8f96", "s--")):
            ax.errorbar(self.ks, measure[:, 0], yerr=2 * measure[:, 1], fmt=style, color=color,
                        label=label, capsize=2, markersize=4)
        ax.axhline(STRONG, color="#d55e00", linewidth=0.8, linestyle=":")
        if self.k is not None:
            ax.axvline(self.k, color="#d55e00", linewidth=0.8)
        ax.set(xlabel="number of clusters k", ylim=(min(0.0, self.silhouette[:, 0].min()), 1.05),
               title="no clear answer" if self.k is None else f"k = {self.k}", xticks=self.ks)
        ax.legend(frameon=False)
        return ax


def largest_k(n_samples: int) -> int:
    return max(2, min(MAX_K, n_samples // SAMPLES_PER_CLUSTER))


def suggest_k(X: Any, ks: Iterable[int] | None = None, *, n_init: int = 3, splits: int = 2,
              image_shape: Sequence[int] | None = None, standardize: bool = True,
              lens: Lens | None = None, settings: Settings | None = None, device: str = "auto",
              random_state: int = 0, progress: ProgressOption = None) -> KSuggestion:
    """Suggest the largest number of clusters that is found again from another half of the data.

    Parameters
    ----------
    X : samples
        As in `DeepClustering.fit`; at most 4000 of them are used, drawn at random.
    ks : iterable of int, optional
        Numbers of clusters to try; by default 2 to 14, or to a quarter of the samples.
    n_init, splits : int, default=3, 2
        Replicas that train on each half, and how often the data is split.
    image_shape, standardize, lens, device
        As in `DeepClustering`.
    settings : Settings, optional
        How to train; by default a short run of IDEC with BRB.
    random_state : int, default=0
    progress : bool or callable, optional
        Show a bar, by default in a terminal only; or a function of the share that is done.

    Returns
    -------
    KSuggestion

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from reclust import suggest_k
    >>> X, _ = make_blobs(40, 5, centers=2, random_state=0)
    >>> suggest_k(X, [2, 3], n_init=1, splits=1).strength.shape
    (2, 2)
    """
    n_init, splits = check_int("n_init", n_init, 1), check_int("splits", splits, 1)
    samples = accept(X, image_shape=image_shape, min_samples=2)
    key = draws.fold(draws.key(check_int("random_state", random_state, 0)), "suggest_k")
    chosen = np.sort(draws.permutation(key, samples.n_samples)[:MAX_SAMPLES].numpy())
    X = dense_rows(samples.array, chosen)
    ks = range(2, largest_k(len(X)) + 1) if ks is None else ks
    ks = tuple(sorted(set(check_ints("ks", ks, 2))))
    if not ks or len(X) < SAMPLES_PER_CLUSTER * ks[-1]:
        raise ValueError(f"ks={ks} does not suit {len(X)} samples: try numbers of clusters from 2 "
                         f"to {len(X) // SAMPLES_PER_CLUSTER} (--from, --to).")
    preparation = Preparation.fit(replace(samples, array=X), standardize=standardize,
                                  lens=lens or Lens())
    settings = settings or _short_settings(len(X) // 2)
    everything = preparation.inputs(X).to(choose_device(device), torch.float32)
    compared: list[list[tuple[np.ndarray, ...]]] = [[] for _ in ks]
    with progress_bar(2 * splits * len(ks), progress, desc="suggest_k", unit="fit", delay=1.0,
                      leave=False) as bar:
        for split_key in (draws.fold(key, split) for split in range(splits)):
            order = draws.permutation(draws.fold(split_key, "halves"), len(X)).numpy()
            halves = [np.sort(half) for half in np.array_split(order, 2)]
            models: list[list[_Models]] = [[], []]
            for number, rows in enumerate(halves):
                seeds = draws.integers(draws.fold(split_key, "seeds", number), 2**31 - 1, (n_init,))
                for model in _train(preparation.inputs(X[rows]), ks, settings, seeds.tolist(),
                                    Execution(device=device), everything):
                    models[number].append(model)
                    bar.update()
            for i, k in enumerate(ks):
                compared[i].append(_compare(k, halves, models[0][i], models[1][i]))
    strength, agreement, resets, silhouette = (
        np.stack([_mean_and_error([split[measure] for split in by_split]) for by_split in compared])
        for measure in range(4))
    return KSuggestion(ks, strength, agreement, resets, silhouette, len(X))


def prediction_strength(labels: np.ndarray, predicted: np.ndarray, k: int) -> float:
    """Return the share of pairs in a cluster that `predicted` keeps, in the worst of k clusters."""
    table = metrics.contingency(labels, predicted)
    sizes = table.sum(1)
    if len(sizes) < k or sizes.min() < 2:
        return 0.0
    return float(((table * (table - 1)).sum(1) / (sizes * (sizes - 1))).min())


class _Models(NamedTuple):
    labels: np.ndarray  # of all samples, (r, n)
    resets: np.ndarray  # (r,)
    silhouette: np.ndarray  # (r,)


def _train(inputs: Inputs, ks: Sequence[int], settings: Settings, seeds: list[int],
           execution: Execution, everything: Inputs) -> Iterator[_Models]:
    """Train replicas on one half for each k, from one pretraining, and label all samples."""
    start = None
    if settings.pretraining is not None:
        start = train(inputs, replace(settings, clustering=None), seeds=seeds, execution=execution)
    for k in ks:
        labelings: list[np.ndarray] = []
        result = train(inputs, replace(settings, n_clusters=k), seeds=seeds, start=start,
                       monitors=[partial(_keep_labels, labelings)], execution=execution)
        trained, device = result.living, everything.device
        labels = [result.model(i).to(device, torch.float32).predict(everything) for i in trained]
        scores = Silhouette()(Candidates(result, inputs.to(device, torch.float32)))
        yield _Models(np.stack(labels), _mean_ari(labelings)[trained], scores[trained].numpy())


def _keep_labels(labelings: list[np.ndarray], snapshot: Snapshot) -> None:
    """Keep the labels before each reset and at the end; a monitor."""
    last = snapshot.epoch == snapshot.epochs - 1
    if (snapshot.phase == "clustering" and snapshot.moment == "epoch"
            and (last or snapshot.fires_next.any())):
        labelings.append(snapshot.labels.cpu().numpy())


def _mean_ari(labelings: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean ARI of successive labels (r, n) for each replica, (r,); NaN for one."""
    if len(labelings) < 2:
        return np.full(len(labelings[0]), np.nan)
    return np.mean([[metrics.ari(*both) for both in zip(before, after, strict=True)]
                    for before, after in pairwise(labelings)], axis=0)


def _compare(k: int, halves: Sequence[np.ndarray], first: _Models,
             second: _Models) -> tuple[np.ndarray, ...]:
    """Return strength and agreement of each pair of models (r, r), resets and silhouette (2 r,)."""
    first_half, second_half = halves
    strength, agreement = np.zeros((2, len(first.labels), len(second.labels)))
    for (i, a), (j, b) in product(enumerate(first.labels), enumerate(second.labels)):
        strength[i, j] = np.mean([prediction_strength(a[first_half], b[first_half], k),
                                  prediction_strength(b[second_half], a[second_half], k)])
        agreement[i, j] = metrics.ari(a, b)
    return (strength, agreement, np.concatenate([first.resets, second.resets]),
            np.concatenate([first.silhouette, second.silhouette]))


def _mean_and_error(measured: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean over splits and models and its jackknife error."""
    # Models are left out one by one, since pairs that share a model are not independent.
    everything = np.concatenate([values.ravel() for values in measured])
    means = []
    for i, values in enumerate(measured):
        rest = [others.ravel() for j, others in enumerate(measured) if j != i]
        for axis, size in enumerate(values.shape):
            left = [np.concatenate([*rest, np.delete(values, place, axis).ravel()])
                    for place in range(size)]
            means += [numbers.mean() for numbers in left if len(numbers)]
    m = len(means)
    error = np.sqrt((m - 1) / m * np.square(means - np.mean(means)).sum()) if m > 1 else np.nan
    return np.array([everything.mean(), error])


def _short_settings(n: int) -> Settings:
    batch = int(np.clip(n // 2, 8, 1024))
    return Settings(
        2, IDECObjective(), Autoencoder(hidden=(128, 64), embedding=10),
        intervention=BRB(interval=8, method=KMeans(n_init=3)),
        pretraining=Schedule(epochs=40, batch_size=batch, views=("clean",)),
        clustering=Schedule(epochs=20, batch_size=batch),
        first_centers=Recluster(KMeans(n_init=5), subsample=None))
