"""Samples of what is in memory already: arrays, tensors, tables, sparse matrices, AnnData, torch data sets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import DataError, reading, require
from .options import OF_TABLES, Asked
from .tables import as_found, from_frame, refuse_masked

if TYPE_CHECKING:
    from torch.utils.data import Dataset as TorchDataset


def from_memory(source: Any, asked: Asked) -> dict[str, Any]:
    # An object of a library that nobody imported cannot be here, so nothing needs importing to find out.
    if "pandas" in sys.modules and isinstance(source, sys.modules["pandas"].DataFrame):
        asked.only(*OF_TABLES, of="a DataFrame")
        return as_found(from_frame(source, labels=asked.labels, ids=asked.ids, drop=asked.drop or ()))
    if is_other_table(source):
        asked.only(*OF_TABLES, of="a table")
        for library in ("pandas", "pyarrow"):
            require(library, purpose="Reading tables of pyarrow and polars")
        frame = (source.collect() if hasattr(source, "collect") else source).to_pandas()
        return as_found(from_frame(frame, labels=asked.labels, ids=asked.ids, drop=asked.drop or (), where="The table"))
    if "anndata" in sys.modules and isinstance(source, sys.modules["anndata"].AnnData):
        return from_anndata(source, asked)
    asked.only(of=f"a {type(source).__name__}, which holds samples without names")
    refuse_masked(source)
    if sparse.issparse(source) or isinstance(source, np.ndarray):
        return {"samples": source}
    if "torch" in sys.modules and isinstance(source, sys.modules["torch"].Tensor):
        return {"samples": as_numpy(source)}
    if "torch.utils.data" in sys.modules and isinstance(source, sys.modules["torch.utils.data"].Dataset):
        return _from_torch(source)
    if isinstance(source, Sequence) and len(source):
        with reading("The sequence"):
            return {"samples": np.asarray(source)}
    raise DataError(
        f"Cannot read a {type(source).__name__}; needed: an array, tensor, DataFrame, sparse matrix, path, …."
    )


def is_other_table(source: Any) -> bool:
    """Of pyarrow or polars."""
    kinds = {"pyarrow": ("Table",), "polars": ("DataFrame", "LazyFrame")}
    return any(isinstance(source, getattr(sys.modules[library], name))
               for library, names in kinds.items() if library in sys.modules for name in names)


def _from_torch(source: TorchDataset[Any]) -> dict[str, Any]:
    """All items of a torch Dataset: samples, or tuples of a sample and perhaps a label, taken if it is a number."""
    if isinstance(source, sys.modules["torch.utils.data"].IterableDataset):
        items = list(source)
    else:
        if not hasattr(source, "__len__"):
            raise DataError(f"The {type(source).__name__} does not say how many items it has: give it a __len__.")
        items = [source[i] for i in range(len(source))]
    if not items:
        raise DataError(f"The {type(source).__name__} is empty.")
    paired = isinstance(items[0], (tuple, list))
    samples = [as_numpy(item[0] if paired else item) for item in items]
    if samples[0].dtype.kind == "O":
        raise DataError(f"Items of the {type(source).__name__} are of type {type(items[0]).__name__}; needed: samples, or "
                        "tuples of a sample and a label. Wrap it in a data set whose __getitem__ gives these.")
    if any(sample.shape != samples[0].shape for sample in samples):
        odd = next(i for i, sample in enumerate(samples) if sample.shape != samples[0].shape)
        raise DataError(
            f"Item 0 has shape {samples[0].shape}, item {odd} {samples[odd].shape}; make them equal, as by a transform."
        )
    found: dict[str, Any] = {"samples": np.stack(samples)}
    if paired and len(items[0]) > 1 and np.ndim(items[0][1]) == 0:
        found["labels"] = np.array([np.asarray(item[1]).item() for item in items])
    return found


def as_numpy(item: Any) -> NDArray[Any]:
    """Of tensors, wherever they are, and of whatever numpy takes."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(item, torch.Tensor):
        return np.asarray(item)
    return item.detach().cpu().to(torch.float32 if item.dtype == torch.bfloat16 else item.dtype).numpy()  # which numpy lacks


def from_anndata(source: Any, asked: Asked) -> dict[str, Any]:
    asked.only("key", "labels", "ids", of="an AnnData")
    source = source.to_memory() if source.isbacked else source
    samples = _chosen(source, asked.key)
    for name in (asked.labels, asked.ids):
        if name is not None and name not in source.obs:
            raise DataError(
                f"The AnnData has no column {name!r} in `obs`; it has {', '.join(map(repr, source.obs.columns))}."
            )
    label_values = None if asked.labels is None else source.obs[asked.labels].astype(object).to_numpy()
    ids = source.obs_names if asked.ids is None else source.obs[asked.ids]
    names = tuple(map(str, source.var_names)) if samples.shape[1] == len(source.var_names) else None
    return {"samples": samples, "labels": label_values, "ids": ids.to_numpy(), "feature_names": names}


def _chosen(source: Any, key: str | None) -> Any:
    """X of an AnnData, or what is named in its `obsm` or `layers`."""
    within = {**dict(source.layers), **dict(source.obsm)}
    if key is not None and key not in within:
        raise DataError(f"The AnnData has no {key!r} in `obsm` or `layers`; it has {', '.join(within) or 'nothing there'}.")
    found = source.X if key is None else within[key]
    if found is None:
        raise DataError(f"The AnnData has no X; say with key= what to cluster, it has {', '.join(within) or 'nothing else'}.")
    return found if sparse.issparse(found) else np.asarray(found)
