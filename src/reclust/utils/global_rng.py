"""What parts of one's own draw from torch's global random state, which belongs to the caller and to all of its threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class NotRepeatable(ValueError):
    """Something draws what no seed repeats."""


@contextmanager
def repeatable(what: str, device: torch.device) -> Iterator[None]:
    """Refuses what draws from torch's global generators, and puts them back then.

    What changes that generator may be another thread, what may draw need not (attention without dropout), and a part may
    have put its own seed there and the caller's back: only both together are a draw that counts.
    """
    before, on_cpu, drawn = _generator(device), torch.get_rng_state(), False
    watching = _Watching()
    try:
        with watching:
            yield
    finally:
        if watching.may_have_drawn:
            drawn = not (torch.equal(before, _generator(device)) and torch.equal(on_cpu, torch.get_rng_state()))
            torch.set_rng_state(on_cpu)
            if device.type == "cuda":
                torch.cuda.set_rng_state(before, device)
    if drawn:
        raise NotRepeatable(f"{what} draws from torch's global generator, as dropout does: a seed would not repeat a run. "
                            "Leave that out, or use augment= for random views, which draws by the keys it is given.")


def _generator(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _draws_globally(operation: Any, given: dict[str, Any]) -> bool:
    return torch.Tag.nondeterministic_seeded in operation.tags and given.get("generator") is None


class _Watching(TorchDispatchMode):
    """Of this thread alone."""

    may_have_drawn = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        self.may_have_drawn |= _draws_globally(func, kwargs)
        return func(*args, **kwargs)


class PrivateDraws(TorchDispatchMode):
    """Within it this thread draws on a CPU from a generator of its own, the same numbers each time."""

    def __init__(self) -> None:
        super().__init__()
        self._own = torch.Generator().manual_seed(0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        tensors = [given for given in args if isinstance(given, Tensor)]
        device = tensors[0].device if tensors else kwargs.get("device") or torch.device("cpu")
        if device.type == "cpu" and _draws_globally(func, kwargs):
            taking = _taking_a_generator(func)
            return self._lent(func, args, kwargs) if taking is None else taking(*args, **{**kwargs, "generator": self._own})
        return func(*args, **kwargs)

    def _lent(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """For what takes no generator (randn_like of older torch): the global one has the state of our own for a moment."""
        before = torch.get_rng_state()
        torch.set_rng_state(self._own.get_state())
        try:
            return func(*args, **kwargs)
        finally:
            self._own.set_state(torch.get_rng_state())
            torch.set_rng_state(before)


def _taking_a_generator(operation: Any) -> Any:
    """The operation itself, or what torch has beside it: randn.generator beside randn.default."""
    if any(argument.name == "generator" for argument in operation._schema.arguments):
        return operation
    packet, name = operation.overloadpacket, operation._overloadname
    wanted = {"default": "generator", "low": "low_generator", "low_dtype": "low_generator_dtype",
              "Tensor": "Tensor_generator"}.get(name, "")
    return getattr(packet, wanted) if wanted in packet.overloads() else None
