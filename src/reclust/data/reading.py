"""read(): what users bring, in any usual form, as a Dataset."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..utils.exceptions import warn
from .assemble import as_integers, assemble, check_split
from .dataset import Dataset
from .errors import DataError, naming, reading, require
from .formats.arrays import is_sparse, map_npy, read_npz, sparse_rows
from .formats.csv import read_csv
from .formats.hdf5 import open_hdf5
from .formats.images import UNREAD, OnError, holds_images, read_images
from .formats.memory import from_anndata, from_memory
from .formats.options import OF_TABLES, Asked
from .formats.tables import as_found, read_parquet

PerSample: TypeAlias = "str | Sequence[Any] | NDArray[Any] | None"
_SAMPLES = ("images", "samples", "data", "X", "x")
_LABELS = ("labels", "target", "y")
_TEXTS = (".csv", ".tsv", ".txt")
_SPREADSHEETS = (".xls", ".xlsx", ".xlsm", ".xlsb", ".ods")


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
        return assemble(name="data", files=(), **from_memory(source, asked) | values)
    path = Path(source).expanduser()
    with naming(path):
        found = _from_path(path, asked)
        return assemble(name=_unpacked(path).stem, files=(str(path),), **found | values)


def _from_path(path: Path, asked: Asked) -> dict[str, Any]:
    if holds_images(path):
        return _from_images(path, asked)
    if not path.is_file():
        raise DataError(f"There is no file or folder {path}.")
    suffix = path.name.removeprefix(_unpacked(path).stem).lower()
    if suffix.removesuffix(".gz") in _TEXTS or suffix == ".parquet":
        asked.only(*OF_TABLES, of="a table")
        read_table = read_parquet if suffix == ".parquet" else read_csv
        return as_found(read_table(path, labels=asked.labels, ids=asked.ids, drop=asked.drop or ()))
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
            return from_anndata(anndata.read_h5ad(path), asked)
    if suffix in _SPREADSHEETS:
        raise DataError(f"{path} is a spreadsheet, which is not read: save it as CSV UTF-8, or give pandas.read_excel(…).")
    if suffix in UNREAD:
        raise DataError(f"{path} is an image in a format that is not read: convert it to JPEG or PNG first.")
    texts = ", ".join([*_TEXTS, *(f"{text}.gz" for text in _TEXTS)])
    known = f".npy, .npz, {texts}, .parquet, .h5, .hdf5, .h5ad, an image or a folder of images"
    raise DataError(f"{path} has the unknown ending {suffix!r}; needed: {known}.")


def _unpacked(path: Path) -> Path:
    """Without the ending of gzip."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


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
        raise DataError(f"{path} holds {', '.join(names) or 'no arrays'}; say with key= of `reclust.data.reading`, on the "
                        "command line with --key, which of them are the samples.")
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
        as_integers(values, "it") if field == "labels" else check_split(values, "it")
    except DataError as error:
        return str(error).rstrip(".")
    return None
