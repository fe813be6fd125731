"""What was measured over training, as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

AFTER_RESET = "_after_reset"
"""Ends the columns of what was measured right after an intervention, at the epoch at whose start it fired. The value before
is in the column itself, one epoch earlier, and at that same epoch there stands the value after it has trained."""


@dataclass(frozen=True)
class Curve:
    """Something measured over training: epochs (m,), values (m, r), or (m, r, ...) where it has a shape of its own."""

    epochs: np.ndarray
    values: np.ndarray


History = dict[str, dict[str, Curve]]
"""Phase -> column -> curve."""

PHASES = ("pretraining", "clustering", "warm-up", "self-labeling")
"""In the order in which they follow each other; stages of one's own come behind."""


def around_resets(columns: Mapping[str, Curve], column: str) -> Curve:
    """One column at each firing: values (m, 3, r, ...) right before, right after, and after the epoch that followed.

    columns: the history of the clustering phase. Firings around which not all three were measured are left out.
    """
    if column not in columns:
        raise KeyError(f"There is no column {column!r}, only {', '.join(columns)}.")
    measured, after, marks = (_by_epoch(columns.get(name)) for name in (column, column + AFTER_RESET, "fired"))
    fired = [epoch for epoch in marks if epoch - 1 in measured and epoch in after and epoch in measured]
    values = [np.stack([measured[epoch - 1], after[epoch], measured[epoch]]) for epoch in fired]
    return Curve(np.array(fired, dtype=np.int64), np.stack(values) if values else np.empty((0, 3, 0)))


def _by_epoch(curve: Curve | None) -> dict[int, np.ndarray]:
    return {} if curve is None else dict(zip(curve.epochs.tolist(), curve.values, strict=True))
