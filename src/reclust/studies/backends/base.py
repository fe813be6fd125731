"""What a backend is, and the simplest one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from ...utils.device import choose_device
from ...utils.values import value
from ..execute import (
    Asked,
    Attempt,
    Conditions,
    Failed,
    Stopped,
    Tick,
    attempt,
    attempt_pretraining,
    over,
    pretrained_path,
)
from ..study import Group, Pretraining

Attempts = Iterator[tuple[Group, Attempt]]


class Backend(Protocol):
    def where(self, conditions: Conditions) -> str:
        """On what groups are computed, in words; raises where that cannot be."""
        ...

    def ordered(self, groups: Sequence[Group]) -> list[Group]:
        """In which order to compute groups, by their cost."""
        ...

    def attempts(self, groups: Sequence[Group], conditions: Conditions, stop: Asked, tick: Tick) -> Attempts:
        """Each group with what came of it, as it arrives; groups that were not begun may be left out."""
        ...


@value
class InProcess:
    """One group after the other, the cheapest first: tables begin to fill early, and a short time budget finishes some."""

    def where(self, conditions: Conditions) -> str:
        return str(choose_device(conditions.device))

    def ordered(self, groups: Sequence[Group]) -> list[Group]:
        return sorted(groups, key=lambda group: group.cost)

    def attempts(self, groups: Sequence[Group], conditions: Conditions, stop: Asked, tick: Tick) -> Attempts:
        failed: dict[str, Failed] = {}
        for group in groups:
            if stop() or over(conditions):
                return
            made: Path | Attempt | None = None
            if (start := group.pretraining) is not None and not pretrained_path(start, conditions).is_file():
                made = failed.get(start.key) or attempt_pretraining(start, conditions, stop=stop, tick=tick)
                if isinstance(made, Failed):
                    failed[start.key] = made  # as it would be for every group that starts from it
            if not isinstance(made, Failed | Stopped):
                made = attempt(group, conditions, stop=stop, tick=tick)
            yield group, made
            if isinstance(made, Stopped):
                return


def missing_pretraining(groups: Iterable[Group], conditions: Conditions) -> list[Pretraining]:
    """What groups start from and nobody trained yet, each once."""
    shared = {group.pretraining.key: group.pretraining for group in groups if group.pretraining is not None}
    return [one for one in shared.values() if not pretrained_path(one, conditions).is_file()]
