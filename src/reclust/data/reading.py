"""The function `read`: data in any common form as a Dataset."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..utils.exceptions import require, warn
from .dataset import Dataset, as_integers, as_split, assemble
from .errors import DataError, check_size
from .formats.arrays import bytes_of, check_texts, load_array, map_npy, open_hdf5, read_npz
from .formats.csv import read_csv
from .formats.images import UNSUPPORTED, OnError, holds_images, read_images
from .formats.memory import TABLE_OPTIONS, ReadOptions, from_anndata, from_memory
from .formats.tables import read_parquet

PerSample: TypeAlias = "str | Sequence[Any] | NDArray[Any] | None"
_SAMPLES = ("images", "samples", "data", "X", "x")
_LABELS = ("labels", "target", "y")
_TEXT = (".csv", ".tsv", ".txt")
_SPREADSHEETS = (".xls", ".xlsx", ".xlsm", ".xlsb", ".ods")


def read(source: Any, *, key: str | None = None, labels: PerSample = None, ids: PerSample = None,
         size: Sequence[int] | None = None, on_error: OnError = "raise",
         drop: Sequence[str] | None = None) -> Dataset:
    """Read data of any common form.

    Parameters
    ----------
    source
        An array, tensor, list, DataFrame, pyarrow or polars table, sparse matrix, AnnData, torch
        Dataset, or a path: .npy (memory-mapped), .npz, .csv, .tsv or .txt (also .gz), .parquet,
        .h5, .hdf5, .h5ad, an image or a folder of images. Arrays are tables (n, d), gray images
        (n, h, w), or images (n, h, w, c) or (n, c, h, w).
    key
        Name of the array to take from a file that holds several.
    labels, ids
        One value for each sample, or the name of a column or of an array beside the samples.
        With labels="folder", images are labeled by the names of the first-level folders.
    size
        Resize images to (h, w) or (h, w, channels).
    on_error
        "skip" leaves out unreadable images of a folder instead of raising an error.
    drop
        Columns of a table to leave out.

    Examples
    --------
    >>> import numpy as np
    >>> from reclust.data import read
    >>> read(np.zeros((10, 4)), labels=["a", "b"] * 5)
    Dataset('data', (10, 4) float64, n_clusters=2)
    """
    annotations = {"labels": labels, "ids": ids}
    names = {name: value for name, value in annotations.items() if isinstance(value, str)}
    values = {name: np.asarray(value) for name, value in annotations.items()
              if value is not None and name not in names}
    left_out = (drop,) if isinstance(drop, str) else tuple(drop or ()) or None
    options = ReadOptions(key=key, size=size, on_error=on_error, drop=left_out, **names)
    if not isinstance(source, (str, os.PathLike)):
        return assemble(name="data", files=(), **from_memory(source, options) | values)
    path = Path(source).expanduser()
    return assemble(name=_without_gz(path).stem, files=(str(path),),
                    **_from_path(path, options) | values)


def _from_path(path: Path, options: ReadOptions) -> dict[str, Any]:
    if holds_images(path):
        return _from_images(path, options)
    if not path.is_file():
        raise DataError(f"There is no file or folder {path}.")
    suffix = path.name.removeprefix(_without_gz(path).stem).lower()
    if suffix.removesuffix(".gz") in _TEXT or suffix == ".parquet":
        options.allow(*TABLE_OPTIONS, source="a table")
        read_table = read_parquet if suffix == ".parquet" else read_csv
        return read_table(path, **options.columns())._asdict()
    if suffix == ".npy":
        options.allow(source="a .npy file, which holds one array without names")
        return {"samples": map_npy(path)}
    if suffix == ".npz":
        options.allow("key", "labels", "ids", source="a .npz file")
        arrays = read_npz(path)
        if sparse.issparse(arrays):
            options.allow(source="a .npz file of scipy.sparse.save_npz, which holds one matrix")
            return {"samples": arrays}
        return _pick(arrays, options, path)
    if suffix in (".h5", ".hdf5"):
        options.allow("key", "labels", "ids", source="an HDF5 file")
        with open_hdf5(path) as arrays:
            return _pick(arrays, options, path)
    if suffix == ".h5ad":
        anndata = require("anndata", purpose="Reading .h5ad files", extra="anndata")
        with open_hdf5(path) as found:  # refuses links to other files
            check_size(path, sum(map(bytes_of, found.values())), path.stat().st_size)
            for array in found.values():
                if array.dtype.kind == "O" and array.compression != "lzf":
                    check_texts(array)
        return from_anndata(anndata.read_h5ad(path), options)
    advice = "needed: .npy, .npz, .csv, .tsv, .txt (also .gz), .parquet, .h5, .hdf5, .h5ad, images"
    if suffix in _SPREADSHEETS:
        advice = "save spreadsheets as CSV UTF-8, or give pandas.read_excel(…)"
    if suffix in UNSUPPORTED:
        advice = "convert it to JPEG or PNG first"
    raise DataError(f"{path}: files with the ending {suffix!r} cannot be read; {advice}.")


def _without_gz(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def _from_images(path: Path, options: ReadOptions) -> dict[str, Any]:
    options.allow("labels", "size", "on_error", source="images, whose ids are the file names")
    if options.labels not in (None, "folder"):
        raise DataError(f"labels={options.labels!r} for images; needed: 'folder' or one for each.")
    images, names = read_images(path, size=options.size, on_error=options.on_error)
    fields: dict[str, Any] = {"samples": images, "max_value": 255.0,
                              "ids": np.array(names, dtype=object)}
    outside = [name for name in names if "/" not in name]
    if options.labels and outside:
        raise DataError(f"{path}: {len(outside)} of {len(names)} images are in no folder below it, "
                        f"such as {outside[0]}; labels='folder' needs a folder per class.")
    if options.labels:
        fields["labels"] = np.array([name.partition("/")[0] for name in names], dtype=object)
    return fields


def _pick(arrays: Mapping[str, Any], options: ReadOptions, path: Path) -> dict[str, Any]:
    """Pick samples, labels, ids and split among the arrays of a file, by their usual names."""
    listed = ", ".join(arrays) or "no arrays"
    for name in (options.key, options.labels, options.ids):
        if name is not None and name not in arrays:
            raise DataError(f"{path} holds no array {name!r}; it holds {listed}.")
    usual = [name for name in _SAMPLES if name in arrays]
    usual = usual[:1] or [name for name, array in arrays.items() if len(array.shape or ()) >= 2]
    if options.key is None and len(usual) != 1:
        raise DataError(f"{path} holds {listed}; choose the samples with key= (--key).")
    key = options.key or usual[0]
    fields: dict[str, Any] = {"samples": load_array(arrays[key])}
    chosen = {"labels": options.labels, "ids": options.ids or ("ids" if "ids" in arrays else None)}
    fields |= {field: load_array(arrays[name]) for field, name in chosen.items()
               if name is not None and name != key}
    for field, candidates in (("labels", _LABELS), ("split", ("split",))):
        name = next((name for name in candidates if name in arrays), None)
        if name is None or name == key or field in fields:
            continue
        values, needed = load_array(arrays[name]), fields["samples"].shape[:1]
        try:
            if values.shape != needed:
                raise DataError(f"its shape is {values.shape}, needed: {needed}.")
            (as_integers if field == "labels" else as_split)(values, "it")
            fields[field] = values
        except DataError as error:
            warn(f"{path}: {name!r} is ignored because it does not hold {field}: {error}")
    return fields
