"""From row numbers to the views that a training step sees."""

import math
from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor

from ... import draws
from ...data.augmentation.affine import ImageAugmentation
from ...data.inputs import Inputs
from ...geometry import nearest_neighbors
from ..settings import Augmentation, Schedule, View
from .compilation import Compiled
from .ranks import Ranks

# Values gathered and augmented at once: they should fit a CPU's cache, and fill a GPU.
BLOCK = {"cpu": 2**18, "cuda": 2**26}


class Batches:
    """Shuffled batches of one phase: b batches at once, r replicas, V views, batch size B."""

    def __init__(self, inputs: Inputs, schedule: Schedule, augment: Augmentation | None,
                 targets: Tensor | None = None, ranks: Ranks | None = None) -> None:
        self.inputs, self.augment, self.ranks = inputs, augment, ranks or Ranks()
        self.targets = None if targets is None else targets.unsqueeze(0)  # or one per replica
        self._n_neighbors = schedule.neighbors
        self.size = min(schedule.batch_size, inputs.n_samples)
        kinds = tuple(kind for kind in schedule.views if kind != "augmented" or augment is not None)
        self.kinds: tuple[View, ...] = kinds or ("clean",)
        full, last = divmod(inputs.n_samples, self.size)
        changed = any(kind != "clean" for kind in self.kinds)
        keeps_last = schedule.last_batch == "kept" or (
            schedule.last_batch == "kept unless augmented" and not changed)
        self.full, self.count = full, full + (keeps_last and last > 0)

    def compile(self) -> None:
        self.augment = None if self.augment is None else fused(self.augment)
        self.kinds = tuple(kind if isinstance(kind, str) else fused(kind) for kind in self.kinds)

    @cached_property
    def neighbors(self) -> Tensor:
        """The nearest neighbors of each sample, (r or 1, n, neighbors), as the network sees it."""
        rows = torch.arange(self.inputs.n_samples, device=self.inputs.device)
        return self.find_neighbors(self.inputs.normalize(self.inputs.take(rows)).unsqueeze(0))

    def find_neighbors(self, samples: Tensor) -> Tensor:
        """(r, n, ...) -> (r, n, neighbors)."""
        found = [nearest_neighbors(own, self._n_neighbors) for own in samples.flatten(2)]
        return torch.stack(found)

    def views(self, order_key: Tensor, augment_key: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """One epoch of batches: views (r, V, B, *sample_shape), and targets if there are any."""
        for rows, own, x in self._taken(order_key):
            batches = [self._views(own, x, augment_key, self.kinds)]
            if self.targets is not None:
                batches.append(self.targets[_replicas(rows, self.targets), rows])
            yield from zip(*batches, strict=True)

    def single_views(self, order_key: Tensor, augment_key: Tensor, kind: View) -> Iterator[Tensor]:
        """One epoch of samples in one view, (r, B, *sample_shape) per batch."""
        for _, own, x in self._taken(order_key):
            yield from self._views(own, x, augment_key, (kind,)).squeeze(2)

    def _taken(self, key: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield row numbers (b, r, B), this rank's part of each batch, and the part's samples."""
        blocks = self._blocks(key)
        taken = self.inputs.take_each(map(self.ranks.own, blocks))
        for rows, (own, x) in zip(blocks, taken, strict=True):
            self.ranks.batch = rows.shape[-1]
            yield rows, own, x

    def _blocks(self, key: Tensor) -> tuple[Tensor, ...]:
        """Shuffled row numbers of several batches at once, (b, r, B); a short batch is the last."""
        order, covered = self.inputs.order(key), self.full * self.size
        batches = order[:, :covered].unflatten(1, (self.full, self.size)).transpose(0, 1)
        values = batches[0].numel() * math.prod(self.inputs.sample_shape)
        block = BLOCK.get(self.inputs.device.type, BLOCK["cpu"])
        blocks = batches.split(max(1, block // values))
        return (*blocks, order[None, :, covered:]) if self.count > self.full else blocks

    def _views(self, rows: Tensor, x: Tensor, augment_key: Tensor,
               kinds: tuple[View, ...]) -> Tensor:
        """Rows (b, r, B) and samples (b, r, B, *sample_shape) -> (b, r, V, B, *sample_shape)."""
        views = []
        for number, kind in enumerate(kinds):
            if kind == "clean":
                views.append(x)
                continue
            augment = kind if callable(kind) else self.augment
            keys, samples = draws.fold(augment_key.unsqueeze(-1), rows, number), x
            if kind == "neighbor":
                found = self.neighbors
                chosen = draws.integers(draws.fold(keys, "neighbor"), found.shape[-1])
                samples = self.inputs.take(found[_replicas(rows, found), rows, chosen])
            views.append(samples if augment is None else augment(samples, keys))
        return self.inputs.normalize(views[0].unsqueeze(2) if len(views) == 1
                                     else torch.stack(views, 2))


def _replicas(rows: Tensor, stack: Tensor) -> Tensor:
    """First index into a stack for rows (b, r, B): that of each replica, or 0 if they share it."""
    return torch.arange(rows.shape[1], device=rows.device).unsqueeze(-1) % len(stack)


def fused(augment: Augmentation) -> Augmentation:
    """Compile an image augmentation; others are returned unchanged."""
    if not isinstance(augment, ImageAugmentation):
        return augment
    apply = Compiled(augment.apply, "augmentation")
    return lambda x, keys: apply(x, augment.parameters(keys, *x.shape[-2:]))
