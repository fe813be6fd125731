"""Drift: tests of whether new samples look like those of the fit."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import draws
from ..data.dataset import dense_rows
from ..training.result import Model
from ..utils.exceptions import require
from .versus_kmeans import FittedModel

MAX_ROWS, MAX_NUMBERS = 1000, 2**24  # samples of the fit that are compared, and numbers in them
MAX_FEATURES = 200  # of a table whose features are compared


@dataclass(frozen=True)
class Reference:
    """Statistics of the fitted samples, without any of them."""

    sizes: np.ndarray
    means: np.ndarray  # (k, d) of the clusters in network input
    distances: np.ndarray  # (m,) from the mean of a sample's cluster
    features: np.ndarray  # (m, d), each column sorted by itself, or (m, 0)

    @classmethod
    def draw(cls, model: FittedModel, X: Any, labels: np.ndarray,
             means: np.ndarray | None = None) -> "Reference":
        """Take some of the samples (n, ...), whose clusters are labels (n,)."""
        width = int(np.prod(model.preparation_.sample_shape or X.shape[1:]))
        count = min(MAX_ROWS, max(1, MAX_NUMBERS // width))
        rows = draws.subset(draws.fold(draws.key(0), "drift"), len(labels), count).numpy()
        x = model.preparation_.network_input(X[rows]).flatten(1).numpy()
        own, some = np.ones(len(rows)), labels[rows]
        if means is None:
            members = np.eye(model.n_clusters_)[some]
            counts = members.sum(0)
            means = members.T @ x / np.maximum(counts, 1)[:, None]
            own = counts[some] / np.maximum(counts[some] - 1, 1)  # as if each were left out
        table = model.preparation_.image_shape is None and width <= MAX_FEATURES
        features = dense_rows(X, rows) if table else np.empty((len(rows), 0))
        return cls(np.bincount(labels, minlength=model.n_clusters_), means.astype(np.float32),
                   np.sort(own * np.linalg.norm(x - means[some], axis=1)),
                   np.sort(features.astype(np.float64), axis=0))


def drift(model: FittedModel, X: Any, fitted: Reference) -> Any:
    """Compare the shares of clusters, distances to their means and features, a row for each."""
    from scipy.stats import false_discovery_control, fisher_exact, ks_2samp

    pandas = require("pandas", purpose="A table of changes")
    samples = model.check_input(X)
    labels = model.map_samples(samples.array, Model.assign)
    new = Reference.draw(model, samples.array, labels, fitted.means)
    sizes = np.stack([fitted.sizes, new.sizes], 1)
    rows = [(f"share of cluster {i}", *shares, np.ptp(shares),
             fisher_exact([sizes[i], sizes.sum(0) - sizes[i]])[1])
            for i, shares in enumerate(sizes / sizes.sum(0))]
    names = samples.feature_names or [f"feature {i}" for i in range(samples.n_features)]
    names = ["distance to the cluster's mean", *names[: new.features.shape[1]]]
    rows += [(name, old.mean(), now.mean(), *ks_2samp(old, now)) for name, old, now in zip(
        names, [fitted.distances, *fitted.features.T], [new.distances, *new.features.T],
        strict=True)]
    table = pandas.DataFrame(rows, columns=["what", "fitted", "new", "difference", "p_value"])
    return table.assign(adjusted=false_discovery_control(table["p_value"])).set_index("what")
