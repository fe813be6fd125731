"""Description of a named set: its files, how to read them, and the facts to check."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .download import RemoteFile


class SetPart(NamedTuple):
    """Train or test part: uint8 images (n, h, w) or (n, h, w, c), labels (n,), ids (n,) or None."""

    images: NDArray[np.uint8]
    labels: NDArray[Any]
    ids: NDArray[Any] | None = None


Reader = Callable[[Sequence[Path]], Sequence[SetPart]]


@dataclass(frozen=True)
class Form:
    """One way a set is distributed; `read` turns the paths of `files` into its parts."""

    files: tuple[RemoteFile, ...]
    read: Reader
    verify: bool = False  # checksums before reading, for formats that run code


@dataclass(frozen=True, kw_only=True)
class NamedSet:
    """A set with the sizes of its parts, the histogram of its labels and the sum of its pixels."""

    name: str
    image_shape: tuple[int, int, int]
    forms: tuple[Form, ...]
    counts: tuple[int, ...]
    histogram: tuple[int, ...]
    total: int | None = None
    max_value: int = 255
    resize_to: tuple[int, int] = (28, 28)
    equalize: bool = False
    folders: tuple[str, ...]  # below the data folder; downloads go to the first
    citation: str
    licence: str

    @property
    def n_clusters(self) -> int:
        return len(self.histogram)

    def check_images(self, images: NDArray[Any], labels: NDArray[Any], *, where: str) -> None:
        """Raise unless images and labels look like those of this set, however many there are."""
        channels, height, width = self.image_shape
        shape = (height, width) if channels == 1 else (height, width, channels)
        if (images.dtype, images.shape[1:]) != (np.uint8, shape) or not (
                0 <= labels.min() and labels.max() < self.n_clusters):
            raise DataError(f"{where}: images {images.shape} {images.dtype}; {self.name} has "
                            f"{('n', *shape)} uint8 with labels 0..{self.n_clusters - 1}.")

    def check_whole(self, parts: Sequence[SetPart], *, where: str) -> None:
        """Raise unless the parts are exactly this set, complete and unchanged."""
        for part in parts:
            self.check_images(part.images, part.labels, where=where)
        labels = np.concatenate([part.labels for part in parts])
        facts: list[tuple[str, Any, Any]] = [
            ("images", tuple(len(part.labels) for part in parts), self.counts),
            ("images per class", tuple(np.bincount(labels, minlength=self.n_clusters).tolist()),
             self.histogram)]
        if self.total is not None:
            total = sum(int(part.images.sum(dtype=np.int64)) for part in parts)
            facts.append(("sum of pixels", total, self.total))
        for what, found, expected in facts:
            if found != expected:
                raise DataError(f"{where}: {what}: {found}; {self.name} has {expected}.")
