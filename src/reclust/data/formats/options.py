"""Options of `read` beside the data itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import DataError
from .images import OnError

TABLE_OPTIONS = ("labels", "ids", "drop")
_BY_NAME = ("it names a column of a table or an array beside the samples; for other data give one "
            "value for each sample")
_MEANT_FOR = {
    "key": "it chooses among the arrays of a .npz, .h5 or .h5ad file",
    "labels": _BY_NAME,
    "ids": _BY_NAME,
    "size": "it is for images and folders of them",
    "on_error": "only broken images in a folder can be left out (--skip-broken)",
    "drop": "it names columns of a table",
}


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
                raise DataError(f"{name}={value!r} cannot be given for {source}: "
                                f"{_MEANT_FOR[name]}.")
