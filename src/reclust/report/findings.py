"""Findings of a fit: what may be wrong with it, and what to do about it."""

import numpy as np

from ..data.errors import listed
from ..training.history import Curve

SMALL_CLUSTER = 0.1  # a cluster is very small below this share of the mean cluster size
LARGE_CLUSTER = 0.5  # and very large from this share of all samples
UNSTABLE = 0.7  # replicas disagree below this mean NMI
UNSETTLED = 5.0  # labels have not settled above this change in percent over the last epochs
COLLAPSED = 1.5  # an embedding is collapsed below this number of effective dimensions
FEW_STEPS = 200  # training is short below this number of optimizer steps
OVERLAPPING = 0.9  # clusters overlap above this median distance ratio


def findings(*, sizes: np.ndarray, nmi: float | None, dimensions: float, ratio: float | None,
             label_change: Curve | None, epochs: int, batch_size: int | None,
             noun: str) -> list[dict[str, str]]:
    """Return probable problems (level "warning"), then what is good to know ("note")."""
    entries = []

    def warn(title: str, text: str, level: str = "warning") -> None:
        entries.append({"level": level, "title": title, "text": text})

    n, k = int(sizes.sum()), len(sizes)
    small = np.flatnonzero(sizes < max(2.0, SMALL_CLUSTER * n / k))
    if len(small):
        shown = listed(f"{i} ({sizes[i]})" for i in small)
        warn("Very small clusters", f"Clusters by number and size: {shown}. They may be outliers: "
             "look at their samples, or ask for fewer clusters.")
    if k > 2 and sizes.max() >= LARGE_CLUSTER * n:
        warn("One very large cluster", f"Cluster {sizes.argmax()} holds {100 * sizes.max() / n:.0f}"
             " % of all samples. Groups may have been merged.")
    if nmi is not None and nmi < UNSTABLE:
        warn(f"{noun.capitalize()}s disagree", f"Their mean NMI is {nmi:.2f}: others find other "
             'clusters. Try another number of clusters (n_clusters="auto"), or train longer.')
    if k > 2 and dimensions < COLLAPSED:
        warn("Collapsed embedding", f"The {k} clusters spread over only {dimensions:.1f} "
             "dimensions. Pretrain longer, or use standardize=True.")
    if ratio is not None and ratio > OVERLAPPING:
        warn("Overlapping clusters", "For half of the samples, the distance to their center is at "
             f"least {ratio:.2f} times that to the next one. There may be fewer groups, or none.")
    steps = None if batch_size is None else epochs * max(1, n // batch_size)
    if steps is not None and steps < FEW_STEPS:
        warn("Short training", f"{epochs} epochs with batches of {batch_size} are only {steps} "
             "optimizer steps. Use a smaller batch_size or more epochs.")
    last = np.array([]) if label_change is None else label_change.values[-3:]
    if len(last) and np.isfinite(last).all() and last.mean() > UNSETTLED:
        warn("Labels had not settled", f"In the last epochs they changed by {last.mean():.0f} % "
             "per epoch (1 - NMI). Train longer, or leave more epochs after the last reset.")
    if nmi is None:
        warn("One replica only", "Other seeds may find other clusters. Use n_init=4 or more to "
             "find out, and to keep the best.", level="note")
    return entries
