"""Measurements over training, as plain arrays."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

# Suffix of columns measured right after an intervention, at the epoch at whose start it fired: the
# value before it is in the plain column one epoch earlier.
AFTER_RESET = "_after_reset"
PHASES = ("pretraining", "clustering", "warm-up", "self-labeling")  # in the order they run


@dataclass(frozen=True)
class Curve:
    """One quantity measured over training.

    Parameters
    ----------
    epochs : ndarray of shape (m,)
        Epochs after which it was measured; -1 is before the first epoch.
    values : ndarray of shape (m, n_replicas, ...)
        The measurements, one row per epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from reclust import Curve
    >>> Curve(np.arange(3), np.zeros((3, 2))).values.shape
    (3, 2)
    """

    epochs: np.ndarray
    values: np.ndarray


History = dict[str, dict[str, Curve]]  # phase -> column -> curve


def around_resets(columns: Mapping[str, Curve], column: str) -> Curve:
    """Collect a column right before, right after and an epoch after each reset: (m, 3, r, ...)."""
    names = (column, column + AFTER_RESET, "fired")
    measured, after, marks = (
        dict(zip(columns[name].epochs.tolist(), columns[name].values, strict=True))
        if name in columns else {} for name in names)
    fired = [epoch for epoch in marks
             if epoch - 1 in measured and epoch in after and epoch in measured]
    values = [np.stack([measured[epoch - 1], after[epoch], measured[epoch]]) for epoch in fired]
    stacked = np.stack(values) if values else np.empty((0, 3, 0))
    return Curve(np.array(fired, dtype=np.int64), stacked)
