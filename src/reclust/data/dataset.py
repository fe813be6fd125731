"""The Dataset class: samples and their description, before any preprocessing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .errors import DataError

Samples: TypeAlias = "NDArray[Any] | sparse.csr_array"
TRAIN, TEST = 0, 1


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset:
    """Images or rows of a table with their labels, ids and description.

    Parameters
    ----------
    samples
        Images (n, h, w) or (n, h, w, c), or a table (n, d): dense, memory-mapped or sparse.
    labels, split, ids
        Classes (n,), parts (n,) with 0 for train and 1 for test, and names (n,), or None.
    name
        Name in messages.
    image_shape
        (c, h, w), or None for tables.
    n_clusters
        Number of classes, if known.
    max_value
        Pixel value that stands for 1.0: 255 for bytes, 16 for OPTDIGITS.
    resize_to, equalize
        Size (h, w) and histogram equalisation that `prepare` applies by default.
    citation, licence
        How to cite the data, and its terms.
    files
        Paths that were read.
    feature_names
        Names of the columns of a table, if it has any.

    Examples
    --------
    >>> from reclust.data import load
    >>> load("digits")
    Dataset('digits', (1797, 8, 8) uint8, n_clusters=10)
    """

    samples: Samples
    labels: NDArray[np.int64] | None = None
    split: NDArray[np.uint8] | None = None
    ids: NDArray[Any] | None = None
    name: str = "data"
    image_shape: tuple[int, int, int] | None = None
    n_clusters: int | None = None
    max_value: float = 1.0
    resize_to: tuple[int, int] | None = None
    equalize: bool = False
    citation: str = ""
    licence: str = ""
    files: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for field in ("labels", "split", "ids"):
            values = getattr(self, field)
            if values is not None and values.shape != (len(self),):
                raise DataError(f"{self.name}: {field} of shape {values.shape} do not fit "
                                f"{len(self)} samples; needed: ({len(self)},).")

    def __len__(self) -> int:
        return int(self.samples.shape[0])

    def __repr__(self) -> str:
        known = f", n_clusters={self.n_clusters}" if self.n_clusters is not None else ""
        return f"Dataset({self.name!r}, {self.samples.shape} {self.samples.dtype}{known})"

    @property
    def images(self) -> NDArray[Any]:
        """The samples, if they are images."""
        if self.image_shape is None or isinstance(self.samples, sparse.csr_array):
            raise DataError(f"{self.name} holds rows of a table, not images; use `samples`.")
        return self.samples

    @property
    def train(self) -> Dataset:
        """The training part."""
        return self._part(TRAIN, "train")

    @property
    def test(self) -> Dataset:
        """The test part."""
        return self._part(TEST, "test")

    def take(self, index: Any) -> Dataset:
        """Select samples by a slice, integers or a mask, with their labels, split and ids."""
        chosen: dict[str, Any] = {name: getattr(self, name)[index]
                                  for name in ("samples", "labels", "split", "ids")
                                  if getattr(self, name) is not None}
        return replace(self, **chosen)

    def rows(self, index: Any) -> NDArray[Any]:
        """Return the samples at `index` as a dense array in memory."""
        chosen = self.samples[index]
        return np.asarray(chosen.toarray() if sparse.issparse(chosen) else chosen)

    def _part(self, which: int, name: str) -> Dataset:
        part = np.flatnonzero(self.split == which)
        if self.split is None or not len(part):
            raise DataError(f"{self.name} has no {name} part; use it whole, or give `split` "
                            "(0 train, 1 test).")
        return self.take(part)
