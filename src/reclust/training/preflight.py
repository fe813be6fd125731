"""Parts of one's own are tried before any training, so that what does not fit is told in words."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .. import draws
from ..data.inputs import Inputs
from ..objectives import Objective, State
from ..objectives.base import has_update
from ..representations.autoencoder import EncoderDecoder
from ..representations.base import Representation, try_forward
from ..representations.contrastive import EncoderProjector
from ..utils.global_rng import NotRepeatable, forbid_global_draws
from ..utils.values import same
from .engine.batches import Batches
from .engine.replicas import Replicas
from .settings import Settings


def try_parts(replicas: Replicas, each: Sequence[Settings], inputs: Inputs, *, pretrains: bool) -> None:
    """Whether the network takes two of the samples, and the objective what it makes of them.

    In eval mode, which leaves norms as they are, and without a backward pass. pretrains: whether there is pretraining to come.
    """
    first, representation = each[0], replicas.representation
    net = replicas.module(0, replicas.parameters, frozenset(replicas.learned)).eval()
    x = inputs.normalize(inputs.take(torch.arange(min(2, inputs.n_samples), device=inputs.device)))
    z = try_forward("encoder", lambda samples: representation.encode(net, samples), x)
    if z.ndim != 2 or len(z) != len(x):
        raise ValueError(f"The encoder turned samples of shape {tuple(x.shape)} into {tuple(z.shape)}: it must give one row of "
                         f"numbers for each, ({len(x)}, d).")
    with_loss = pretrains or any(settings.objective.representation_weight != 0 for settings in each)
    _try_training(representation, net, x, with_loss)
    if with_loss:
        _try_other_half(net, x, z)
    if first.clustering is not None:
        batches = Batches(inputs, first.clustering, first.augment)
        rows = torch.arange(batches.size, device=z.device) % len(z)  # an objective may need more than two samples
        _try_objective(first.objective, first.n_clusters, z, torch.stack([z[rows]] * len(batches.kinds)))


def _try_training(representation: Representation, net: nn.Module, x: Tensor, with_loss: bool) -> None:
    """Passes of a copy in training mode: whether it draws what no seed repeats, or keeps something where no replica looks."""
    copied = copy.deepcopy(net).train()
    before = {name: (buffer.data_ptr(), buffer.clone()) for name, buffer in copied.named_buffers()}
    _training_pass(representation, copied, x, with_loss)
    for name, buffer in copied.named_buffers():
        if name not in before or buffer.data_ptr() != before[name][0]:
            raise ValueError(f"The network puts another tensor in the place of its buffer {name} while it trains, which "
                             "checkpoints and results would not see: write into it, as buffer.copy_(…) does.")
        buffer.copy_(before[name][1])  # so that nothing but what is kept elsewhere tells the second pass from the first
    once = _kept_outside(copied)  # with what is made in a first pass and stays, such as positional encodings
    _training_pass(representation, copied, x, with_loss)
    for (module, attribute), kept in _kept_outside(copied).items():
        if not _unchanged(once.get((module, attribute)), kept):
            kind = type(copied.get_submodule(module)).__name__
            raise ValueError(f"The network changes the attribute {attribute!r} of {module or 'itself'} ({kind}) in each pass "
                             "of training, which replicas, checkpoints and results would not see: keep it as a buffer "
                             "(register_buffer) and write into it, as buffer.copy_(…) does.")


@torch.no_grad()
def _training_pass(representation: Representation, net: nn.Module, x: Tensor, with_loss: bool) -> None:
    try:
        with forbid_global_draws("The encoder, as it trains,", x.device):
            z = representation.encode(net, x)
        if with_loss:
            with forbid_global_draws("The representation's loss, as of a decoder,", x.device):
                representation.loss(net, torch.stack([x, x]), torch.stack([z, z]))
    except NotRepeatable:
        raise
    except (RuntimeError, ValueError):
        pass  # norms may need more samples than these


def _kept_outside(net: nn.Module) -> dict[tuple[str, str], Any]:
    """(Module, attribute) -> tensors, numbers and strings that are neither parameters nor buffers."""
    return {(module, attribute): kept.clone() if isinstance(kept, Tensor) else kept
            for module, own in net.named_modules() for attribute, kept in vars(own).items()
            if isinstance(kept, (Tensor, int, float, complex, str))}


def _unchanged(before: Any, after: Any) -> bool:
    if isinstance(before, Tensor) and isinstance(after, Tensor):
        return before.dtype == after.dtype and torch.equal(before.nan_to_num(), after.nan_to_num())
    return same(before, after)


def _try_other_half(net: nn.Module, x: Tensor, z: Tensor) -> None:
    """What keeps embeddings honest: a decoder or a projector. Representations of another kind have their own."""
    if isinstance(net, EncoderProjector):
        try_forward("projector", net.projector, z)
    if isinstance(net, EncoderDecoder):
        made = try_forward("decoder", net.decoder, z)
        if made.numel() != x.numel():
            raise ValueError(f"The decoder turned embeddings of shape {tuple(z.shape)} into {tuple(made.shape)}: samples of "
                             f"shape {tuple(x.shape[1:])} need {x[0].numel()} numbers each.")


def _try_objective(objective: Objective, k: int, z: Tensor, views: Tensor) -> None:
    """z (B, d) and a batch of views (V, B, d)."""
    name = type(objective).__name__
    centers = draws.normal(draws.key(0, device=z.device), (k, z.shape[-1]), dtype=z.dtype)
    state = objective.init(centers)
    if not isinstance(state, dict) or "centers" not in state or state["centers"].shape != centers.shape:
        raise ValueError(f"{name}.init must give a dict of tensors, among them 'centers' of shape {tuple(centers.shape)}.")
    _check_state(name, objective, state)
    state = {part: tensor.detach().requires_grad_(part in objective.trainable) for part, tensor in state.items()}
    with forbid_global_draws(f"{name}.loss", z.device):
        loss = objective.loss(state, views)
    if not isinstance(loss, Tensor) or loss.shape != ():
        raise ValueError(f"{name}.loss gave {_described(loss)} for embeddings of shape {tuple(views.shape)}: it must give one "
                         "number, a tensor of shape (). End it with .mean() or .sum().")
    with torch.no_grad():
        labels = objective.assign(state, z)
    if not isinstance(labels, Tensor) or labels.shape != z.shape[:1] or labels.is_floating_point():
        raise ValueError(f"{name}.assign gave {_described(labels)} for embeddings of shape {tuple(z.shape)}: it must give "
                         f"whole numbers of shape {tuple(z.shape[:1])}, the cluster of each sample, as scores (B, k) do by "
                         ".argmax(-1).")
    if ((labels < 0) | (labels >= k)).any():
        raise ValueError(f"{name}.assign gave the cluster {int(labels.max())} of {k}: they are numbered from 0 to {k - 1}.")
    if has_update(objective) and set(state) != set(objective.trainable):
        _try_update(name, objective, state, z)


def _check_state(name: str, objective: Objective, state: State) -> None:
    trainable = objective.trainable
    if isinstance(trainable, str) or not set(trainable) <= set(state):
        raise ValueError(f"{name}.trainable must be a frozenset of names that {name}.init gives ({', '.join(state)}), got "
                         f"{trainable!r}.")
    for part, tensor in state.items():
        if not isinstance(tensor, Tensor) or (part in trainable and not tensor.is_floating_point()):
            raise ValueError(f"{name}.init gave {_described(tensor)} for {part!r}: it must be a tensor, of floats where "
                             "gradients are to reach it.")


@torch.no_grad()
def _try_update(name: str, objective: Objective, state: State, z: Tensor) -> None:
    moved = objective.update(state, z)
    for part in set(state) - set(objective.trainable):
        given = moved.get(part) if isinstance(moved, dict) else moved
        if not isinstance(given, Tensor) or given.shape != state[part].shape:
            raise ValueError(f"{name}.update gave {_described(given)} for {part!r}: it must give the whole state as a dict, "
                             f"with {part!r} of shape {tuple(state[part].shape)}.")


def _described(given: object) -> str:
    return f"{tuple(given.shape)} of {given.dtype}" if isinstance(given, Tensor) else type(given).__name__
