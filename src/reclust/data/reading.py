"""read(): what users bring, in any usual form, as a Dataset."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..exceptions import warn
from ..values import is_missing
from .arrays import NUMERIC, is_sparse, map_npy, read_npz, sparse_rows
from .dataset import Dataset, Samples
from .delimited import read_csv
from .errors import DataError, naming, reading, require
from .hdf5 import open_hdf5
from .images import OnError, holds_images, read_images
from .tables import Table, from_frame, read_parquet, refuse_masked, warn_of_row_numbers

if TYPE_CHECKING:
    from torch.utils.data import Dataset as TorchDataset

PerSample: TypeAlias = "str | Sequence[Any] | NDArray[Any] | None"
_SAMPLES = ("images", "samples", "data", "X", "x")
_LABELS = ("labels", "target", "y")
_TEXTS = (".csv", ".tsv", ".txt")
_MEANT_FOR = {
    "key": "it chooses among the arrays of a .npz, .h5 or .h5ad file",
    "labels": "it names a column of a table or an array beside the samples; for other data give one value each",
    "ids": "it names a column of a table or an array beside the samples; for other data give one value each",
    "size": "it is for images and folders of them",
    "on_error": "only broken images in a folder can be left out (--skip-broken)",
    "drop": "it names columns of a table",
}


_OF_TABLES = ("labels", "ids", "drop")


class Asked(NamedTuple):
    """What `read` is asked for beside the data; labels and ids where they are names."""

    key: str | None
    labels: str | None
    ids: str | None
    size: Sequence[int] | None
    on_error: OnError
    drop: tuple[str, ...] | None

    def only(self, *allowed: str, of: str) -> None:
        """Refuse what cannot be asked of such data: left aside in silence, it would be thought to have worked."""
        for name, value in self._asdict().items():
            if value is not None and (name, value) != ("on_error", "raise") and name not in allowed:
                raise DataError(f"{name}={value!r} cannot be given for {of}: {_MEANT_FOR[name]}.")


def read(
    source: Any,
    *,
    key: str | None = None,
    labels: PerSample = None,
    ids: PerSample = None,
    size: Sequence[int] | None = None,
    on_error: OnError = "raise",
    drop: Sequence[str] | None = None,
) -> Dataset:
    """A Dataset from an array, tensor, DataFrame, pyarrow.Table, sparse matrix, AnnData, torch Dataset, file or image folder.

    Files: .npy (memory-mapped), .npz (of numpy.savez or scipy.sparse.save_npz), .csv, .tsv and .txt (also packed, .csv.gz),
    .parquet, .h5, .hdf5, .h5ad, an image. Arrays of two axes are tables (n, d), of three grey images (n, h, w), of four images
    (n, h, w, c) or (n, c, h, w) with c = 1 or 3.
    `key` names the array in a file that holds several. `labels` and `ids` are n values, or name a column of a table or an
    array beside the samples; in a folder of images labels="folder" takes the names of the first-level folders. `drop` names
    columns of a table that are left out. `size` and
    `on_error` are for folders: images become `size`, (h, w) or (h, w, channels), and with on_error="skip" those that cannot
    be read are left out.
    """
    given = {"labels": labels, "ids": ids}
    values = {name: np.asarray(value) for name, value in given.items() if not isinstance(value, str | None)}
    label_name, id_name = (value if isinstance(value, str) else None for value in (labels, ids))
    left_out = (drop,) if isinstance(drop, str) else tuple(drop or ()) or None
    asked = Asked(key, label_name, id_name, size, on_error, left_out)
    if not isinstance(source, (str, os.PathLike)):
        return _assemble(name="data", files=(), **_from_memory(source, asked) | values)
    path = Path(source).expanduser()
    with naming(path):
        found = _from_path(path, asked)
        return _assemble(name=_unpacked(path).stem, files=(str(path),), **found | values)


def _from_path(path: Path, asked: Asked) -> dict[str, Any]:
    if holds_images(path):
        return _from_images(path, asked)
    if not path.is_file():
        raise DataError(f"There is no file or folder {path}.")
    suffix = path.name.removeprefix(_unpacked(path).stem).lower()
    if suffix.removesuffix(".gz") in _TEXTS or suffix == ".parquet":
        asked.only(*_OF_TABLES, of="a table")
        read_table = read_parquet if suffix == ".parquet" else read_csv
        return _columns(read_table(path, labels=asked.labels, ids=asked.ids, drop=asked.drop or ()))
    if suffix == ".npy":
        asked.only(of="a .npy file, which holds one array without names")
        return {"samples": map_npy(path)}
    if suffix == ".npz":
        asked.only("key", "labels", "ids", of="a .npz file")
        arrays = read_npz(path)
        if is_sparse(arrays):
            asked.only(of="a .npz file of scipy.sparse.save_npz, which holds one matrix without names")
            return {"samples": sparse_rows(arrays, path)}
        return _pick(list(arrays), arrays.__getitem__, lambda n: arrays[n].shape, asked, path)
    if suffix in (".h5", ".hdf5"):
        asked.only("key", "labels", "ids", of="an HDF5 file")
        with open_hdf5(path) as file:
            return _pick(file.names, file.read, file.shape, asked, path)
    if suffix == ".h5ad":
        anndata = require("anndata", purpose="Reading .h5ad files", extra="anndata")
        with reading(path):
            return _from_anndata(anndata.read_h5ad(path), asked)
    texts = ", ".join([*_TEXTS, *(f"{text}.gz" for text in _TEXTS)])
    known = f".npy, .npz, {texts}, .parquet, .h5, .hdf5, .h5ad, an image or a folder of images"
    raise DataError(f"{path} has the unknown ending {suffix!r}; needed: {known}.")


def _unpacked(path: Path) -> Path:
    """Without the ending of gzip."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def is_other_table(source: Any) -> bool:
    """Of pyarrow or polars."""
    kinds = {"pyarrow": ("Table",), "polars": ("DataFrame", "LazyFrame")}
    return any(isinstance(source, getattr(sys.modules[library], name))
               for library, names in kinds.items() if library in sys.modules for name in names)


def _from_memory(source: Any, asked: Asked) -> dict[str, Any]:
    # An object of a library that nobody imported cannot be here, so nothing needs importing to find out.
    if "pandas" in sys.modules and isinstance(source, sys.modules["pandas"].DataFrame):
        asked.only(*_OF_TABLES, of="a DataFrame")
        return _columns(from_frame(source, labels=asked.labels, ids=asked.ids, drop=asked.drop or ()))
    if is_other_table(source):
        asked.only(*_OF_TABLES, of="a table")
        for library in ("pandas", "pyarrow"):
            require(library, purpose="Reading tables of pyarrow and polars")
        frame = (source.collect() if hasattr(source, "collect") else source).to_pandas()
        return _columns(from_frame(frame, labels=asked.labels, ids=asked.ids, drop=asked.drop or (), where="The table"))
    if "anndata" in sys.modules and isinstance(source, sys.modules["anndata"].AnnData):
        return _from_anndata(source, asked)
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


def _from_images(path: Path, asked: Asked) -> dict[str, Any]:
    asked.only("labels", "size", "on_error", of="images, where file names are the ids")
    if asked.labels not in (None, "folder"):
        raise DataError(f"labels={asked.labels!r} for a folder of images; needed: 'folder' or one value each.")
    images, names = read_images(path, size=asked.size, on_error=asked.on_error)
    found: dict[str, Any] = {"samples": images, "ids": np.array(names), "max_value": 255.0}
    if asked.labels == "folder":
        outside = [name for name in names if "/" not in name]
        if outside:
            raise DataError(
                f"{path}: {len(outside)} of {len(names)} images are in no folder below it, such as {outside[0]}; "
                "labels='folder' needs the folder of its class for each image."
            )
        found["labels"] = np.array([name.partition("/")[0] for name in names])
    return found


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


def _from_anndata(source: Any, asked: Asked) -> dict[str, Any]:
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


def _columns(table: Table) -> dict[str, Any]:
    names = table.names or [str(i) for i in range(table.values.shape[1])]
    warn_of_row_numbers(names, lambda rows, columns: table.values[rows, columns].astype(np.float64))
    return {"samples": table.values, "labels": table.labels, "ids": table.ids, "feature_names": table.names}


def _pick(
    names: Sequence[str],
    load: Callable[[str], NDArray[Any]],
    shape: Callable[[str], tuple[int, ...]],
    asked: Asked,
    path: Path,
) -> dict[str, Any]:
    """Samples, labels, ids and split among the arrays of a file: those asked for, else those of the usual names."""
    key, labels, ids = wanted = asked[:3]
    for name in wanted:
        if name is not None and name not in names:
            raise DataError(f"{path} holds no array {name!r}; it holds {', '.join(names) or 'none'}.")
    usual = [name for name in _SAMPLES if name in names] or [name for name in names if len(shape(name)) >= 2]
    if key is None and len(usual) != 1 and not set(usual) & set(_SAMPLES):
        raise DataError(f"{path} holds {', '.join(names) or 'no arrays'}; say with key= which of them are the samples.")
    found: dict[str, Any] = {"samples": load(key or usual[0])}
    ids = ids or ("ids" if "ids" in names else None)
    guessed = {"labels": None if labels else next((name for name in _LABELS if name in names), None),
               "split": "split" if "split" in names else None}
    for field, name in {"labels": labels, "ids": ids, **{field: name for field, name in guessed.items() if name}}.items():
        if name is not None and name != (key or usual[0]):
            found[field] = load(name)
    for field, name in guessed.items():  # nobody asked for them, so they may be something else
        reason = _unfit(field, found.get(field), len(found["samples"])) if name else None
        if reason:
            warn(f"{path}: {name!r} is left aside, because it does not hold {field}: {reason}.")
            del found[field]
    return found


def _unfit(field: str, values: NDArray[Any] | None, n: int) -> str | None:
    """Why values cannot be the labels or the split of n samples, if they cannot."""
    if values is None:
        return None
    if values.shape != (n,):
        return f"its shape is {values.shape}, needed: ({n},)"
    try:
        _as_integers(values, "it") if field == "labels" else _check_split(values, "it")
    except DataError as error:
        return str(error).rstrip(".")
    return None


def _check_split(split: Any, name: str) -> None:
    if not np.isin(split, (0, 1)).all():
        raise DataError(f"{name}: `split` must be 0 (train) or 1 (test).")


def as_names(ids: NDArray[Any], name: str) -> NDArray[Any]:
    """Numbers and texts as they are, anything else as text: model files hold no other kinds."""
    if ids.ndim != 1:
        raise DataError(f"{name}: ids of shape {ids.shape}; needed: one for each sample.")
    if ids.dtype.kind == "M":
        return np.datetime_as_string(ids, unit="auto")
    if ids.dtype.kind in "iufbU":
        return ids
    return np.array([one.decode(errors="replace") if isinstance(one, bytes) else str(one) for one in ids.tolist()])


def _assemble(
    *, samples: Any, labels: Any = None, ids: Any = None, split: Any = None, feature_names: tuple[str, ...] | None = None,
    max_value: float | None = None, name: str, files: tuple[str, ...]
) -> Dataset:
    checked, image_shape = _layout(samples, name)
    integers = None if labels is None else _as_integers(np.asarray(labels), name)
    if split is not None:
        _check_split(split, name)
    bits = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}
    return Dataset(
        samples=checked,
        labels=integers,
        ids=None if ids is None else as_names(np.asarray(ids), name),
        split=None if split is None else np.asarray(split).astype(np.uint8),
        feature_names=feature_names,
        name=name,
        image_shape=image_shape,
        n_clusters=None if integers is None else len(np.unique(integers)),
        max_value=bits.get(checked.dtype, 1.0) if max_value is None else max_value,
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
        if channels_come_first(samples.shape[1:]):
            samples = np.moveaxis(samples, 1, 3)
        if samples.shape[3] not in (1, 3):
            raise DataError(f"{name}: images of shape {samples.shape[1:]}; needed: 1 or 3 channels, first or last.")
        samples = samples[..., 0] if samples.shape[3] == 1 else samples
    height, width, *channels = samples.shape[1:]
    return samples, (channels[0] if channels else 1, height, width)


def channels_come_first(shape: tuple[int, ...]) -> bool:
    """Whether images of three axes seem to be (channels, h, w), as torch has them, and not (h, w, channels)."""
    return shape[0] in (1, 3) and shape[2] not in (1, 3)


def _as_integers(labels: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Labels as they are if they are whole numbers, else numbered in sorted order; there must be one for each sample."""
    absent = np.flatnonzero([_is_absent(label) for label in labels.flat] if labels.dtype.kind in "OU" else [])
    if len(absent):
        raise DataError(
            f"{name}: {len(absent)} of {labels.size} labels are missing, the first in row {absent[0] + 1}; fill them in, "
            "drop those rows, or do without labels."
        )
    if labels.dtype.kind in "iub":
        return labels.astype(np.int64)
    if labels.dtype.kind == "f":
        wrong = labels[(labels != np.round(labels)) | ~(np.abs(labels) < 2**63)]
        if len(wrong):
            raise DataError(f"{name}: labels are fractions, missing, infinite or of more than 64 bits, such as {wrong[0]}; "
                            "needed: whole numbers or texts.")
        return labels.astype(np.int64)
    return np.unique(labels.astype(str), return_inverse=True)[1].reshape(labels.shape).astype(np.int64)


def _is_absent(label: Any) -> bool:
    """Empty text or nothing; other texts may be names of classes, "None" and "NA" too."""
    return is_missing(label) or str(label).strip() == ""
