"""Findings of a fit: what may be wrong with it, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..training.history import Curve

SMALL_CLUSTER = 0.1  # a cluster is very small below this share of the mean cluster size
LARGE_CLUSTER = 0.5  # and very large from this share of all samples
UNSTABLE = 0.7  # replicas disagree below this mean NMI
UNSETTLED = 5.0  # labels have not settled above this change in percent over the last epochs
COLLAPSED = 1.5  # an embedding is collapsed below this number of effective dimensions
FEW_STEPS = 200  # training is short below this number of optimizer steps
OVERLAPPING = 0.9  # clusters overlap above this median distance ratio


@dataclass(frozen=True)
class Finding:
    """A probable problem ("warning"), or something good to know ("note")."""

    level: Literal["warning", "note"]
    title: str
    text: str


@dataclass(frozen=True)
class Facts:
    """Input of `findings`.

    sizes: of the clusters, (k,). nmi: mean over pairs of replicas, None for one replica.
    ratio: median distance ratio, None for one cluster. label_change: curve of the kept replica.
    """

    requested: int
    sizes: np.ndarray
    replicas: int
    failed: int
    nmi: float | None
    dimensions: float
    ratio: float | None
    label_change: Curve | None
    epochs: int
    planned: int
    batch_size: int


def findings(facts: Facts) -> list[Finding]:
    """Return the findings, warnings first."""
    found = [*_clusters(facts), *_replicas(facts), *_embedding(facts), *_training(facts)]
    return sorted(found, key=lambda finding: finding.level != "warning")


def _clusters(facts: Facts) -> Iterator[Finding]:
    n, k = int(facts.sizes.sum()), len(facts.sizes)
    if k < facts.requested:
        yield Finding("warning", "Empty clusters", f"Only {k} of {facts.requested} clusters have "
                      "samples. Ask for fewer, or let BRB reset more often.")
    small = np.flatnonzero(facts.sizes < max(2.0, SMALL_CLUSTER * n / k))
    if len(small):
        shown = ", ".join(f"{i} ({facts.sizes[i]})" for i in small[:10])
        yield Finding("warning", "Very small clusters", f"Clusters by number and size: {shown}"
                      f"{' …' if len(small) > 10 else ''}. They may be outliers: look at their "
                      "samples, or ask for fewer clusters.")
    largest = int(facts.sizes.argmax())
    if k > 2 and facts.sizes[largest] >= LARGE_CLUSTER * n:
        yield Finding("warning", "One very large cluster", f"Cluster {largest} holds "
                      f"{100 * facts.sizes[largest] / n:.0f} % of all samples. Groups may have "
                      "been merged.")


def _replicas(facts: Facts) -> Iterator[Finding]:
    if facts.failed:
        yield Finding("warning", "Failed replicas", f"The loss of {facts.failed} of "
                      f"{facts.replicas} replicas became NaN or infinite. Try a smaller lr, and "
                      "check the scale of the data.")
    if facts.nmi is None:
        yield Finding("note", "One replica only", "Other seeds may find other clusters. Use "
                      "n_init=4 or more to see whether they do, and to keep the best.")
    elif facts.nmi < UNSTABLE:
        yield Finding("warning", "Replicas disagree", f"Their mean NMI is {facts.nmi:.2f}: other "
                      "seeds find other clusters. Try another number of clusters "
                      "(reclust.suggest_k), or train longer.")


def _embedding(facts: Facts) -> Iterator[Finding]:
    k = len(facts.sizes)
    if k > 2 and facts.dimensions < COLLAPSED:
        yield Finding("warning", "Collapsed embedding", f"The {k} clusters spread over only "
                      f"{facts.dimensions:.1f} dimensions. Pretrain longer, increase the "
                      "reconstruction weight, or use standardize=True.")
    if facts.ratio is not None and facts.ratio > OVERLAPPING:
        yield Finding("warning", "Overlapping clusters", "For half of the samples, the distance to "
                      f"their center is at least {facts.ratio:.2f} times that to the next one. "
                      "There may be fewer groups, or none.")


def _training(facts: Facts) -> Iterator[Finding]:
    if facts.epochs < facts.planned:
        yield Finding("warning", "Training stopped early", f"It ran {facts.epochs} of "
                      f"{facts.planned} epochs before the time budget was used up.")
    n = int(facts.sizes.sum())
    steps = facts.epochs * max(1, n // facts.batch_size)
    if steps < FEW_STEPS:
        yield Finding("warning", "Short training", f"{facts.epochs} epochs with batches of "
                      f"{facts.batch_size} are only {steps} optimizer steps. Use a smaller "
                      "batch_size or more epochs.")
    last = np.array([]) if facts.label_change is None else facts.label_change.values[-3:]
    if len(last) and np.isfinite(last).all() and last.mean() > UNSETTLED:
        yield Finding("warning", "Labels had not settled", f"In the last epochs they changed by "
                      f"{last.mean():.0f} % per epoch (1 - NMI). Train longer, or end further from "
                      "the last reset.")
