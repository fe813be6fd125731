"""Samples in memory: parts of an AnnData and items of torch data sets."""

import numpy as np
import pytest
import torch
from support import blobs

from reclust.data import DataError, read

X = blobs(60)[0]


@pytest.mark.extras
def test_parts_of_an_anndata_are_chosen_by_key(tmp_path):
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    obs, var = (pandas.DataFrame(index=pandas.Index([f"{kind}{i}" for i in range(n)], dtype=object)) for kind, n in zip("cg", X.shape, strict=True))
    data = anndata.AnnData(X.astype(np.float32), obs=obs, var=var)
    data.obsm["X_pca"], data.layers["scaled"] = X[:, :3], 2 * X
    data.write_h5ad(tmp_path / "cells.h5ad")
    for source in (data, tmp_path / "cells.h5ad", anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")):
        assert read(source, key="X_pca").samples.shape == (60, 3) and read(source, key="X_pca").feature_names is None
        assert (read(source, key="scaled").samples == 2 * X).all() and read(source).samples.shape == X.shape
    with pytest.raises(DataError, match="no 'X_umap' in `obsm` or `layers`; choose one of them with key=: scaled, X_pca"):
        read(data, key="X_umap")
    with pytest.raises(DataError, match="has no X; choose one of them with key=: X_pca"):
        read(anndata.AnnData(obsm={"X_pca": X[:, :3]}))


class Items(torch.utils.data.Dataset):
    def __init__(self, items):
        self.items = items

    def __getitem__(self, i):
        return self.items[i]

    def __len__(self):
        return len(self.items)


def test_items_of_torch_data_sets_are_samples():
    rows = torch.from_numpy(X[:6])
    assert read(torch.utils.data.TensorDataset(rows.bfloat16())).samples.dtype == np.float32
    assert read(torch.utils.data.TensorDataset(rows.clone().requires_grad_())).samples.shape == (6, 12)
    assert read(rows.bfloat16()).samples.shape == (6, 12)
    with pytest.raises(DataError, match=r"values of type object; needed: numbers"):
        read(Items([{"image": row} for row in rows]))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("make", [lambda: torch.nested.nested_tensor([torch.zeros(3), torch.zeros(4)]), lambda: torch.zeros(4, 3, device="meta"),
                                  lambda: torch.eye(4).to_sparse()], ids=["nested", "meta", "sparse"])
def test_tensors_without_dense_numbers_are_refused(make):
    with pytest.raises(DataError, match="The tensor is .*not in the format"):
        read(make())
