"""What replicas make of samples while they train: embeddings, labels and the representation's loss, piece by piece."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ... import draws
from ...data.augmentation.affine import Augmentation
from ...data.inputs import Inputs
from ...objectives import State
from ...representations.autoencoder import Reconstruction
from .executors import Executor
from .replicas import Replicas

CHUNK = 4096
"""Samples embedded at once."""


class Embedder:
    """In eval mode and without gradients. Shapes: r replicas, n samples, d embedding size; `which` are some of the replicas."""

    def __init__(self, replicas: Replicas, inputs: Inputs, executor: Executor, perturb: Augmentation) -> None:
        self.replicas, self.inputs, self.executor, self.perturb = replicas, inputs, executor, perturb

    def embed(self, rows: Tensor | None = None, which: slice = slice(None), view_key: Tensor | None = None,
              augment: Augmentation | None = None) -> Tensor:
        """(r, n, d) of all samples, or (r, m, d) of rows (r, m) or (m,); with a key () of a random view of each, by an
        augmentation of its own if there is one."""
        members = len(range(len(self.replicas))[which])
        if rows is None:
            rows = torch.arange(self.inputs.n_samples, device=self.inputs.device)
        parts = []
        for some in rows.split(CHUNK, dim=-1):
            x = self.inputs.take(some)
            if view_key is not None:
                x = (augment or self.perturb)(x, draws.fold(view_key, some))
            x = self.inputs.normalize(x)
            parts.append(self.executor.evaluate(self._encode, x if some.ndim > 1 else x.expand(members, *x.shape), which=which))
        return torch.cat(parts, dim=1)

    def _encode(self, net: nn.Module, objective: Any, state: State, x: Tensor) -> Tensor:
        return self.replicas.representation.encode(net, x)

    def representation_loss(self, z: Tensor | None = None) -> Tensor:
        """Of all samples as they are, in eval mode, (r,). z: their embeddings (r, n, d), where these are known."""
        kind = type(self.replicas.representation)
        if any(getattr(kind, name) is not getattr(Reconstruction, name) for name in ("encode", "encode_views")):
            z = None  # which may see views otherwise than single samples
        sums = []
        for rows in torch.arange(self.inputs.n_samples, device=self.inputs.device).split(CHUNK):
            x = self.inputs.normalize(self.inputs.take(rows))
            known = () if z is None else (z[:, rows],)
            sums.append(len(rows) * self.executor.evaluate(self._reconstruct, x.expand(len(self.replicas), *x.shape), *known))
        return torch.stack(sums).sum(0) / self.inputs.n_samples

    def _reconstruct(self, net: nn.Module, objective: Any, state: State, x: Tensor, *known: Tensor) -> Tensor:
        representation, views = self.replicas.representation, x.unsqueeze(0)
        z = known[0].unsqueeze(0) if known else representation.encode_views(net, views)
        return representation.loss(net, views, z)

    def assign(self, z: Tensor, which: slice = slice(None)) -> Tensor:
        """(r, n, d) -> (r, n)."""
        return torch.cat([self.executor.evaluate(_assign, some, which=which) for some in z.split(CHUNK, dim=1)], dim=1)


def _assign(net: nn.Module, objective: Any, state: State, z: Tensor) -> Tensor:
    return objective.assign(state, z)
