"""Many models as one: every tensor of r replicas lives in one stacked tensor (r, ...).

`executors.py` lends replicas out one by one, `intervening.py` and `inspection.py` look at slices of them, `optimizer.py` steps
each by its own state.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ... import draws
from ...interventions import Layer
from ...objectives import Objective, State
from ...representations import Representation, build_network
from ...utils.device import memory_limit
from ...utils.values import same

NETWORK, STATE = "network", "state"
"""How the names of network parameters and of what objectives keep begin, among all that is learned."""
LARGE_SAMPLE = 2**16
"""Numbers of a sample from which on a network of usual width may not fit into memory."""


class Replicas:
    """The tensors of r independent models, and of what their objectives keep.

    parameters, buffers, state: name -> (r, ...). What is written in place here is what every executor sees.
    working: the parameters that networks train with, copies in lower precision where that is asked for.
    still: names of parameters that their author froze; they are neither trained nor reset.
    """

    def __init__(self, representation: Representation, net: nn.Module, parameters: State, buffers: State,
                 seeds: Sequence[int]) -> None:
        self.still = frozenset(name for name, parameter in net.named_parameters() if not parameter.requires_grad)
        self.representation, self.net, self.seeds = representation, net.requires_grad_(False), tuple(seeds)
        self.parameters, self.buffers = parameters, buffers
        self.working = parameters
        self.objectives: list[Objective] = []
        self.numbers: State = {}
        self.state: State = {}
        self.key = draws.key(self.seeds, device=next(iter(parameters.values())).device)

    @classmethod
    def create(cls, representation: Representation, sample_shape: tuple[int, ...], n_clusters: int, *,
               seeds: Sequence[int], device: torch.device, dtype: torch.dtype) -> Replicas:
        """Freshly initialised replicas, one for each seed."""
        _check_memory(representation, sample_shape, n_clusters, len(seeds), device, dtype)
        net = build_network(representation, sample_shape, n_clusters, dtype).to(device)
        representation.blocks(net)  # refuses an encoder without weights before anything is computed
        key = draws.fold(draws.key(seeds, device=device), "weights")
        parameters = representation.initial_weights(net, key, dtype)
        buffers = {name: buffer.expand(len(seeds), *buffer.shape).clone() for name, buffer in net.named_buffers()}
        return cls(representation, net, parameters, buffers, seeds)

    def __len__(self) -> int:
        return len(self.seeds)

    def work_in(self, dtype: torch.dtype) -> None:
        """Train with weights of this precision; biases and norms, which are small, stay as they are."""
        self.working = {name: stack.detach().to(dtype) if stack.ndim > 2 else stack for name, stack in self.parameters.items()}

    def refresh_working_(self) -> None:
        """Follow what somebody else than the optimizer wrote."""
        for name, stack in self.parameters.items():
            if self.working[name] is not stack:
                self.working[name].detach().copy_(stack)

    def set_objectives(self, objectives: Sequence[Objective], state: State) -> None:
        """Adopt what the objectives keep: name -> (r, ...)."""
        self.objectives, self.numbers = list(objectives), _differing_numbers(objectives, like=state["centers"])
        self.state = {name: tensor.detach().clone() for name, tensor in state.items()}

    @property
    def learned_state(self) -> list[str]:
        """Names of what the optimizer moves in the objectives' state; their `update` moves the rest."""
        return sorted(self.objectives[0].trainable) if self.objectives else []

    @property
    def learned(self) -> dict[str, tuple[Tensor, Tensor]]:
        """All that the optimizer moves: name -> what is kept and what gradients are taken of, (r, ...) each."""
        return {**{f"{NETWORK}/{name}": (stack, self.working[name]) for name, stack in self.parameters.items()
                   if name not in self.still},
                **{f"{STATE}/{name}": (self.state[name], self.state[name]) for name in self.learned_state}}

    def start_objectives(self, objectives: Sequence[Objective], centers: Tensor) -> None:
        """The objectives' first states, from centres (r, k, d)."""
        states = [objective.init(own) for objective, own in zip(objectives, centers, strict=True)]
        self.set_objectives(objectives, {name: torch.stack([state[name] for state in states]) for name in states[0]})

    def damage(self) -> np.ndarray:
        """(r,): 0 where all that was learned is finite, otherwise not a number."""
        stacks = (*self.parameters.values(), *self.state.values())
        finite = [stack.detach().reshape(len(self), -1).isfinite().all(1) for stack in stacks]
        return np.where(torch.stack(finite).all(0).cpu().numpy(), 0.0, np.nan)

    def blocks(self, which: slice) -> dict[str, tuple[Layer, ...]]:
        """The blocks that may be reset, as views of the stack."""
        return {
            block: tuple(self._layer(name, which) for name in names)
            for block, names in self.representation.blocks(self.net).items()
        }

    def _layer(self, name: str, which: slice) -> Layer:
        module = self.net.get_submodule(name)
        own = {leaf: self.parameters[f"{name}.{leaf}"].detach()[which] for leaf, _ in module.named_parameters(recurse=False)
               if f"{name}.{leaf}" not in self.still}
        return Layer(name, module, own)

    def module(self, replica: int, parameters: State, learned: frozenset[str] = frozenset()) -> nn.Module:
        """An ordinary module whose parameters and buffers are views of the stack; gradients reach what is learned."""
        made = copy.deepcopy(self.net)
        for name, stacked in parameters.items():
            owner, _, leaf = name.rpartition(".")
            own = nn.Parameter(stacked.detach()[replica], requires_grad=f"{NETWORK}/{name}" in learned)
            made.get_submodule(owner)._parameters[leaf] = own
        for name, stacked in self.buffers.items():
            owner, _, leaf = name.rpartition(".")
            made.get_submodule(owner)._buffers[leaf] = stacked[replica]
        for layer in made.modules():
            if isinstance(layer, nn.RNNBase):  # on a GPU it would move the weights out of the stack, where nobody trains them
                layer.flatten_parameters = _leave_weights  # type: ignore[method-assign]
        return made


def _leave_weights() -> None:
    """In place of what recurrent layers do to have their weights in one piece."""


def _differing_numbers(objectives: Sequence[Objective], like: Tensor) -> State:
    """The float fields in which the replicas' objectives differ, as tensors (r,)."""
    numbers = {}
    for field in dataclasses.fields(objectives[0]):  # type: ignore[arg-type]
        values = [getattr(objective, field.name) for objective in objectives]
        if not all(same(value, values[0]) for value in values):
            numbers[field.name] = like.new_tensor(values)
    return numbers


def _check_memory(representation: Representation, sample_shape: tuple[int, ...], n_clusters: int, count: int,
                  device: torch.device, dtype: torch.dtype) -> None:
    """That weights, gradients and Adam's two moments fit, as far as that can be told; asked only where samples are large."""
    if math.prod(sample_shape) < LARGE_SAMPLE:
        return
    try:
        net = build_network(representation, sample_shape, n_clusters, dtype, device="meta")
    except (NotImplementedError, RuntimeError):  # a representation of one's own that cannot be built without memory
        return
    needed = 4 * count * sum(weights.numel() for weights in net.parameters()) * dtype.itemsize
    if needed > memory_limit(device):
        raise torch.OutOfMemoryError(f"{count} networks with what training keeps of them take {needed / 2**30:.0f} GiB.")
