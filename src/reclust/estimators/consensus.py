"""One labeling out of those of many replicas: a vote, weighed by their label-free scores."""

from __future__ import annotations

import numpy as np

from ..metrics import matched


def consensus(labels: np.ndarray, reference: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The vote on each sample, (n,), in the names of the reference's clusters.

    labels (r, n) of the replicas, weights (r,); reference (n,), clusters counted from 0. Each replica's clusters are
    matched one to one with those of the reference; clusters left over abstain, and the reference decides what is tied.
    """
    samples, votes = np.arange(len(reference)), np.zeros((len(reference), int(reference.max()) + 1))
    for own, weight in zip(labels, weights, strict=True):
        if weight > 0:
            vote = matched(own, reference)
            votes[samples[vote >= 0], vote[vote >= 0]] += weight
    leading = votes >= votes.max(1, keepdims=True) * (1 - 1e-12)  # sums of equal weights in another order
    return np.where(leading[samples, reference], reference, leading.argmax(1))


def vote_weights(scores: np.ndarray) -> np.ndarray:
    """What replicas with these scores (r,) weigh in a vote, whatever the scale of the scores: 1 the best, 0 the median and all
    below, since a mistake that most replicas made should not be voted in again. Equal scores weigh the same."""
    known = scores[np.isfinite(scores)]
    if not len(known):
        return np.ones(len(scores))
    middle, best = float(np.median(known)), float(known.max())
    if middle == best:
        return (scores == best).astype(float)
    return np.where(np.isfinite(scores), np.clip((scores - middle) / (best - middle), 0.0, 1.0), 0.0)
