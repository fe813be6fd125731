"""Progress bars and progress callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm.auto import tqdm


# Show a bar or not, None for "only in a terminal"; or call a function with the share done.
ProgressOption = bool | Callable[[float], None] | None


def progress_bar(total: float, progress: ProgressOption, *, desc: str = "", **options: Any) -> tqdm:
    """Make a tqdm bar, or a silent one that reports to a callback."""
    from tqdm.auto import tqdm  # slow to import

    if progress is None or isinstance(progress, bool):
        disable = None if progress is None else not progress
        return tqdm(total=total, desc=desc, disable=disable, **options)

    report = progress

    class CallbackBar(tqdm):
        def update(self, n: float = 1) -> None:
            self.n += n
            report(min(1.0, self.n / self.total) if self.total else 1.0)

    return CallbackBar(total=total, disable=True)


def duration(seconds: float) -> str:
    """Write a time as people do: 4.2 s, 2 min 5 s, 3 h 20 min, 2 d 4 h."""
    if seconds < 59.5:
        return f"{float(f'{seconds:.2g}'):g} s"
    units = [("d", 86400), ("h", 3600), ("min", 60), ("s", 1)]
    i = next(i for i, (_, size) in enumerate(units) if round(seconds) >= size)
    (large, size), (small, part) = units[i : i + 2]
    return f"{round(seconds) // size} {large} {round(seconds) % size // part} {small}"
