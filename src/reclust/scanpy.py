"""Clusters of cells in an AnnData, as scanpy's tools leave them."""

from typing import Any

import numpy as np

from .estimators.reclust import Reclust
from .report.card import card
from .utils.exceptions import require, warn


def cluster(adata: Any, n_clusters: Any, *, use_rep: str = "X_pca", key_added: str = "reclust",
            **parameters: Any) -> Reclust:
    """Cluster cells by their principal components, which are computed if there are none.

    Parameters
    ----------
    adata : AnnData
        Gets ``obs[key_added]`` (categories), ``obsm["X_" + key_added]`` (the network's embedding)
        and ``uns[key_added]`` (the model's card).
    n_clusters : int or "auto"
        Number of clusters.
    use_rep : str, default="X_pca"
        Entry of ``obsm`` to cluster. A missing "X_pca" is computed with scanpy from highly variable
        genes; raw counts are normalized and log-transformed for that, with a warning.
    key_added : str, default="reclust"
        Name of the results.
    **parameters
        Of `Reclust`, such as ``random_state=0``.
    """
    if use_rep == "X_pca" and use_rep not in adata.obsm:
        adata.obsm[use_rep] = _principal_components(adata.copy())
    cells = np.asarray(adata.obsm[use_rep])
    model = Reclust(n_clusters, kind="embeddings", **parameters).fit(cells)
    names = np.arange(model.n_clusters_).astype(str)
    categorical = require("pandas", purpose="Clusters of cells").Categorical
    adata.obs[key_added] = categorical.from_codes(model.labels_, names)
    adata.obsm[f"X_{key_added}"] = model.transform(cells)
    adata.uns[key_added] = card(model)
    return model


def _principal_components(cells: Any) -> np.ndarray:
    preprocess = require("scanpy", purpose="Principal components of genes", extra="scanpy").pp
    counts = cells.X.data if hasattr(cells.X, "tocsr") else cells.X
    if (counts[:1000] % 1 == 0).all():
        warn("X holds raw counts: the principal components are those of its normalized logarithms "
             "(scanpy's normalize_total and log1p). X itself stays as it is.")
        preprocess.normalize_total(cells, target_sum=1e4)
        preprocess.log1p(cells)
    if "highly_variable" not in cells.var:
        preprocess.highly_variable_genes(cells, n_top_genes=min(2000, cells.n_vars))
    preprocess.pca(cells, n_comps=min(50, sum(cells.var["highly_variable"]) - 1, cells.n_obs - 1))
    return cells.obsm["X_pca"]  # type: ignore[no-any-return]
