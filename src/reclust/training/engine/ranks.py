"""Processes of torch.distributed that share one training: each takes a part of every batch.

Draws depend on keys alone, so all ranks know the same batches, views and resets. Each embeds its
part of a batch, and sums over ranks put the parts together, so that objectives see the whole batch.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ...representations import Representation
from ..monitors.base import Monitor, PeriodicMonitor

KILLED = ("Another rank ended without a message: it was killed, out of memory or cut off. Run the "
          "same command again; with a checkpoint it continues.")


class RankFailed(RuntimeError):
    """Another rank ended, and this one cannot continue without it."""


class Ranks:
    """All ranks as one of them sees them, or one alone; apart: each trains its own replicas."""

    def __init__(self, group: Any = None, *, apart: bool = False) -> None:
        self.group, self.apart = None if apart else group, apart
        self.key = "" if group is None else f"reclust/{group.group_name}"  # of error messages
        self.size: int = 1 if self.group is None else group.size()
        self.rank: int = 0 if self.group is None else group.rank()
        self.is_first = self.rank == 0
        self.batch = 0  # size of the current batch on all ranks

    def part(self, n: int) -> slice:
        """Return this rank's part of n items; each rank takes all if there are fewer than ranks."""
        if n < self.size:
            return slice(0, n)
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def own(self, rows: Tensor) -> Tensor:
        """Return this rank's part of the last axis."""
        return rows if self.size == 1 else rows[..., self.part(rows.shape[-1])]

    @property
    def _shares_batch(self) -> bool:
        return 1 < self.size <= self.batch

    def whole(self, z: Tensor) -> Tensor:
        """Put together the embeddings of a batch: (..., own part, d) -> (..., B, d)."""
        if not self._shares_batch:
            return z
        own = self.part(self.batch)
        return _Sum.apply(nn.functional.pad(z, (0, 0, own.start, self.batch - own.stop)), self)

    def representation_loss(self, representation: Representation, net: nn.Module, views: Tensor,
                            z: Tensor, whole: Tensor) -> Tensor:
        """Return a loss whose mean over ranks is that of the batch."""
        compares = getattr(representation, "compares_samples", False)
        if compares or not self._shares_batch:
            return representation.loss(net, views, whole)
        with self.shared_statistics():
            return representation.loss(net, views, z) * (self.size * z.shape[1] / self.batch)

    def shared_statistics(self) -> AbstractContextManager[Any]:
        """Let BatchNorm normalize by the whole batch."""
        return _SharedStatistics(self) if self._shares_batch else nullcontext()

    def average_(self, *tensors: Tensor) -> None:
        """Replace tensors by their means over ranks, in one exchange for each type."""
        for dtype in {tensor.dtype: None for tensor in tensors} if self.size > 1 else ():
            some = [tensor for tensor in tensors if tensor.dtype == dtype]
            flat = self.sum_(torch.cat([tensor.flatten() for tensor in some])).div_(self.size)
            for tensor, mean in zip(some, flat.split([t.numel() for t in some]), strict=True):
                tensor.copy_(mean.view_as(tensor))

    def sum_(self, tensor: Tensor) -> Tensor:
        dist.all_reduce(tensor, group=self.group)
        return tensor

    def follow_first_(self, *stacks: dict[str, Tensor]) -> None:
        """Overwrite tensors with those of rank 0."""
        for tensor in (t for stack in stacks for t in stack.values()) if self.size > 1 else ():
            dist.broadcast(tensor.detach(), 0, group=self.group)

    def from_first(self, call: Callable[[], Any]) -> Any:
        """Call a function on rank 0; every rank returns its result or raises its error."""
        if self.size == 1:
            return call()
        answer: list[Any] = [None, None]
        if self.is_first:
            try:
                answer[0] = call()
            except Exception as error:
                answer[1] = error
        dist.broadcast_object_list(answer, 0, group=self.group)
        if answer[1] is not None:
            raise answer[1]
        return answer[0]

    def gather(self, thing: Any) -> list[Any]:
        """Return the things of all ranks."""
        things = [None] * self.size
        dist.all_gather_object(things, thing, group=self.group)
        return things

    def check(self, data_and_seeds: Any, batch_sizes: Sequence[int]) -> None:
        """Raise if ranks differ in what they train on, or if some would get nothing."""
        others = self.gather(data_and_seeds)
        different = [rank for rank, other in enumerate(others) if other != others[0]]
        if different:
            raise ValueError(f"Rank {different[0]} has other data or seeds than rank 0 (number of "
                             "rows, first or last row, or seeds): give the same to every rank.")
        if min(batch_sizes, default=self.size) < self.size:
            raise ValueError(f"{self.size} ranks cannot share batches of {min(batch_sizes)} "
                             "samples: start fewer ranks, or choose a larger batch_size.")

    def observing(self, monitors: Sequence[Monitor]) -> Sequence[Monitor]:
        """Select the monitors of this rank's replicas: only rank 0 calls those that may write."""
        every = not self.apart or dist.get_rank() == 0
        return [monitor for monitor in monitors if every or isinstance(monitor, PeriodicMonitor)]

    def stop(self, due: bool) -> bool:
        """Tell whether rank 0 has to stop; raise if a rank that trains other replicas failed."""
        if self.apart and (message := self.failure()):
            raise RankFailed(message)
        return bool(self.from_first(lambda: due))

    def failure(self) -> str:
        """Return the message that another rank left, or an empty one."""
        return _store().get(self.key).decode() if _store().check([self.key]) else ""


@contextmanager
def all_ranks() -> Iterator[Ranks]:
    """Enter a group of all ranks, or of this process alone; an error on one rank ends all."""
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        yield Ranks()
        return
    # A group of its own can be closed, which wakes ranks that wait for this one.
    ranks = Ranks(dist.new_group(timeout=timedelta(days=1)))
    try:
        yield ranks
    except BaseException as error:
        lost = isinstance(error, dist.DistError) or "gloo" in str(error)
        message = ""
        with suppress(dist.DistError):  # rank 0 holds the store and may be gone
            if not lost and not isinstance(error, RankFailed):
                name = type(error).__name__
                _store().set(ranks.key, f"Rank {ranks.rank} failed: {name}: {error}")
            message = ranks.failure()
        if lost:
            raise RankFailed(message or KILLED) from error
        raise
    finally:
        dist.destroy_process_group(ranks.group)
        ranks.group = None  # its connections close with the last reference


@contextmanager
def torchrun() -> Iterator[bool]:
    """Join the processes that torchrun started, if it did; tell whether this is the first."""
    if not dist.is_available() or not dist.is_torchelastic_launched():
        yield True
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    store, rank, size = next(dist.rendezvous("env://"))
    # Processes that torchrun starts again must not find the addresses of those before them.
    store = dist.PrefixStore(os.environ["TORCHELASTIC_RESTART_COUNT"], store)
    dist.init_process_group(store=store, rank=rank, world_size=size)
    try:
        yield rank == 0
    finally:
        dist.destroy_process_group()


def agreed(call: Callable[[], Any]) -> Any:
    """Return what a function returns on rank 0."""
    with all_ranks() as ranks:
        return ranks.from_first(call)


def _store() -> Any:
    return dist.distributed_c10d._get_default_store()


class _Sum(torch.autograd.Function):
    """Sum over ranks. Each rank's loss depends on it, so gradients are summed as well."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, ranks: Ranks) -> Tensor:
        ctx.ranks = ranks
        return ranks.sum_(x.clone())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.ranks.sum_(grad.clone()), None


class _SharedStatistics(TorchFunctionMode):
    """Replaces torch's batch normalization by one over all ranks."""

    def __init__(self, ranks: Ranks) -> None:
        super().__init__()
        self.ranks = ranks

    def __torch_function__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        replaced = function is nn.functional.batch_norm
        return (self._batch_norm if replaced else function)(*args, **(kwargs or {}))

    def _batch_norm(self, input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
                    weight: Tensor | None = None, bias: Tensor | None = None,
                    training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
        if not training:
            return nn.functional.batch_norm(input, running_mean, running_var, weight, bias,
                                            training, momentum, eps)
        ranks, own = self.ranks, self.ranks.part(self.ranks.batch)
        x = input.to(torch.promote_types(input.dtype, torch.float32)).movedim(1, -1)
        n = math.prod(x.shape[:-1]) * ranks.batch // (own.stop - own.start)
        mean = _Sum.apply(x.flatten(0, -2).sum(0), ranks) / n
        x = x - mean
        var = _Sum.apply(x.flatten(0, -2).square().sum(0), ranks) / n
        if running_mean is not None and running_var is not None:
            running_mean.lerp_(mean.detach().to(running_mean.dtype), momentum)
            running_var.lerp_((var.detach() * (n / (n - 1))).to(running_var.dtype), momentum)
        x = x * (var + eps).rsqrt()
        x = x if weight is None or bias is None else x * weight + bias
        return x.movedim(-1, 1).to(input.dtype)
