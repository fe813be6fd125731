"""The embedding of a fitted model in two dimensions, drawn with matplotlib."""

from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from ..utils.exceptions import require

FAINTEST, MAX_NAMED = 0.15, 20  # opacity of the most doubtful; clusters that a legend can name


def plot(z: np.ndarray, soft: np.ndarray, axes: Any) -> Any:
    """Draw embeddings (m, d) with soft labels (m, k) by cluster, doubtful ones fainter."""
    pyplot = require("matplotlib.pyplot", purpose="Plotting", extra="plot")
    labels, confidence = soft.argmax(1), soft.max(1)
    opacity = np.clip((confidence / np.median(confidence)) ** 2, FAINTEST, 1)
    name, points = project(z)
    axes = pyplot.subplots(layout="constrained")[1] if axes is None else axes
    colors = pyplot.get_cmap("tab10" if soft.shape[1] <= 10 else "tab20").colors
    for cluster in range(soft.shape[1]):
        members = labels == cluster
        shades = [(*colors[cluster % len(colors)], alpha) for alpha in opacity[members]]
        axes.scatter(*points[members].T, s=12, linewidths=0, color=shades, label=f"{cluster}")
    axes.set(xlabel=f"{name} 1", ylabel=f"{name} 2", xticks=[], yticks=[])
    if soft.shape[1] <= MAX_NAMED:
        marks = axes.legend(title="cluster", loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
        for mark in marks.legend_handles:
            mark.set_alpha(1)
    return axes


def project(z: np.ndarray) -> tuple[str, np.ndarray]:
    """Return the method, UMAP where it is installed, and points (m, 2)."""
    if z.shape[1] <= 2:
        return "dimension", np.pad(z, ((0, 0), (0, 2 - z.shape[1])))
    if find_spec("umap") and len(z) > 15:  # the neighbors that UMAP looks at
        umap = require("umap", purpose="UMAP")
        return "UMAP", umap.UMAP(random_state=0, n_jobs=1).fit_transform(z)
    return "component", PCA(2).fit_transform(z)
