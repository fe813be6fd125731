"""What a fit should be doubted for, in plain words, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..training.history import AFTER_RESET, Curve

SMALL, LARGE = 0.1, 0.5
"""A cluster is very small below this share of an even one, and very large from this share of all samples."""
UNSTABLE = 0.7
"""Mean NMI between replicas below which they are said to disagree."""
RESTLESS = 5.0
"""Label change in percent over the last epochs from which a fit is said not to have settled."""
FLAT = 1.5
"""Effective dimensions of an embedding below which it is said to be collapsed, where there are more than two clusters."""
STEPS = 200
"""Steps of the optimizer below which training is said to have been short."""
BETWEEN = 0.9
"""Median distance ratio from which most samples are said to lie between clusters."""


@dataclass(frozen=True)
class Remark:
    """weight: "warning" for what probably is wrong, "note" for what is good to know."""

    weight: Literal["warning", "note"]
    title: str
    text: str


@dataclass(frozen=True)
class Facts:
    """What remarks are made of. sizes (k,), the largest first or not. between: mean NMI of replicas, None for one replica.
    exchanged: whether replicas were copied from each other. columns: the history of the kept replica in its
    last phase. ratio: median distance ratio, None for one cluster."""

    asked: int
    sizes: np.ndarray
    replicas: int
    failed: int
    between: float | None
    exchanged: bool
    dimensions: float
    ratio: float | None
    columns: Mapping[str, Curve]
    epochs: int
    planned: int
    batch_size: int


def remarks(facts: Facts) -> list[Remark]:
    """Warnings first."""
    found = [*_clusters(facts), *_replicas(facts), *_embedding(facts), *_training(facts)]
    return sorted(found, key=lambda one: one.weight != "warning")


def _clusters(facts: Facts) -> Iterator[Remark]:
    n, k = int(facts.sizes.sum()), len(facts.sizes)
    if k < facts.asked:
        yield Remark("warning", "Clusters died", f"{facts.asked - k} of the {facts.asked} clusters asked for ended without "
                     f"samples; {k} {'is' if k == 1 else 'are'} left. Ask for fewer, or let BRB fire more often.")
    revived = _revived(facts.columns)
    if revived:
        yield Remark("note", "Clusters were revived", f"Resets brought back clusters that had lost all their samples, "
                     f"{revived} in all. That is what they are for; it also happens where there are fewer groups.")
    small = np.flatnonzero(facts.sizes < max(2.0, SMALL * n / k))
    if len(small):
        yield Remark("warning", "Very small clusters", f"{_listed('Cluster', small)} {'has' if len(small) == 1 else 'have'} "
                     f"{', '.join(str(facts.sizes[i]) for i in small[:10])} of {n} samples. These may be outliers; look at "
                     "them, or ask for fewer clusters.")
    largest = int(facts.sizes.argmax())
    if k > 2 and facts.sizes[largest] >= LARGE * n:
        yield Remark("warning", "One cluster holds most samples", f"Cluster {largest} holds "
                     f"{100 * facts.sizes[largest] / n:.0f} % of all samples. Either the groups are that uneven, or "
                     "several of them were merged.")


def _replicas(facts: Facts) -> Iterator[Remark]:
    if facts.failed:
        yield Remark("warning", "Replicas failed", f"The loss of {facts.failed} of {facts.replicas} replicas stopped being a "
                     "number. Try a smaller lr, and check the scale of the data.")
    if facts.between is None:
        yield Remark("note", "One replica only", "Whether another seed would find the same clusters is not known. Fit with "
                     "n_init=4 or more to see it, and to keep the best of them.")
    elif facts.between < UNSTABLE:
        yield Remark("warning", "Replicas disagree", f"Two replicas share an NMI of {facts.between:.2f} on average: other "
                     "seeds find other clusters. The number of clusters may not suit the data (reclust.suggest_k), or training "
                     "is too short.")
    elif facts.exchanged:
        yield Remark("note", "Replicas were copied from each other", "While they trained, poorer ones went on from better ones "
                     "(Exchange), so that what they agree on says little about other seeds. Fit again with another "
                     "random_state to see that.")


def _embedding(facts: Facts) -> Iterator[Remark]:
    if len(facts.sizes) > 2 and facts.dimensions < FLAT:
        yield Remark("warning", "The embedding is collapsed", f"It spreads over {facts.dimensions:.1f} directions only, so "
                     f"that {len(facts.sizes)} clusters lie on little more than a line. Pretrain longer, give the "
                     "representation more weight, or check that features have a reasonable scale (standardize=True).")
    if facts.ratio is not None and facts.ratio > BETWEEN:
        yield Remark("warning", "Most samples lie between clusters", f"Half of them are at least {facts.ratio:.2f} times as "
                     "far from their own centre as from the next one. There may be no separate groups, or fewer of them.")


def _training(facts: Facts) -> Iterator[Remark]:
    if facts.epochs < facts.planned:
        yield Remark("warning", "Training was cut short", f"It stopped after {facts.epochs} of {facts.planned} epochs, "
                     "when its time was over.")
    n = int(facts.sizes.sum())
    steps = facts.epochs * max(1, n // facts.batch_size)
    if steps < STEPS:
        yield Remark("warning", "Training was short", f"{facts.epochs} epochs of {n} samples in batches of {facts.batch_size} "
                     f"are {steps} steps of the optimizer, which is little. Take a smaller batch_size or more epochs.")
    change = facts.columns.get("label_change")
    last = np.array([]) if change is None else change.values[-3:]
    if len(last) and np.isfinite(last).all() and last.mean() > RESTLESS:
        yield Remark("warning", "Labels had not settled", f"In the last epochs they still changed by {last.mean():.0f} % "
                     "(1 - NMI) an epoch. Train longer, or end further from the last reset.")


def _revived(columns: Mapping[str, Curve]) -> int:
    """How many clusters had samples after an intervention and none before it."""
    before, after = columns.get("clusters"), columns.get("clusters" + AFTER_RESET)
    if before is None or after is None:
        return 0
    at = {int(epoch) + 1: count for epoch, count in zip(before.epochs, before.values, strict=True)}
    pairs = zip(after.epochs.tolist(), after.values, strict=True)
    gains = (int(count) - int(at[epoch]) for epoch, count in pairs if epoch in at)
    return sum(gain for gain in gains if gain > 0)


def _listed(what: str, numbers: np.ndarray) -> str:
    shown = ", ".join(map(str, numbers[:10])) + (" …" if len(numbers) > 10 else "")
    return f"{what}{'s' if len(numbers) > 1 else ''} {shown}"
