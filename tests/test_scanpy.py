"""Clusters of cells are left where scanpy looks for them."""

from types import SimpleNamespace

import numpy as np
import pytest
from support import blobs

import reclust
from reclust import Reclust, ReclustWarning, metrics
from reclust.scanpy import cluster

QUICK = {"effort": "quick", "random_state": 0}


def counts(n=300, genes=200, seed=0):
    """Cells of three types of uneven size, with counts of genes."""
    rng = np.random.default_rng(seed)
    types = np.repeat(np.arange(3), [n // 2, n // 3, n - n // 2 - n // 3])
    rates = rng.gamma(1.0, 2.0, size=genes) * np.exp(rng.normal(size=(3, genes)) * (rng.random(genes) < 0.3))
    depth = rng.lognormal(0, 0.5, size=(n, 1))
    return rng.poisson(rates[types] * depth).astype(np.float32), types


def test_components_are_clustered_and_the_results_are_those_of_reclust():
    X, _ = blobs(n=90)
    cells = SimpleNamespace(obsm={"X_pca": X}, obs={}, uns={})
    model = cluster(cells, 4, key_added="type", **QUICK)
    same = Reclust(4, kind="embeddings", **QUICK).fit(X)
    assert cells.obs["type"].tolist() == same.labels_.astype(str).tolist()
    assert cells.obs["type"].categories.tolist() == ["0", "1", "2", "3"]
    np.testing.assert_array_equal(cells.obsm["X_type"], model.transform(X))
    assert cells.uns["type"]["sizes"] == np.bincount(model.labels_).tolist()
    assert reclust.scanpy.cluster is cluster


@pytest.mark.extras
def test_raw_counts_of_an_anndata(tmp_path):
    anndata = pytest.importorskip("anndata")
    pytest.importorskip("scanpy")
    X, types = counts()
    cells = anndata.AnnData(X.copy())
    with pytest.warns(ReclustWarning, match="raw counts"):
        cluster(cells, 3, **QUICK)
    assert metrics.ari(types, cells.obs["reclust"].cat.codes.to_numpy()) > 0.95
    np.testing.assert_array_equal(cells.X, X)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert read.obs["reclust"].dtype == "category" and read.uns["reclust"]["clusters"] == 3
