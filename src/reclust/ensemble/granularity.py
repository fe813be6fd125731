"""The number of clusters: the one on which many fast clusterings agree."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import torch

from .. import draws
from ..interventions.reclustering.kmeans import KMeans
from .members import mixture_members

GRID = (*range(2, 11), 12, 14, 16, 18, 20, 25, 30, 35, 40, 50, 60, 70, 80, 100, 120, 150, 200)
NEARLY_PERFECT = 0.95  # agreement of real clusters that methods hardly mistake
ROUNDING, CLEARLY_LOWER = 0.005, 0.02  # differences of agreement that mean nothing, and much
STARTS = 5  # of k-means: one alone now and then misses a cluster that all others find
MARGIN = 0.05  # by which agreement must exceed that of data without clusters


@dataclass(frozen=True)
class KSuggestion:
    """Result of `suggest_k`: how far many clusterings agree for each number of clusters.

    Parameters
    ----------
    ks : tuple of int
        Numbers of clusters.
    agreement : ndarray of shape (K,)
        Mean adjusted Rand index of the clusterings with their consensus.
    chance : float
        The same for `k` on data with the same correlations but without clusters; NaN for tables
        with categories.
    n_samples : int
        Samples that were clustered.

    Examples
    --------
    >>> import numpy as np
    >>> from reclust import KSuggestion
    >>> KSuggestion((2, 3, 4, 5), np.array([1.0, 0.8, 0.99, 0.5]), 0.4, n_samples=100).k
    4
    """

    ks: tuple[int, ...]
    agreement: np.ndarray
    chance: float
    n_samples: int

    @property
    def k(self) -> int:
        """The best of the largest numbers with nearly perfect agreement, or else the highest peak.

        To find the peak, agreement is averaged with that of the next smaller and larger number.
        """
        perfect = self.agreement >= max(NEARLY_PERFECT, self.agreement.max() - CLEARLY_LOWER)
        if not perfect.any():
            around = np.convolve(np.pad(self.agreement, 1, mode="edge"), np.ones(3), "valid")
            return self.ks[int(around.argmax())]
        last = first = int(np.flatnonzero(perfect)[-1])
        while first > 0 and perfect[first - 1]:
            first -= 1
        run = self.agreement[first : last + 1]
        return self.ks[first + int(np.flatnonzero(run >= run.max() - ROUNDING)[-1])]

    @property
    def at_k(self) -> float:
        """Agreement on `k` clusters."""
        return float(self.agreement[self.ks.index(self.k)])

    @property
    def clear(self) -> bool:
        """True if the clusterings agree more than on data without clusters."""
        # Near 1 there is no room for the margin: 1 against 0.98 is much more.
        near_one = 1 - self.at_k < (1 - self.chance) / 8
        return near_one or not self.at_k < self.chance + MARGIN

    @property
    def larger(self) -> "KSuggestion | None":
        """The numbers above `k`, if agreement on one of them is nearly perfect as well."""
        start = self.ks.index(self.k) + 1
        if not (self.agreement[start:] >= NEARLY_PERFECT).any():
            return None
        return KSuggestion(self.ks[start:], self.agreement[start:], nan, self.n_samples)

    @property
    def answer(self) -> str:
        """The suggestion in a sentence."""
        if self.clear:
            return (f"{self.k} clusters: the number on which clusterings by different methods "
                    f"agree ({self.at_k:.2f}).")
        return (f"There may be no separate clusters: clusterings agree no more than on data "
                f"without any ({self.at_k:.2f} and {self.chance:.2f}). {self.k} is a way "
                "to divide the samples.")

    def __str__(self) -> str:
        lines = [f"{k:>5} {agreement:9.2f}  {'#' * round(40 * max(0, agreement))}"
                 + "  <-" * (k == self.k)
                 for k, agreement in zip(self.ks, self.agreement, strict=True)]
        return "\n".join(["    k agreement", *lines, "", self.answer])

    def plot(self, ax: Any = None) -> Any:
        """Plot agreement over the number of clusters; return the matplotlib axes."""
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")[1]
        ax.plot(self.ks, self.agreement, "o-", color="#0072b2", markersize=4)
        ax.axvline(self.k, color="#d55e00", linewidth=0.8)
        ax.axhline(self.chance, color="#8a8f96", linewidth=0.8, linestyle=":")
        ax.set(xlabel="number of clusters", ylabel="agreement of clusterings", ylim=(0, 1.05),
               title=f"{self.k} clusters" if self.clear else "no separate clusters")
        return ax


def candidate_ks(n_samples: int, least: int = 2, most: int | None = None) -> tuple[int, ...]:
    """Return numbers of clusters to try, by default up to the root of half the samples."""
    most = max(least, int((n_samples / 2) ** 0.5)) if most is None else most
    return tuple(k for k in sorted({*GRID, least, most}) if least <= k <= most)


def labelings(views: Mapping[str, np.ndarray], k: int, seed: int, device: torch.device, *,
              mixtures: bool) -> np.ndarray:
    """Cluster every view (n, d), with mixtures or with k-means: labels (m, n)."""
    if mixtures:
        return np.stack([member.labels for i, (name, view) in enumerate(views.items()) for member
                         in mixture_members({name: view}, k, [seed + i], device, STARTS)])
    key, kmeans = draws.key(seed, device=device), KMeans(n_init=3)
    return np.stack([kmeans.fit(torch.from_numpy(view).float().to(device), k, key).labels.cpu()
                     for view in views.values()])


def without_clusters(rows: np.ndarray, draw: int) -> np.ndarray:
    """Draw rows (n, d) from a Gaussian with the same covariance."""
    factor = np.linalg.qr(rows - rows.mean(0), mode="r")
    key = draws.fold(draws.key(draw), "without clusters")
    return draws.normal(key, (len(rows), len(factor))).numpy() @ factor / len(rows) ** 0.5
