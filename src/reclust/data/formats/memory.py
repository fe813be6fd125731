"""Options of `read`, and samples in memory: arrays, tensors, tables, sparse matrices, AnnData."""

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...utils.exceptions import require
from ..errors import DataError, explain_read_errors
from .images import OnError
from .tables import from_frame

TABLE_OPTIONS = ("labels", "ids", "drop")


class ReadOptions(NamedTuple):
    """Options of `read`; `labels` and `ids` only if they are names."""

    key: str | None = None
    labels: str | None = None
    ids: str | None = None
    size: Sequence[int] | None = None
    on_error: OnError = "raise"
    drop: tuple[str, ...] | None = None

    def allow(self, *allowed: str, source: str) -> None:
        """Raise if an option was given that does nothing for this kind of source."""
        for name, value in self._asdict().items():
            if value not in (None, "raise") and name not in allowed:
                raise DataError(f"{name}={value!r} cannot be given for {source}.")

    def columns(self) -> dict[str, Any]:
        return {"labels": self.labels, "ids": self.ids, "drop": self.drop or ()}


def from_memory(source: Any, options: ReadOptions) -> dict[str, Any]:
    """Return the arguments for `assemble` from an object of any supported kind."""
    is_frame = is_dataframe(source)
    if is_frame or is_arrow_or_polars(source):
        options.allow(*TABLE_OPTIONS, source="a DataFrame" if is_frame else "a table")
        if not is_frame:
            for library in ("pandas", "pyarrow"):
                require(library, purpose="Reading tables of pyarrow and polars")
            source = (source.collect() if hasattr(source, "collect") else source).to_pandas()
        return from_frame(source, **options.columns())._asdict()
    if is_instance(source, "anndata", "AnnData"):
        return from_anndata(source, options)
    options.allow(source=f"a {type(source).__name__}, which holds samples without names")
    if sparse.issparse(source) or isinstance(source, np.ndarray):
        return {"samples": source}
    if is_instance(source, "torch", "Tensor"):
        return {"samples": as_numpy(source)}
    if is_instance(source, "torch.utils.data", "Dataset"):
        return _from_torch(source)
    if isinstance(source, Sequence) and len(source):
        with explain_read_errors("The sequence"):
            return {"samples": np.asarray(source)}
    raise DataError(f"Cannot read a {type(source).__name__}; needed: an array, DataFrame, path, ….")


def is_instance(source: Any, library: str, *names: str) -> bool:
    """Test for a class without importing its library."""
    module = sys.modules.get(library)
    return module is not None and isinstance(source, tuple(getattr(module, name) for name in names))


def is_dataframe(source: Any) -> bool:
    return is_instance(source, "pandas", "DataFrame")


def is_arrow_or_polars(source: Any) -> bool:
    return (is_instance(source, "pyarrow", "Table")
            or is_instance(source, "polars", "DataFrame", "LazyFrame"))


def _from_torch(source: Any) -> dict[str, Any]:
    """Read all items of a torch Dataset: samples, or tuples of a sample and perhaps a label."""
    is_iterable = is_instance(source, "torch.utils.data", "IterableDataset")
    items = list(source) if is_iterable else [source[i] for i in range(len(source))]
    paired = bool(items) and isinstance(items[0], (tuple, list))
    samples = [as_numpy(item[0] if paired else item) for item in items]
    shapes = {sample.shape for sample in samples}
    if len(shapes) != 1:
        problem = f"holds items of different shapes, such as {sorted(shapes)[:2]}: resize them"
        raise DataError(f"The {type(source).__name__} {problem if items else 'is empty'}.")
    fields: dict[str, Any] = {"samples": np.stack(samples)}
    if paired and len(items[0]) > 1 and np.ndim(items[0][1]) == 0:
        fields["labels"] = np.array([np.asarray(item[1]).item() for item in items])
    return fields


def as_numpy(item: Any) -> NDArray[Any]:
    if not is_instance(item, "torch", "Tensor"):
        return np.asarray(item)
    with explain_read_errors("The tensor"):
        tensor = item.detach().cpu()
        return np.asarray(tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor)


def from_anndata(source: Any, options: ReadOptions) -> dict[str, Any]:
    """Take X of an AnnData, or the entry `key` of its `obsm` or `layers`."""
    options.allow("key", "labels", "ids", source="an AnnData")
    source = source.to_memory() if source.isbacked else source
    entries = {None: source.X, **dict(source.layers), **dict(source.obsm)}
    samples = entries.get(options.key)
    if samples is None:
        wanted = "X" if options.key is None else f"{options.key!r} in `obsm` or `layers`"
        raise DataError(f"The AnnData has no {wanted}; choose one of them with key=: "
                        f"{', '.join(name for name in entries if name) or 'there are none'}.")
    for name in (options.labels, options.ids):
        if name is not None and name not in source.obs:
            raise DataError(f"The AnnData has no column {name!r} in `obs`; it has "
                            f"{', '.join(map(repr, source.obs.columns))}.")
    labels = options.labels and source.obs[options.labels].astype(object).to_numpy()
    ids = source.obs_names if options.ids is None else source.obs[options.ids]
    has_names = samples.shape[1] == len(source.var_names)
    return {"samples": samples if sparse.issparse(samples) else np.asarray(samples),
            "labels": labels, "ids": ids.to_numpy(),
            "feature_names": tuple(map(str, source.var_names)) if has_names else None}
