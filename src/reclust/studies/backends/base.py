"""Interface of backends, and the one that computes in this process."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from ...utils.device import choose_device
from ...utils.values import value
from .. import execute
from ..execute import Attempt, Conditions, Failed, Stopped, StopRequested, Tick
from ..groups import Group, Pretraining

Attempts = Iterator[tuple[Group, Attempt]]


class Backend(Protocol):
    """Computes groups somewhere."""

    def where(self, conditions: Conditions) -> str:
        """Describe the place; raise if it is not available."""

    def attempts(self, groups: Sequence[Group], conditions: Conditions, stop: StopRequested,
                 tick: Tick) -> Attempts:
        """Yield groups and their outcomes as they arrive; skip groups that were not started."""


@value
class InProcess:
    """Computes one group after another, the cheapest first, so that tables fill early."""

    def where(self, conditions: Conditions) -> str:
        return str(choose_device(conditions.device))

    def attempts(self, groups: Sequence[Group], conditions: Conditions, stop: StopRequested,
                 tick: Tick) -> Attempts:
        failed: dict[str, Failed] = {}
        for group in sorted(groups, key=lambda group: group.cost):
            if stop() or conditions.out_of_time:
                return
            made: Path | Attempt | None = None
            if missing := missing_pretraining([group], conditions):
                (start,) = missing
                made = failed.get(start.key) or execute.attempt_pretraining(
                    start, conditions, stop=stop, tick=tick)
                if isinstance(made, Failed):
                    failed[start.key] = made  # for all groups that start from it
            if not isinstance(made, Failed | Stopped):
                made = execute.attempt(group, conditions, stop=stop, tick=tick)
            yield group, made
            if isinstance(made, Stopped):
                return


def missing_pretraining(groups: Iterable[Group], conditions: Conditions) -> list[Pretraining]:
    """List the encoders that groups start from and that are not trained yet."""
    shared = {group.pretraining.key: group.pretraining for group in groups
              if group.pretraining is not None}
    return [start for start in shared.values()
            if not execute.pretrained_path(start, conditions).is_file()]
