"""How many clusters? What two halves of the data agree on, k by k, without labels. docs/guides/choosing_k.md says why.

Shapes: n samples, r replicas, K numbers of clusters that are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import torch

from .. import draws, metrics
from ..data.accept import accept
from ..data.inputs import Inputs
from ..data.lens import Lens
from ..data.preparation import Preparation
from ..data.streams import dense_rows
from ..interventions import BRB, Recluster
from ..interventions.reclustering.kmeans import KMeans
from ..objectives import IDECObjective
from ..representations import Autoencoder, ConvAutoencoder
from ..training.monitors.base import Snapshot
from ..training.result import Result
from ..training.settings import Execution, Schedule, Settings
from ..training.train import train
from ..utils.device import choose_device
from ..utils.progress import ProgressOption, progress_bar
from ..utils.values import check_int, check_ints
from .selection import Candidates, Silhouette

STRONG = 0.8
"""Prediction strength from which clusters count as found again."""
LIMIT = 4000
"""Samples that are used; of more, so many are drawn at random."""
MOST = 14
"""The largest number of clusters that is tried unless told otherwise."""
EACH = 4
"""Samples that there must be for each cluster: two in each half."""


@dataclass(frozen=True)
class KSuggestion:
    """What was found for each number of clusters in `ks`; every measure is (K, 2), a mean and its standard error.

    strength: prediction strength between models of two halves. Of each cluster, the share of pairs of its samples that the
        model of the other half puts together, too; the worst cluster counts.
    agreement: adjusted Rand index between models of two halves.
    resets: adjusted Rand index of labels before a reset and before the next.
    silhouette: of each model's clusters in its own embedding, a second opinion.

    Errors are those of the mean over models and say nothing about what other data would give.
    """

    ks: tuple[int, ...]
    strength: np.ndarray
    agreement: np.ndarray
    resets: np.ndarray
    silhouette: np.ndarray
    n_samples: int

    @property
    def k(self) -> int | None:
        """The largest number of clusters that are found again; None where there is no clear answer."""
        strong = [k for k, (mean, _) in zip(self.ks, self.strength, strict=True) if mean >= STRONG]
        return max(strong, default=None)

    @property
    def plausible(self) -> tuple[int, ...]:
        """Those whose strength is within two standard errors of what counts as found again, or above."""
        return tuple(k for k, (mean, error) in zip(self.ks, self.strength, strict=True)
                     if mean + 2 * np.nan_to_num(error) >= STRONG)

    @property
    def by_silhouette(self) -> int:
        """The number with the highest silhouette. There always is one, structure or not."""
        return self.ks[int(self.silhouette[:, 0].argmax())]

    def __str__(self) -> str:
        lines = ["  k   found again    agreement   across resets     silhouette"]
        for k, *measures in zip(self.ks, self.strength, self.agreement, self.resets, self.silhouette, strict=True):
            cells = [f"{mean:7.2f} " + ("      " if np.isnan(error) else f"± {error:.2f}") for mean, error in measures]
            lines.append(f"{k:>3}" + " ".join(cells) + ("  <-" if k == self.k else ""))
        return "\n".join([*lines, "", self.words])

    @property
    def words(self) -> str:
        """The answer in a few sentences."""
        others = [k for k in self.plausible if k != self.k]
        if self.k is None:
            near = f" {_listed(others)} came closest." if others else ""
            return (f"No clear answer: no number of clusters is found again from half of the {self.n_samples} samples "
                    f"(prediction strength below {STRONG:g}).{near} There may be no separate groups, or too few samples.")
        also = f" {_listed(others)} {'is' if len(others) == 1 else 'are'} plausible, too." if others else ""
        second = self.by_silhouette
        opinion = "The silhouette says the same." if second == self.k else f"The silhouette would rather have {second}."
        return f"{self.k} clusters: the largest number that is found again from half of the samples.{also} {opinion}"

    def plot(self, ax: Any = None) -> Any:
        """Strength and silhouette over k, with two standard errors, on matplotlib axes (extra `plot`), which are returned."""
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")[1]
        lines = ((self.strength, "found again", "#0072b2", "o-"), (self.silhouette, "silhouette", "#8a8f96", "s--"))
        for measure, label, color, style in lines:
            mean, error = measure.T
            ax.errorbar(self.ks, mean, yerr=2 * error, fmt=style, color=color, label=label, capsize=2, markersize=4)
        ax.axhline(STRONG, color="#d55e00", linewidth=0.8, linestyle=":")
        if self.k is not None:
            ax.axvline(self.k, color="#d55e00", linewidth=0.8)
        ax.set(xlabel="number of clusters k", ylim=(min(0.0, float(self.silhouette[:, 0].min())), 1.05),
               title="no clear answer" if self.k is None else f"k = {self.k}")
        ax.set_xticks(self.ks)
        ax.legend(frameon=False)
        return ax


def largest_k(n_samples: int) -> int:
    """Up to which number of clusters to try, where nobody said so."""
    return max(2, min(MOST, n_samples // EACH))


def suggest_k(X: Any, ks: Iterable[int] | None = None, *, n_init: int = 3, splits: int = 2,
              image_shape: Sequence[int] | None = None, standardize: bool = True, lens: Lens | None = None,
              settings: Settings | None = None, device: str = "auto", random_state: int = 0,
              progress: ProgressOption = None) -> KSuggestion:
    """Which number of clusters is found again from another half of the data.

    X: samples as `DeepClustering.fit` takes them; at most LIMIT of them are used, drawn at random.
    ks: numbers of clusters to try; None is 2 to 14, or to a quarter of the samples where that is less.
    n_init: replicas that train side by side on each half. splits: how often the data is halved.
    image_shape: (height, width) or (height, width, channels) of images that are given as flat rows.
    standardize: scale each feature first, as in `DeepClustering`.
    lens: through which to look at images, as in `DeepClustering`; None is none.
    settings: how to train, None for a short run of IDEC with BRB. Its representation must not depend on the number of
        clusters (`Autoencoder(embedding=10)`), since it is pretrained once for all of them.
    device: as in `DeepClustering`. progress: None shows a bar where somebody is watching a terminal; a function is told the
        share that is done.
    """
    tried = None if ks is None else tuple(sorted(set(check_ints("ks", ks, 2))))
    if tried == ():
        raise ValueError("ks is empty: give numbers of clusters from the least to the most, such as range(2, 15).")
    if not isinstance(standardize, (bool, np.bool_)):
        raise ValueError(f"standardize must be True or False, got {standardize!r}.")
    n_init, splits = check_int("n_init", n_init, 1), check_int("splits", splits, 1)
    samples = accept(X, image_shape=image_shape, min_samples=2)
    key = draws.fold(draws.key(check_int("random_state", random_state, 0)), "suggest_k")
    X = dense_rows(samples.array, np.sort(draws.permutation(key, samples.n_samples)[:LIMIT].numpy()))
    ks = tried or tuple(range(2, largest_k(len(X)) + 1))
    _check_enough(len(X), ks[-1])
    settings = settings or _usual(len(X) // 2)
    _check_embedding(settings)
    preparation = Preparation.fit(replace(samples, array=X), standardize=standardize, lens=lens or Lens())
    if lens is None:
        preparation.warn_if_light_varies(X)
    everything = preparation.inputs(X).to(choose_device(device), torch.float32)
    trial = _Trial(ks, n_init, settings, Execution(device=device), everything, lambda rows: preparation.inputs(X[rows]))
    with progress_bar(2 * splits * len(ks), progress, desc="suggest_k", unit="fit", delay=1.0, leave=False) as fits:
        halvings = [trial.halving(draws.fold(key, split), fits.update) for split in range(splits)]
    measures = {name: np.stack([_mean_and_error([one[i][name] for one in halvings]) for i in range(len(ks))])
                for name in ("strength", "agreement", "resets", "silhouette")}
    return KSuggestion(ks, **measures, n_samples=len(X))


def prediction_strength(labels: np.ndarray, predicted: np.ndarray, k: int) -> float:
    """The share of pairs of samples in a cluster that another model puts together, too, (n,) each, in the worst of k clusters;
    one that has fewer than two samples is as bad as can be."""
    table = metrics.contingency(labels, predicted)
    sizes = table.sum(1)
    if len(sizes) < k or sizes.min() < 2:
        return 0.0
    return float(((table * (table - 1)).sum(1) / (sizes * (sizes - 1))).min())


@dataclass(frozen=True)
class _Trial:
    """everything: all samples. some: those of these rows."""

    ks: tuple[int, ...]
    n_init: int
    settings: Settings
    execution: Execution
    everything: Inputs
    some: Callable[[np.ndarray], Inputs]

    def halving(self, key: torch.Tensor, tick: Callable[[], Any]) -> list[dict[str, np.ndarray]]:
        """For each k: strength and agreement of each pair of models, (r, r), resets and silhouette of each model, (2 r,)."""
        order = draws.permutation(draws.fold(key, "halves"), self.everything.n_samples).numpy()
        halves = [np.sort(half) for half in np.array_split(order, 2)]
        found = []
        for number, rows in enumerate(halves):
            seeds = draws.integers(draws.fold(key, "seeds", number), 2**31 - 1, (self.n_init,)).tolist()
            found.append(self._half(self.some(rows), seeds, tick))
        return [_compared(k, halves, one, other) for k, one, other in zip(self.ks, *found, strict=True)]

    def _half(self, inputs: Inputs, seeds: Sequence[int], tick: Callable[[], Any]) -> list[_Half]:
        start = None
        if self.settings.pretraining is not None:
            start = train(inputs, replace(self.settings, clustering=None), seeds=seeds, execution=self.execution)
        made = []
        for k in self.ks:
            watch = _BeforeResets()
            result = train(inputs, replace(self.settings, n_clusters=k), seeds=seeds, start=start, monitors=[watch],
                           execution=self.execution)
            made.append(_Half.of(result, inputs, self.everything, watch))
            tick()
        return made


@dataclass(frozen=True)
class _Half:
    """What the living replicas of one half and one k say: labels (r, n) of all samples, resets (r,), silhouette (r,)."""

    labels: np.ndarray
    resets: np.ndarray
    silhouette: np.ndarray

    @classmethod
    def of(cls, result: Result, inputs: Inputs, everything: Inputs, watch: _BeforeResets) -> _Half:
        device = everything.device
        labels = np.stack([result.model(i).to(device, torch.float32).predict(everything) for i in result.living])
        scores = Silhouette()(Candidates(result, inputs.to(device, torch.float32)))
        return cls(labels, watch.agreement()[result.living], scores[result.living].numpy())


class _BeforeResets:
    """A monitor that remembers the labels right before each reset, and at the end."""

    def __init__(self) -> None:
        self._labels: list[np.ndarray] = []

    def __call__(self, snapshot: Snapshot) -> None:
        last = snapshot.epoch == snapshot.epochs - 1
        if snapshot.phase == "clustering" and snapshot.moment == "epoch" and (last or snapshot.fires_next.any()):
            self._labels.append(snapshot.labels.cpu().numpy())

    def agreement(self) -> np.ndarray:
        """(r,); not a number where nothing was reset."""
        pairs = list(zip(self._labels, self._labels[1:], strict=False))
        if not pairs:
            return np.full(len(self._labels[0]), np.nan)
        return np.mean([[metrics.ari(*both) for both in zip(one, other, strict=True)] for one, other in pairs], axis=0)


def _compared(k: int, halves: Sequence[np.ndarray], one: _Half, other: _Half) -> dict[str, np.ndarray]:
    strength, agreement = np.zeros((2, len(one.labels), len(other.labels)))
    for i, j in product(range(len(one.labels)), range(len(other.labels))):
        sides = ((one.labels[i], other.labels[j], halves[0]), (other.labels[j], one.labels[i], halves[1]))
        strength[i, j] = np.mean([prediction_strength(own[rows], predicted[rows], k) for own, predicted, rows in sides])
        agreement[i, j] = metrics.ari(one.labels[i], other.labels[j])
    return {"strength": strength, "agreement": agreement, "resets": np.concatenate([one.resets, other.resets]),
            "silhouette": np.concatenate([one.silhouette, other.silhouette])}


def _mean_and_error(found: Sequence[np.ndarray]) -> np.ndarray:
    """Mean of what several halvings gave for each model, or for each pair of models, and its error: models are left out one by
    one (jackknife), since pairs that share a model are not independent."""
    everything = np.concatenate([one.ravel() for one in found])
    without = []
    for i, one in enumerate(found):
        rest = [other.ravel() for j, other in enumerate(found) if j != i]
        for axis, size in enumerate(one.shape):
            left = [np.concatenate([*rest, np.delete(one, place, axis).ravel()]) for place in range(size)]
            without += [numbers.mean() for numbers in left if len(numbers)]
    m = len(without)
    error = np.sqrt((m - 1) / m * np.square(np.array(without) - np.mean(without)).sum()) if m > 1 else np.nan
    return np.array([everything.mean(), error])


def _check_enough(n: int, k: int) -> None:
    if n < EACH * k:
        most = n // EACH
        instead = f"give ks=range(2, {most + 1}), on the command line --to {most}" if most >= 2 else "bring more samples"
        raise ValueError(f"k={k} needs {EACH * k} samples: X has {n}; {instead}.")


def _check_embedding(settings: Settings) -> None:
    representation = settings.representation
    sized = not isinstance(representation, (Autoencoder, ConvAutoencoder)) or representation.embedding is not None
    if settings.pretraining is not None and not sized:
        raise ValueError(f"The representation {representation!r} has as many dimensions as there are clusters, but it is "
                         "pretrained once for all numbers of them: give it a size, as in "
                         f"{type(representation).__name__}(embedding=10).")


def _usual(n: int) -> Settings:
    """A short run for n samples, whose length in steps does not depend on how many there are."""
    batch = int(np.clip(n // 2, 8, 1024))
    return Settings(
        n_clusters=2, objective=IDECObjective(), representation=Autoencoder(hidden=(128, 64), embedding=10),
        intervention=BRB(interval=8, method=KMeans(n_init=3)), first_centers=Recluster(KMeans(n_init=5), subsample=None),
        pretraining=Schedule(epochs=40, batch_size=batch, views=("clean",)), clustering=Schedule(epochs=20, batch_size=batch))


def _listed(ks: Sequence[int]) -> str:
    return ", ".join(map(str, ks[:-1])) + (" and " if len(ks) > 1 else "") + str(ks[-1]) if ks else ""
