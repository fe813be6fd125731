"""Protect torch's global random state, which belongs to the caller."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_LOCK = threading.RLock()  # models that are fitted in parallel threads take turns


class NotRepeatable(ValueError):
    """User code draws random numbers that no seed of this library controls."""


@contextmanager
def fixed_seed() -> Iterator[None]:
    """Seed torch's CPU generator with 0 inside the block and restore it afterwards."""
    with _LOCK, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        yield


@contextmanager
def forbid_global_draws(what: str, device: torch.device) -> Iterator[None]:
    """Raise `NotRepeatable` if the block draws from torch's global generators; restore them."""
    cuda = [device] if device.type == "cuda" else []

    def states() -> list[torch.Tensor]:
        return [torch.get_rng_state(), *(torch.cuda.get_rng_state(one) for one in cuda)]

    with _LOCK, torch.random.fork_rng(devices=cuda):
        before = states()
        yield
        drawn = not all(map(torch.equal, before, states()))
    if drawn:
        raise NotRepeatable(f"{what} draws from torch's global generator, as dropout does, so a "
                            "seed would not repeat a run. Remove it, or use augment= for random "
                            "views, which receives the keys to draw from.")
