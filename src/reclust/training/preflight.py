"""Try data and custom parts before training, so that mistakes are reported in plain words."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .. import draws
from ..data.inputs import Inputs
from ..objectives import Objective
from ..representations.base import try_forward
from ..utils.device import forbid_global_draws
from .engine.batches import Batches
from .engine.replicas import Replicas
from .settings import Settings


@torch.no_grad()
def check_data_and_parts(replicas: Replicas, settings: Sequence[Settings], inputs: Inputs,
                         targets: Tensor | None = None, *, pretrains: bool) -> None:
    """Pass two samples through augmentations, network and objective, in eval mode."""
    first, representation, device = settings[0], replicas.representation, inputs.device
    if inputs.n_samples < first.n_clusters:
        raise ValueError(f"n_clusters={first.n_clusters} needs at least {first.n_clusters} "
                         f"samples, X has n_samples={inputs.n_samples}.")
    rows = torch.arange(min(2, inputs.n_samples), device=device)
    for augment in first.augmentations:
        samples = inputs.take(rows)
        with forbid_global_draws("The augmentation", device):
            augmented = augment(samples, draws.fold(draws.key(0, device=device), rows))
        if augmented.shape != samples.shape or augmented.dtype != samples.dtype:
            raise ValueError(f"The augmentation must keep {samples.dtype} {tuple(samples.shape)}, "
                             f"got {augmented.dtype} {tuple(augmented.shape)}.")
    net, x = replicas.module(0, replicas.parameters).eval(), inputs.normalize(inputs.take(rows))
    z = try_forward("encoder", lambda samples: representation.encode(net, samples), x)
    if z.ndim != 2 or len(z) != len(x):
        raise ValueError(f"The encoder turned samples of shape {tuple(x.shape)} into "
                         f"{tuple(z.shape)}: it must return one row per sample, ({len(x)}, d).")
    with forbid_global_draws("The encoder", device):  # in training mode, for dropout
        representation.encode(copy.deepcopy(net).train(), x)
    if pretrains or any(item.objective.representation_weight != 0 for item in settings):
        _try_second_half(net, x, z)
    if first.clustering is not None:
        batches = Batches(inputs, first.clustering, first.augment)
        rows = torch.arange(batches.size, device=device) % len(z)  # a whole batch, by repetition
        views = z[rows].expand(len(batches.kinds), -1, -1)
        batch = () if targets is None else (targets[rows],)
        _try_objective(first.objective, first.n_clusters, views, *batch)


def _try_second_half(net: nn.Module, x: Tensor, z: Tensor) -> None:
    parts: Any = net if isinstance(net, nn.ModuleDict) else {}
    if "projector" in parts:
        try_forward("projector", parts["projector"], z)
    if "decoder" in parts:
        decoded = try_forward("decoder", parts["decoder"], z)
        if decoded.numel() != x.numel():
            raise ValueError(f"The decoder turned embeddings {tuple(z.shape)} into "
                             f"{tuple(decoded.shape)}: a sample needs {x[0].numel()} values.")


def _try_objective(objective: Objective, k: int, views: Tensor, *targets: Tensor) -> None:
    """Call every method on embeddings of one batch, (V, B, d)."""
    z, name = views[0], type(objective).__name__
    centers = draws.normal(draws.key(0, device=z.device), (k, z.shape[-1]), dtype=z.dtype)
    state = objective.init(centers)
    _check(f"{name}.init(centers)['centers']", state["centers"], centers.shape)
    loss = objective.loss(state, views, *targets)
    _check(f"{name}.loss", loss, (), "End it with .mean() or .sum().")
    labels = objective.assign(state, z)
    _check(f"{name}.assign", labels, z.shape[:1], "End it with .argmin(-1) or .argmax(-1).")
    moved = objective.update(state, z)
    for part in set(state) - set(objective.trainable):
        _check(f"{name}.update(state, z)[{part!r}]", moved[part], state[part].shape)


def _check(name: str, output: Any, shape: tuple[int, ...], hint: str = "") -> None:
    if not isinstance(output, Tensor) or output.shape != shape:
        got = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(f"{name} must return a tensor of shape {tuple(shape)}, got {got}. {hint}"
                         .rstrip())
