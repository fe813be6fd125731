"""How far long work is: a bar where somebody watches a terminal, or a function that is told."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from tqdm.auto import tqdm

Shown = bool | Callable[[float], None] | None
"""Whether there is a bar, None where somebody watches a terminal; or what is told the share that is done, from 0 to 1."""


def bar(total: float, shown: Shown, **how: Any) -> tqdm | Told:
    """To be used in a `with`. how: of `tqdm`."""
    if callable(shown):
        return Told(total, shown)
    return tqdm(total=total, disable=None if shown is None else not shown, **how)


class Told:
    """Takes the place of a bar."""

    def __init__(self, total: float, tell: Callable[[float], None]) -> None:
        self._total, self._tell, self._done = total, tell, 0.0

    def update(self, done: float = 1.0) -> None:
        self._done += done
        self._tell(min(1.0, self._done / self._total) if self._total else 1.0)

    def set_postfix_str(self, text: str, *, refresh: bool = True) -> None:
        pass

    def __enter__(self) -> Told:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass
