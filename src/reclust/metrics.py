"""Agreement of two labelings, computed from their contingency table, and cluster sizes.

Shapes: r replicas, n samples, k clusters. Labels may be numbers or strings.

Examples
--------
>>> from reclust import metrics
>>> metrics.accuracy([0, 0, 1, 1], ["b", "b", "a", "a"])
1.0
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from .utils.values import is_missing

Labels = Tensor | npt.NDArray[Any] | Sequence[Any]
Table = npt.NDArray[np.int64]


def contingency(labels_true: Labels, labels_pred: Labels) -> Table:
    """Count samples by class and cluster, both in sorted order."""
    true, pred = _host(labels_true), _host(labels_pred)
    if true.ndim != 1 or true.shape != pred.shape or not len(true):
        raise ValueError("labels must be two sequences of the same length with at least one "
                         f"sample, got shapes {true.shape} and {pred.shape}.")
    (classes, rows), (clusters, columns) = distinct(true), distinct(pred)
    counts = np.bincount(rows * len(clusters) + columns, minlength=len(classes) * len(clusters))
    return counts.reshape(len(classes), len(clusters)).astype(np.int64, copy=False)


def distinct(labels: Labels) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Return the sorted labels and the index of each sample's label; refuse missing ones."""
    refuse_missing(host := _host(labels))
    return np.unique(host, return_inverse=True)


def refuse_missing(labels: npt.NDArray[Any]) -> None:
    if labels.dtype.kind in "fO":
        missing = np.flatnonzero(np.isnan(labels) if labels.dtype.kind == "f"
                                 else list(map(is_missing, labels)))
        if len(missing):
            raise ValueError(f"{len(missing)} of {len(labels)} labels are missing, the first in "
                             f"row {missing[0] + 1}: fill them in, or leave these samples out.")


def batched_contingency(true: Tensor, predicted: Tensor, k_true: int | None = None,
                        k: int | None = None) -> Tensor:
    """Count r labelings (r, n) against (n,) or (r, n); without `k_true` and `k` the host waits."""
    k_true = int(true.max()) + 1 if k_true is None else k_true
    k = int(predicted.max()) + 1 if k is None else k
    return _counts(true * k + predicted, k_true * k).reshape(-1, k_true, k)


def accuracy(labels_true: Labels, labels_pred: Labels) -> float:
    """Share of samples that agree after the best one-to-one match of clusters and classes."""
    return accuracy_of_table(contingency(labels_true, labels_pred))


def nmi(labels_true: Labels, labels_pred: Labels) -> float:
    """Mutual information divided by the mean of both entropies."""
    return nmi_of_table(contingency(labels_true, labels_pred))


def ari(labels_true: Labels, labels_pred: Labels) -> float:
    """Agreement on pairs, the adjusted Rand index: 0 for random and 1 for equal partitions."""
    return ari_of_table(contingency(labels_true, labels_pred))


def scores(labels_true: Labels, labels_pred: Labels) -> dict[str, float]:
    """Compute accuracy, nmi and ari from one table."""
    return scores_of_table(contingency(labels_true, labels_pred))


def matched(labels: Labels, reference: Labels) -> npt.NDArray[np.int64]:
    """Rename labels (n,) to the reference's after the best one-to-one match; -1 if unmatched."""
    table, names = contingency(labels, reference), np.unique(_host(reference))
    clusters, places = linear_sum_assignment(table, maximize=True)
    named = np.full(len(table), -1)
    named[clusters] = names[places]
    return named[np.unique(_host(labels), return_inverse=True)[1]]


def label_change(before: Labels, after: Labels) -> float:
    """Change of a labeling in percent: (1 - NMI) * 100."""
    return (1.0 - nmi(before, after)) * 100.0


def scores_of_table(table: Table | Tensor) -> dict[str, float]:
    """Compute accuracy, nmi and ari of a table (classes, clusters), which may have empty rows."""
    table = _host(table).astype(np.int64)
    return {"accuracy": accuracy_of_table(table), "nmi": nmi_of_table(table),
            "ari": ari_of_table(table)}


def accuracy_of_table(table: Table) -> float:
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())


def nmi_of_table(table: Table) -> float:
    table = table[table.any(1)][:, table.any(0)]
    if table.shape == (1, 1):
        return 1.0
    if 1 in table.shape:
        return 0.0  # exactly, in spite of rounding
    joint = table / table.sum()
    entropies = -sum(np.sum(shares * np.log(shares)) for shares in (joint.sum(1), joint.sum(0)))
    return float(np.clip(2 * information_of_table(table) / entropies, 0.0, 1.0))


def information_of_table(table: Table) -> float:
    """Mutual information of two labelings, in nats."""
    joint = table / table.sum()
    outer = np.multiply.outer(joint.sum(1), joint.sum(0))
    shared = table > 0
    return max(0.0, float(np.sum(joint[shared] * np.log(joint[shared] / outer[shared]))))


def ari_of_table(table: Table) -> float:
    # Ordered pairs, in Python's integers, as products exceed 2**63 from about 60,000 samples.
    n = int(table.sum())
    both = int((table**2).sum()) - n
    true, pred = int((table.sum(1) ** 2).sum()) - n, int((table.sum(0) ** 2).sum()) - n
    only_true, only_pred = true - both, pred - both
    neither = n * (n - 1) - true - pred + both
    if only_true == 0 and only_pred == 0:
        return 1.0
    chance = true * (only_true + neither) + pred * (only_pred + neither)
    return 2 * (both * neither - only_true * only_pred) / chance


def cluster_sizes(labels: Tensor | npt.NDArray[np.integer[Any]], k: int) -> Tensor:
    """Count labels (..., n) of each cluster from 0 to k - 1, on their device: -> (..., k)."""
    labels = torch.as_tensor(labels)
    return _counts(labels.reshape(-1, labels.shape[-1]), k).reshape(*labels.shape[:-1], k)


def _counts(index: Tensor, size: int) -> Tensor:
    """Count 0 to size - 1 in each row, (r, n) -> (r, size), without bincount's GPU sync."""
    index = index.to(torch.int64)
    return index.new_zeros(len(index), size).scatter_add_(1, index, torch.ones_like(index))


def _host(values: Labels) -> npt.NDArray[Any]:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
