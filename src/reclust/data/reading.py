"""read(): what users bring, in any usual form, as a Dataset."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .arrays import NUMERIC, map_npy, read_npz
from .dataset import Dataset, Samples
from .delimited import read_csv
from .errors import DataError, naming, reading, require
from .hdf5 import open_hdf5
from .images import OnError, read_image_folder
from .tables import Table, from_frame, read_parquet

if TYPE_CHECKING:
    from torch.utils.data import Dataset as TorchDataset

PerSample: TypeAlias = "str | Sequence[Any] | NDArray[Any] | None"
_SAMPLES = ("images", "samples", "data", "X", "x")
_LABELS = ("labels", "target", "y")


def read(
    source: Any,
    *,
    key: str | None = None,
    labels: PerSample = None,
    ids: PerSample = None,
    size: tuple[int, int] | None = None,
    on_error: OnError = "raise",
) -> Dataset:
    """A Dataset from an array, tensor, DataFrame, sparse matrix, AnnData, torch Dataset, file or folder of images.

    Files: .npy (memory-mapped), .npz, .csv, .parquet, .h5, .h5ad. Arrays of two axes are tables (n, d), of three grey
    images (n, h, w), of four images (n, h, w, c) or (n, c, h, w) with c = 1 or 3. `key` names the array in a file that
    holds several. `labels` and `ids` are n values, or name a column of a table or an array beside the samples; in a
    folder of images labels="folder" takes the names of the first-level folders. `size` and `on_error` are for folders,
    see `read_image_folder`.
    """
    given = {"labels": labels, "ids": ids}
    values = {name: np.asarray(value) for name, value in given.items() if not isinstance(value, str | None)}
    if not isinstance(source, (str, os.PathLike)):
        return _assemble(name="data", files=(), **_from_memory(source, labels, ids) | values)
    path = Path(source).expanduser()
    with naming(path):
        found = _from_path(path, key, labels, ids, size, on_error)
        return _assemble(name=path.stem, files=(str(path),), **found | values)


def _from_path(
    path: Path, key: str | None, labels: PerSample, ids: PerSample, size: Any, on_error: OnError
) -> dict[str, Any]:
    if path.is_dir():
        return _from_folder(path, labels, size, on_error)
    if not path.is_file():
        raise DataError(f"There is no file or folder {path}.")
    label_name, id_name = (value if isinstance(value, str) else None for value in (labels, ids))
    suffix = path.suffix.lower()
    tables: dict[str, Callable[..., Table]] = {".csv": read_csv, ".tsv": read_csv, ".parquet": read_parquet}
    if suffix in tables:
        return _columns(tables[suffix](path, labels=label_name, ids=id_name))
    if suffix == ".npy":
        return {"samples": map_npy(path)}
    if suffix == ".npz":
        arrays = read_npz(path)
        return _pick(list(arrays), arrays.__getitem__, lambda n: arrays[n].shape, (key, label_name, id_name), path)
    if suffix in (".h5", ".hdf5"):
        with open_hdf5(path) as file:
            return _pick(file.names, file.read, file.shape, (key, label_name, id_name), path)
    if suffix == ".h5ad":
        anndata = require("anndata", purpose="Reading .h5ad files", extra="anndata")
        with reading(path):
            return _from_anndata(anndata.read_h5ad(path), label_name)
    known = ".npy, .npz, .csv, .parquet, .h5, .h5ad or a folder of images"
    raise DataError(f"{path} has the unknown ending {suffix!r}; needed: {known}.")


def _from_memory(source: Any, labels: PerSample, ids: PerSample) -> dict[str, Any]:
    label_name, id_name = (value if isinstance(value, str) else None for value in (labels, ids))
    if sparse.issparse(source) or isinstance(source, np.ndarray):
        return {"samples": source}
    # An object of a library that nobody imported cannot be here, so nothing needs importing to find out.
    if "torch" in sys.modules and isinstance(source, sys.modules["torch"].Tensor):
        return {"samples": source.detach().cpu().numpy()}
    if "torch.utils.data" in sys.modules and isinstance(source, sys.modules["torch.utils.data"].Dataset):
        return _from_torch(source)
    if "pandas" in sys.modules and isinstance(source, sys.modules["pandas"].DataFrame):
        return _columns(from_frame(source, labels=label_name, ids=id_name))
    if "anndata" in sys.modules and isinstance(source, sys.modules["anndata"].AnnData):
        return _from_anndata(source, label_name)
    if isinstance(source, Sequence) and len(source):
        with reading("The sequence"):
            return {"samples": np.asarray(source)}
    raise DataError(
        f"Cannot read a {type(source).__name__}; needed: an array, tensor, DataFrame, sparse matrix, path, …."
    )


def _from_folder(path: Path, labels: PerSample, size: tuple[int, int] | None, on_error: OnError) -> dict[str, Any]:
    images, names = read_image_folder(path, size=size, on_error=on_error)
    found: dict[str, Any] = {"samples": images, "ids": np.array(names)}
    if isinstance(labels, str):
        if labels != "folder":
            raise DataError(f"labels={labels!r} for a folder of images; needed: 'folder' or one value each.")
        found["labels"] = np.array([name.rpartition("/")[0].partition("/")[0] for name in names])
    return found


def _from_torch(source: TorchDataset[Any]) -> dict[str, Any]:
    """All items of a torch Dataset: samples, or tuples of a sample and perhaps a label, taken if it is a number."""
    if isinstance(source, sys.modules["torch.utils.data"].IterableDataset):
        items = list(source)
    else:
        items = [source[i] for i in range(len(source))]  # type: ignore[arg-type]
    if not items:
        raise DataError(f"The {type(source).__name__} is empty.")
    paired = isinstance(items[0], (tuple, list))
    samples = [np.asarray(item[0] if paired else item) for item in items]
    if any(sample.shape != samples[0].shape for sample in samples):
        odd = next(i for i, sample in enumerate(samples) if sample.shape != samples[0].shape)
        raise DataError(
            f"Item 0 has shape {samples[0].shape}, item {odd} {samples[odd].shape}; make them equal, as by a transform."
        )
    found: dict[str, Any] = {"samples": np.stack(samples)}
    if paired and len(items[0]) > 1 and np.ndim(items[0][1]) == 0:
        found["labels"] = np.array([np.asarray(item[1]).item() for item in items])
    return found


def _from_anndata(source: Any, labels: str | None) -> dict[str, Any]:
    if labels is not None and labels not in source.obs:
        raise DataError(
            f"The AnnData has no column {labels!r} in `obs`; it has {', '.join(map(repr, source.obs.columns))}."
        )
    label_values = None if labels is None else source.obs[labels].astype(str).to_numpy()
    samples = source.X if sparse.issparse(source.X) else np.asarray(source.X)
    return {"samples": samples, "labels": label_values, "ids": source.obs_names.to_numpy(),
            "feature_names": tuple(map(str, source.var_names))}


def _columns(table: Table) -> dict[str, Any]:
    return {"samples": table.values, "labels": table.labels, "ids": table.ids, "feature_names": table.names}


def _pick(
    names: Sequence[str],
    load: Callable[[str], NDArray[Any]],
    shape: Callable[[str], tuple[int, ...]],
    wanted: Sequence[str | None],
    path: Path,
) -> dict[str, Any]:
    """Samples, labels, ids and split among the arrays of a file: those asked for, else those of the usual names."""
    key, labels, ids = wanted
    for name in wanted:
        if name is not None and name not in names:
            raise DataError(f"{path} holds no array {name!r}; it holds {', '.join(names) or 'none'}.")
    usual = [name for name in _SAMPLES if name in names] or [name for name in names if len(shape(name)) >= 2]
    if key is None and len(usual) != 1 and not set(usual) & set(_SAMPLES):
        raise DataError(f"{path} holds {', '.join(names) or 'no arrays'}; say with key= which of them are the samples.")
    found: dict[str, Any] = {"samples": load(key or usual[0])}
    labels = labels or next((name for name in _LABELS if name in names), None)
    ids = ids or ("ids" if "ids" in names else None)
    for field, name in (("labels", labels), ("ids", ids), ("split", "split" if "split" in names else None)):
        if name is not None and name != (key or usual[0]):
            found[field] = load(name)
    return found


def _assemble(
    *, samples: Any, labels: Any = None, ids: Any = None, split: Any = None, feature_names: tuple[str, ...] | None = None,
    name: str, files: tuple[str, ...]
) -> Dataset:
    checked, image_shape = _layout(samples, name)
    integers = None if labels is None else _as_integers(np.asarray(labels), name)
    if split is not None and not np.isin(split, (0, 1)).all():
        raise DataError(f"{name}: `split` must be 0 (train) or 1 (test).")
    bits = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}
    return Dataset(
        samples=checked,
        labels=integers,
        ids=None if ids is None else np.asarray(ids),
        split=None if split is None else np.asarray(split).astype(np.uint8),
        feature_names=feature_names,
        name=name,
        image_shape=image_shape,
        n_clusters=None if integers is None else len(np.unique(integers)),
        max_value=bits.get(checked.dtype, 1.0),
        files=files,
    )


def _layout(samples: Any, name: str) -> tuple[Samples, tuple[int, int, int] | None]:
    """Tables as (n, d), images as (n, h, w) or (n, h, w, 3), with their (c, h, w)."""
    if samples.dtype.kind not in NUMERIC:
        raise DataError(
            f"{name}: values of type {samples.dtype}; needed: numbers. Encode or drop what is not a number."
        )
    if 0 in samples.shape or samples.ndim not in (2, 3, 4):
        raise DataError(
            f"{name}: shape {samples.shape}; needed: (n, d) for a table, (n, h, w) or (n, h, w, c) for images."
        )
    if sparse.issparse(samples):
        return sparse.csr_array(samples), None
    if samples.dtype.kind == "b":
        samples = samples.astype(np.uint8) if samples.ndim == 2 else samples.astype(np.float32)
    if samples.ndim == 2:
        return samples, None
    if samples.ndim == 4:
        if samples.shape[3] not in (1, 3) and samples.shape[1] in (1, 3):
            samples = np.moveaxis(samples, 1, 3)
        if samples.shape[3] not in (1, 3):
            raise DataError(f"{name}: images of shape {samples.shape[1:]}; needed: 1 or 3 channels, first or last.")
        samples = samples[..., 0] if samples.shape[3] == 1 else samples
    height, width, *channels = samples.shape[1:]
    return samples, (channels[0] if channels else 1, height, width)


def _as_integers(labels: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Labels as they are if they are whole numbers, else numbered in sorted order."""
    if labels.dtype.kind in "iub":
        return labels.astype(np.int64)
    if labels.dtype.kind == "f" and np.array_equal(labels, np.round(labels)):
        return labels.astype(np.int64)
    if labels.dtype.kind == "f":
        raise DataError(f"{name}: labels are fractions or missing, such as {labels[labels != np.round(labels)][0]}.")
    return np.unique(labels.astype(str), return_inverse=True)[1].reshape(labels.shape).astype(np.int64)
