"""What a reader is asked for beside the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import DataError
from .images import OnError

OF_TABLES = ("labels", "ids", "drop")
_MEANT_FOR = {
    "key": "it chooses among the arrays of a .npz, .h5 or .h5ad file",
    "labels": "it names a column of a table or an array beside the samples; for other data give one value each",
    "ids": "it names a column of a table or an array beside the samples; for other data give one value each",
    "size": "it is for images and folders of them",
    "on_error": "only broken images in a folder can be left out (--skip-broken)",
    "drop": "it names columns of a table",
}


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
