"""The words in which a family describes its named sets: files, how to read them, and the facts they must agree with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .download import RemoteFile


class Part(NamedTuple):
    """One part of a set: uint8 images (n, h, w) or (n, h, w, c), labels (n,), ids (n,) or None."""

    images: NDArray[np.uint8]
    labels: NDArray[Any]
    ids: NDArray[Any] | None = None


@dataclass(frozen=True)
class Form:
    """One way a set is distributed: `read` turns the paths of `files` into its parts (train and test, or the only one).

    `exact` is False where values went through another program's rounding, so that sums of pixels differ slightly.
    """

    files: tuple[RemoteFile, ...]
    read: Callable[[Sequence[Path]], Sequence[Part]]
    exact: bool = True


@dataclass(frozen=True, kw_only=True)
class NamedSet:
    """A set by name; `counts` of its parts, `histogram` of its labels and `total` of its pixels tell it from others.

    `folders` below the data folder are where its files are looked for; downloads go to the first.
    """

    name: str
    image_shape: tuple[int, int, int]
    forms: tuple[Form, ...]
    counts: tuple[int, ...]
    histogram: tuple[int, ...]
    total: int | None = None
    max_value: int = 255
    resize_to: tuple[int, int] = (28, 28)
    equalize: bool = False
    folders: tuple[str, ...]
    citation: str
    licence: str

    @property
    def n_clusters(self) -> int:
        return len(self.histogram)

    def check_images(self, images: NDArray[Any], labels: NDArray[Any], *, where: str) -> None:
        """That images and labels are of this family, however many there are."""
        channels, height, width = self.image_shape
        needed = (height, width) if channels == 1 else (height, width, channels)
        if images.dtype != np.uint8 or images.shape[1:] != needed or not len(images):
            raise DataError(f"{where}: images {images.shape} {images.dtype}; {self.name} has {('n', *needed)} uint8.")
        if labels.shape != (len(images),) or labels.dtype.kind not in "iu":
            raise DataError(
                f"{where}: labels {labels.shape} {labels.dtype} for {len(images)} images; needed: one integer each."
            )
        if labels.min() < 0 or labels.max() >= self.n_clusters:
            raise DataError(
                f"{where}: labels {labels.min()}..{labels.max()}; {self.name} has 0..{self.n_clusters - 1}."
            )
        if images.max() > self.max_value:
            raise DataError(f"{where}: a pixel of {images.max()}; {self.name} has 0..{self.max_value}.")

    def check_whole(self, parts: Sequence[Part], *, where: str, exact: bool) -> None:
        """That the parts are this very set, complete and unchanged."""
        for part in parts:
            self.check_images(part.images, part.labels, where=where)
        counts = tuple(len(part.labels) for part in parts)
        if counts != self.counts:
            raise DataError(f"{where}: {_numbers(counts)} images; {self.name} has {_numbers(self.counts)}.")
        histogram = sum(np.bincount(part.labels, minlength=self.n_clusters) for part in parts)
        if tuple(np.asarray(histogram).tolist()) != self.histogram:
            raise DataError(
                f"{where}: {np.asarray(histogram).tolist()} images a class; {self.name} has {list(self.histogram)}."
            )
        total = sum(int(part.images.sum(dtype=np.int64)) for part in parts)
        if exact and self.total is not None and total != self.total:
            raise DataError(
                f"{where}: the pixels sum to {total}; those of {self.name} to {self.total}: the file was changed."
            )


def _numbers(counts: Sequence[int]) -> str:
    return " + ".join(map(str, counts))
