"""Cells: raw counts of genes in an AnnData, clustered for scanpy."""

import anndata
import numpy as np

import reclust.scanpy

rng, kind = np.random.default_rng(0), np.repeat([0, 1, 2], [200, 80, 20])
rates = np.exp(rng.normal(size=500) + (rng.random(500) < 0.2) * rng.normal(size=(3, 500)))
cells = anndata.AnnData(rng.poisson(rates[kind]).astype(np.float32))
model = reclust.scanpy.cluster(cells, "auto", random_state=0)
print(cells.obs["reclust"].value_counts())
