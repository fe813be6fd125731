"""Steps of one of several ranks that share a batch, on one GPU and without a network: what is left to scale.

    python benchmarks/ranks.py

The rank takes its part of every batch as in a fit over many GPUs, but sums over ranks are left out and counted: bytes and number of
exchanges. With one rank the step is captured as a CUDA graph, with several it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from _epochs import clustering_only, epoch_seconds, mnist_shaped
from _records import write_record
from torch import Tensor

from reclust import Execution, Settings
from reclust.data.inputs import Inputs, ResidentInputs
from reclust.estimators import presets
from reclust.training import train as training
from reclust.training.engine.ranks import Ranks

SIZES = (1, 2, 8, 64)


class Lonely(Ranks):
    """The first of several ranks, the others of which do not exist."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.bytes, self.exchanges = size, 0, 0

    def sum_(self, tensor: Tensor) -> Tensor:
        self.bytes, self.exchanges = self.bytes + tensor.nbytes, self.exchanges + 1
        return tensor

    def follow_first_(self, *stacks: dict[str, Tensor]) -> None:
        self.reset_bytes = sum(tensor.nbytes for stack in stacks for tensor in stack.values())

    def from_first(self, call: Callable[[], Any]) -> Any:
        return call()

    def gather(self, thing: Any) -> list[Any]:
        return [thing] * self.size


def step(data: Inputs, settings: Settings, size: int) -> dict[str, Any]:
    ranks = Lonely(size)

    @contextmanager
    def alone() -> Iterator[Ranks]:
        yield ranks

    plain, training.all_ranks = training.all_ranks, alone
    schedule = settings.clustering or settings.pretraining
    assert schedule is not None
    try:
        seconds = epoch_seconds(data, settings, replicas=1, execution=Execution("cuda"))
    finally:
        training.all_ranks = plain
    steps = data.n_samples // schedule.batch_size
    found = {"step_ms": 1e3 * seconds / steps, "bytes": ranks.bytes / steps / schedule.epochs,
             "exchanges": ranks.exchanges / steps / schedule.epochs, "bytes_per_reset": getattr(ranks, "reset_bytes", 0)}
    print({name: round(number, 3) for name, number in found.items()}, flush=True)
    return found


def contrastive(epochs: int = 3) -> Settings:
    settings = presets.paper("cifar10", "idec", intervention="none")
    assert settings.pretraining is not None
    return replace(settings, clustering=None, pretraining=replace(settings.pretraining, epochs=epochs, warmup_epochs=0, batch_size=512))


def main() -> None:
    torch.backends.cudnn.benchmark = True
    images, idec = mnist_shaped(), clustering_only("idec", 4)
    photos = torch.rand(20_480, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    cases: dict[str, tuple[Inputs, Settings]] = {f"IDEC, batch {size}": (images, replace(
        idec, clustering=replace(idec.clustering, batch_size=size))) for size in (256, 4096)}
    cases["SimCLR with ResNet-18, batch 512"] = ResidentInputs(photos, photos.mean(), photos.std()), contrastive()
    measured = {name: {str(size): step(*case, size) for size in SIZES} for name, case in cases.items()}
    print(f"record: {write_record('ranks_cuda', {'rows': 70_000, 'photos': len(photos)}, measured)}")


if __name__ == "__main__":
    main()
