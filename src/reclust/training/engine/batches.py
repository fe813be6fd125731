"""From row numbers to the views that a training step sees."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ... import draws
from ...data.augmentation.affine import ImageAugmentation
from ...data.inputs import Inputs
from ...utils.exceptions import first_line, warn
from ...utils.global_rng import forbid_global_draws
from ..settings import Augmentation, Schedule, View

BLOCK = {"cpu": 2**18, "cuda": 2**26}
"""Numbers gathered and augmented at once: on a CPU they should stay in the cache, on a GPU starting an operation costs most."""


class Batches:
    """Shuffled batches of one phase. Shapes: b batches at once, r replicas, V views of each sample, B batch."""

    def __init__(self, inputs: Inputs, schedule: Schedule, augment: Augmentation | None) -> None:
        self.inputs, self.augment = inputs, augment
        self.size = min(schedule.batch_size, inputs.n_samples)
        self.count = inputs.n_samples // self.size
        given = tuple(view for view in schedule.views if view != "augmented" or augment is not None)
        self.kinds: tuple[View, ...] = given or ("clean",)

    def check(self, net: nn.Module) -> None:
        """Raise before training where batches are too small for this network."""
        if self.size * len(self.kinds) < 2 and any(isinstance(module, nn.BatchNorm1d) for module in net.modules()):
            raise ValueError("batch_size=1 leaves BatchNorm a single sample to take a deviation of: use batches of at least 2.")

    def compile(self) -> None:
        """Make views with compiled code from now on."""
        self.augment = None if self.augment is None else fused(self.augment)
        self.kinds = tuple(kind if isinstance(kind, str) else fused(kind) for kind in self.kinds)

    def views(self, order_key: Tensor, augment_key: Tensor) -> Iterator[Tensor]:
        """One epoch, keys (r,): the views of each batch, (r, V, B, *sample_shape)."""
        for rows, x in self.inputs.take_each(self._blocks(order_key)):
            yield from self._views(rows, x, augment_key)

    def clean(self, order_key: Tensor) -> Iterator[Tensor]:
        """One epoch of samples as they are, (r, B, *sample_shape) a batch."""
        for _, x in self.inputs.take_each(self._blocks(order_key)):
            yield from self.inputs.normalize(x)

    def _blocks(self, key: Tensor) -> tuple[Tensor, ...]:
        """Row numbers in a fresh order, several batches at once: (b, r, B). A last short batch is left out."""
        order = self.inputs.order(key)[:, : self.count * self.size]
        batches = order.unflatten(1, (self.count, self.size)).transpose(0, 1)
        numbers = batches[0].numel() * math.prod(self.inputs.sample_shape)
        return batches.split(max(1, BLOCK.get(self.inputs.device.type, BLOCK["cpu"]) // numbers))

    def _views(self, rows: Tensor, x: Tensor, augment_key: Tensor) -> Tensor:
        """Of samples x (b, r, B, *sample_shape) with these row numbers (b, r, B): (b, r, V, B, *sample_shape)."""
        seen = []
        for number, kind in enumerate(self.kinds):
            augment = self.augment if kind == "augmented" else None if kind == "clean" else kind
            seen.append(x if augment is None else augment(x, draws.fold(augment_key.unsqueeze(-1), rows, number)))
        return self.inputs.normalize(seen[0].unsqueeze(2) if len(seen) == 1 else torch.stack(seen, 2))


def fused(augment: Augmentation) -> Augmentation:
    """The same views by fewer and larger kernels, where the augmentation is one that can be compiled."""
    return _Fused(augment) if isinstance(augment, ImageAugmentation) else augment


class _Fused:
    def __init__(self, augment: ImageAugmentation) -> None:
        self._augment = augment
        self._apply = torch.compile(augment.apply, dynamic=False)

    def __call__(self, x: Tensor, keys: Tensor) -> Tensor:
        parameters = self._augment.parameters(keys, *x.shape[-2:])
        try:
            return self._apply(x, parameters)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            warn("The augmentation cannot be compiled and runs as it is, which is slower but equally right: "
                 f"{first_line(error)}")
            self._apply = self._augment.apply
        return self._apply(x, parameters)


def try_augmentation(augment: Augmentation, inputs: Inputs) -> None:
    """Find out on two samples, before any training, whether an augmentation fits the data."""
    rows = torch.arange(min(2, inputs.n_samples), device=inputs.device)
    x = inputs.take(rows)
    before = x.clone()
    with forbid_global_draws("The augmentation", inputs.device):
        made = augment(x, draws.fold(draws.key(0, device=inputs.device), rows))
    if not isinstance(made, Tensor) or made.shape != x.shape:
        shape = tuple(made.shape) if isinstance(made, Tensor) else type(made).__name__
        raise ValueError(f"The augmentation turned samples of shape {tuple(x.shape)} into {shape}: it must keep the shape.")
    if made.dtype != x.dtype:
        raise ValueError(f"The augmentation turned {x.dtype} into {made.dtype}: end it with .to(x.dtype).")
    if not torch.equal(x, before):
        raise ValueError("The augmentation changes its input in place, which is another view's as well: begin it with "
                         "x = x.clone().")
