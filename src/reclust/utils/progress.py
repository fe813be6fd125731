"""How far long work is: a bar where somebody watches a terminal, or a function that is told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm.auto import tqdm


class Listener(ABC):
    """Wants to know of what the share is, too."""

    @abstractmethod
    def hear(self, done: float, of: str) -> None:
        """done: from 0 to 1. of: in a word or two, what is being computed."""
        ...


Shown = bool | Callable[[float], None] | Listener | None
"""Whether there is a bar, None where somebody watches a terminal; or what is told the share that is done, from 0 to 1."""


def bar(total: float, shown: Shown, *, desc: str = "", **how: Any) -> tqdm | Told:
    """To be used in a `with`. desc, how: of `tqdm`."""
    if isinstance(shown, Listener):
        return Told(total, shown.hear, desc)
    if callable(shown):
        tell = shown
        return Told(total, lambda done, of: tell(done), desc)
    from tqdm.auto import tqdm  # commands that show no bar start without it

    return tqdm(total=total, desc=desc, disable=None if shown is None else not shown, **how)


class Told:
    """Takes the place of a bar."""

    def __init__(self, total: float, tell: Callable[[float, str], None], of: str) -> None:
        self._total, self._tell, self._of, self._done = total, tell, of, 0.0

    def update(self, done: float = 1.0) -> None:
        self._done += done
        self._tell(min(1.0, self._done / self._total) if self._total else 1.0, self._of)

    def set_description_str(self, text: str, *, refresh: bool = True) -> None:
        self._of = text

    def set_postfix_str(self, text: str, *, refresh: bool = True) -> None:
        pass

    def __enter__(self) -> Told:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass
