"""Dataset: samples and what is known about them, as they were distributed, before any preprocessing."""

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
    """n samples: images (n, h, w) or (n, h, w, c), or rows of a table (n, d), dense, memory-mapped or sparse.

    `labels`, `split` (0 train, 1 test) and `ids` have n entries or are None. `image_shape` is (c, h, w), None for
    tables. `max_value` is what stands for 1.0 in an image (255 for bytes, 16 for OPTDIGITS), `resize_to` the (h, w) and
    `equalize` the histogram equalisation that `prepare` applies unless told otherwise. `files` are those read,
    `feature_names` the columns of a table whose columns have names.
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
        n = len(self)
        for field in ("labels", "split", "ids"):
            values = getattr(self, field)
            if values is not None and (values.ndim != 1 or len(values) != n):
                raise DataError(
                    f"{self.name}: {field} of shape {values.shape} do not go with {n} samples; needed: ({n},)."
                )
        if self.image_shape is not None:
            channels, height, width = self.image_shape
            needed = (height, width) if channels == 1 else (height, width, channels)
            if self.samples.shape[1:] != needed:
                raise DataError(f"{self.name}: images of shape {self.samples.shape[1:]}, image_shape says {needed}.")

    def __len__(self) -> int:
        return int(self.samples.shape[0])

    def __repr__(self) -> str:
        known = f", n_clusters={self.n_clusters}" if self.n_clusters is not None else ""
        return f"Dataset({self.name!r}, {self.samples.shape} {self.samples.dtype}{known})"

    @property
    def images(self) -> NDArray[Any]:
        """The samples, where they are images."""
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
        """The samples at `index` (a slice, integers or a mask) with their labels, split and ids."""
        return replace(
            self,
            samples=self.samples[index],
            labels=None if self.labels is None else self.labels[index],
            split=None if self.split is None else self.split[index],
            ids=None if self.ids is None else self.ids[index],
        )

    def rows(self, index: Any) -> NDArray[Any]:
        """Samples at `index` as a dense array: how sparse rows are densified by the batch and mapped ones loaded."""
        chosen = self.samples[index]
        return np.asarray(chosen.toarray() if sparse.issparse(chosen) else chosen)

    def _part(self, which: int, name: str) -> Dataset:
        if self.split is None:
            raise DataError(
                f"{self.name} has no train and test parts; use it whole, or give `split` (0 train, 1 test)."
            )
        part = np.flatnonzero(self.split == which)
        if not len(part):
            raise DataError(f"{self.name} has no {name} part: all {len(self)} samples belong to the other one.")
        return self.take(part)
