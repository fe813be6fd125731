"""From row numbers to the views that a training step sees."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from ... import draws
from ...data.augmentation.affine import ImageAugmentation
from ...data.inputs import Inputs
from ...utils.device import forbid_global_draws
from ...utils.exceptions import first_line, warn
from ..settings import Augmentation, Schedule, View

BLOCK = {"cpu": 2**18, "cuda": 2**26}
"""Values gathered and augmented at once: they should fit a CPU's cache, and fill a GPU."""


class Batches:
    """Shuffled batches of one phase.

    Shapes: b batches at once, r replicas, V views of each sample, B batch size.
    """

    def __init__(self, inputs: Inputs, schedule: Schedule, augment: Augmentation | None) -> None:
        self.inputs, self.augment = inputs, augment
        self.size = min(schedule.batch_size, inputs.n_samples)
        self.count = inputs.n_samples // self.size
        given = tuple(kind for kind in schedule.views if kind != "augmented" or augment is not None)
        self.kinds: tuple[View, ...] = given or ("clean",)

    def compile(self) -> None:
        """Compile the augmentations."""
        self.augment = None if self.augment is None else fused(self.augment)
        self.kinds = tuple(kind if isinstance(kind, str) else fused(kind) for kind in self.kinds)

    def views(self, order_key: Tensor, augment_key: Tensor) -> Iterator[Tensor]:
        """One epoch of views, (r, V, B, *sample_shape) per batch; keys (r,)."""
        for rows, x in self.inputs.take_each(self._blocks(order_key)):
            yield from self._views(rows, x, augment_key)

    def clean(self, order_key: Tensor) -> Iterator[Tensor]:
        """One epoch of unchanged samples, (r, B, *sample_shape) per batch."""
        for _, x in self.inputs.take_each(self._blocks(order_key)):
            yield from self.inputs.normalize(x)

    def _blocks(self, key: Tensor) -> tuple[Tensor, ...]:
        """Shuffled row numbers of several batches at once, (b, r, B); drops a last short batch."""
        order = self.inputs.order(key)[:, : self.count * self.size]
        batches = order.unflatten(1, (self.count, self.size)).transpose(0, 1)
        values = batches[0].numel() * math.prod(self.inputs.sample_shape)
        block = BLOCK.get(self.inputs.device.type, BLOCK["cpu"])
        return batches.split(max(1, block // values))

    def _views(self, rows: Tensor, x: Tensor, augment_key: Tensor) -> Tensor:
        """Rows (b, r, B) and samples (b, r, B, *sample_shape) -> (b, r, V, B, *sample_shape)."""
        views = []
        for number, kind in enumerate(self.kinds):
            augment = self.augment if kind == "augmented" else None if kind == "clean" else kind
            if augment is None:
                views.append(x)
            else:
                views.append(augment(x, draws.fold(augment_key.unsqueeze(-1), rows, number)))
        return self.inputs.normalize(views[0].unsqueeze(2) if len(views) == 1
                                     else torch.stack(views, 2))


def fused(augment: Augmentation) -> Augmentation:
    """Compile an image augmentation; others are returned unchanged."""
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
            warn("The augmentation cannot be compiled and runs uncompiled, which is slower but "
                 f"gives the same result: {first_line(error)}")
            self._apply = self._augment.apply
        return self._apply(x, parameters)


def try_augmentation(augment: Augmentation, inputs: Inputs) -> None:
    """Raise before training if an augmentation changes the shape or type of samples."""
    rows = torch.arange(min(2, inputs.n_samples), device=inputs.device)
    x = inputs.take(rows)
    with forbid_global_draws("The augmentation", inputs.device):
        made = augment(x, draws.fold(draws.key(0, device=inputs.device), rows))
    if made.shape != x.shape or made.dtype != x.dtype:
        raise ValueError(f"The augmentation turned {x.dtype} samples of shape {tuple(x.shape)} "
                         f"into {made.dtype} of shape {tuple(made.shape)}: it must keep both.")
