"""Embeddings, labels and representation loss of stacked replicas while they train."""

from typing import Any

import torch
from torch import Tensor, nn

from ... import draws
from ...data.augmentation.affine import Augmentation
from ...data.inputs import Inputs
from ...objectives import State
from ...utils.device import Precision
from .executors import Executor, ForOne
from .replicas import Replicas

CHUNK = 4096  # samples embedded at once


class Embedder:
    """Evaluates r replicas without gradients, in eval mode unless `training_batch` is set."""

    def __init__(self, replicas: Replicas, inputs: Inputs, executor: Executor,
                 perturb: Augmentation, precision: Precision) -> None:
        self.replicas, self.inputs, self.executor = replicas, inputs, executor
        self.perturb, self.precision = perturb, precision
        self.training_batch: int | None = None  # size of batches that are embedded in train mode

    def embed(self, rows: Tensor | None = None, which: slice = slice(None),
              view_key: Tensor | None = None, augment: Augmentation | None = None) -> Tensor:
        """Embed all or the given rows (r, n, d), or with a view_key random views by `augment`."""
        members = len(range(len(self.replicas))[which])
        if rows is None:
            rows = torch.arange(self.inputs.n_samples, device=self.inputs.device)
        parts = []
        for chunk in rows.split(self.training_batch or CHUNK, dim=-1):
            x = self.inputs.take(chunk)
            if view_key is not None:
                x = (augment or self.perturb)(x, draws.fold(view_key, chunk))
            x = self.inputs.normalize(x)
            stacked = x if chunk.ndim > 1 else x.expand(members, *x.shape)
            with self.precision.evaluation():
                parts.append(self.executor.evaluate(self._encode, stacked, which=which,
                                                    training=self.training_batch is not None))
        return torch.cat(parts, dim=1)

    def _encode(self, net: nn.Module, objective: Any, state: State, x: Tensor) -> Tensor:
        return self.replicas.representation.encode(net, x)

    def representation_loss(self) -> Tensor:
        """Mean loss over all clean samples, (r,)."""
        sums = []
        for rows in torch.arange(self.inputs.n_samples, device=self.inputs.device).split(CHUNK):
            x = self.inputs.normalize(self.inputs.take(rows))
            stacked = x.expand(len(self.replicas), *x.shape)
            with self.precision.evaluation():
                sums.append(len(rows) * self.executor.evaluate(self._loss, stacked))
        return torch.stack(sums).sum(0) / self.inputs.n_samples

    def _loss(self, net: nn.Module, objective: Any, state: State, x: Tensor) -> Tensor:
        z = self.replicas.representation.encode(net, x)
        return self.replicas.representation.loss(net, x.unsqueeze(0), z.unsqueeze(0))

    def assign(self, z: Tensor, which: slice = slice(None)) -> Tensor:
        """(r, n, d) -> (r, n)."""
        return self._mapped(lambda net, objective, *args: objective.assign(*args), z, which)

    @torch.no_grad()
    def targets(self) -> Tensor:
        """Targets of all samples, (r, n, ...), by an objective that relabels."""
        return self._mapped(lambda net, objective, *args: objective.targets(*args), self.embed())

    def _mapped(self, function: ForOne, z: Tensor, which: slice = slice(None)) -> Tensor:
        return torch.cat([self.executor.evaluate(function, chunk, which=which)
                          for chunk in z.split(CHUNK, dim=1)], dim=1)
