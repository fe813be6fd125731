"""Many models as one: every tensor of r replicas is stored in one stacked tensor (r, ...)."""

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
from ...representations.layers import KeyedDropout
from ...utils.device import memory_limit
from ...utils.values import same

NETWORK, STATE = "network", "state"  # prefixes of the names of trained tensors
LARGE_SAMPLE = 2**16  # values above which a network of usual width may not fit into memory


class Replicas:
    """Tensors of independent models that train side by side, stacked over replicas.

    Parameters
    ----------
    representation, net : Representation and Module
        Builds and applies the network; only the structure of `net` is used.
    parameters, buffers : dict of str to Tensor of shape (n_replicas, ...)
        Tensors of all networks.
    seeds : sequence of int
        Seed of each replica.

    Examples
    --------
    >>> import torch
    >>> from reclust import Autoencoder, Replicas
    >>> replicas = Replicas.create(Autoencoder((8,)), (5,), n_clusters=3, seeds=[0, 1],
    ...                            device=torch.device("cpu"), dtype=torch.float32)
    >>> replicas.parameters["encoder.1.weight"].shape
    torch.Size([2, 8, 5])
    """

    def __init__(self, representation: Representation, net: nn.Module, parameters: State,
                 buffers: State, seeds: Sequence[int]) -> None:
        # Parameters with requires_grad=False are neither trained nor reset.
        self.frozen = frozenset(name for name, parameter in net.named_parameters()
                                if not parameter.requires_grad)
        self.representation, self.net = representation, net.requires_grad_(False)
        self.parameters, self.buffers, self.seeds = parameters, buffers, tuple(seeds)
        self.working = parameters
        self.objectives: list[Objective] = []
        self.numbers: State = {}  # float fields in which the objectives differ
        self.state: State = {}
        self.key = draws.key(self.seeds, device=next(iter(parameters.values())).device)

    @classmethod
    def create(cls, representation: Representation, sample_shape: tuple[int, ...], n_clusters: int,
               *, seeds: Sequence[int], device: torch.device, dtype: torch.dtype) -> "Replicas":
        _check_memory(representation, sample_shape, n_clusters, len(seeds), device, dtype)
        net = build_network(representation, sample_shape, n_clusters, dtype).to(device)
        representation.blocks(net)  # raises if the encoder has no weights
        key = draws.fold(draws.key(seeds, device=device), "weights")
        parameters = representation.initial_weights(net, key, dtype)
        buffers = {name: buffer.expand(len(seeds), *buffer.shape).clone()
                   for name, buffer in net.named_buffers()}
        buffers |= {f"{name}.key": draws.fold(key, name) for name, layer in net.named_modules()
                    if isinstance(layer, KeyedDropout)}
        return cls(representation, net, parameters, buffers, seeds)

    def __len__(self) -> int:
        return len(self.seeds)

    def work_in(self, dtype: torch.dtype) -> None:
        """Train with copies of the weights in this precision; biases and norms stay as they are."""
        self.working = {name: stack.detach().to(dtype) if stack.ndim > 2 else stack
                        for name, stack in self.parameters.items()}

    def refresh_working_(self) -> None:
        """Update the copies in lower precision after an intervention."""
        for name, stack in self.parameters.items():
            if self.working[name] is not stack:
                self.working[name].detach().copy_(stack)

    def start_objectives(self, objectives: Sequence[Objective], centers: Tensor) -> None:
        """Initialize the state of the objectives from centers (r, k, d)."""
        states = [objective.init(c) for objective, c in zip(objectives, centers, strict=True)]
        state = {name: torch.stack([state[name] for state in states]) for name in states[0]}
        self.set_objectives(objectives, state)

    def set_objectives(self, objectives: Sequence[Objective], state: State) -> None:
        self.objectives = list(objectives)
        self.numbers = _differing_numbers(objectives, like=state["centers"])
        self.state = {name: tensor.detach().clone() for name, tensor in state.items()}

    @property
    def learned_state(self) -> list[str]:
        """Names in the objectives' state that the optimizer moves; `update` moves the others."""
        return sorted(self.objectives[0].trainable) if self.objectives else []

    @property
    def learned(self) -> dict[str, tuple[Tensor, Tensor]]:
        """Tensors that the optimizer moves: name -> stored values, values that get gradients."""
        network = {f"{NETWORK}/{name}": (stack, self.working[name])
                   for name, stack in self.parameters.items() if name not in self.frozen}
        state = {f"{STATE}/{name}": (self.state[name], self.state[name])
                 for name in self.learned_state}
        return {**network, **state}

    def finite(self) -> np.ndarray:
        """Replicas whose parameters and state are all finite, (r,)."""
        stacks = (*self.parameters.values(), *self.state.values())
        finite = [stack.detach().reshape(len(self), -1).isfinite().all(1) for stack in stacks]
        return torch.stack(finite).all(0).cpu().numpy()

    def tensors(self) -> dict[str, State]:
        """Copy all tensors to the CPU, by kind."""
        return {kind: {name: stack.detach().cpu().clone() for name, stack in stacks.items()}
                for kind, stacks in self.stacks().items()}

    def stacks(self) -> dict[str, State]:
        return {"parameters": self.parameters, "buffers": self.buffers, "state": self.state}

    def blocks(self, which: slice) -> dict[str, tuple[Layer, ...]]:
        """Blocks that may be reset, as views of the stack."""
        return {block: tuple(self._layer(name, which) for name in names)
                for block, names in self.representation.blocks(self.net).items()}

    def _layer(self, name: str, which: slice) -> Layer:
        module = self.net.get_submodule(name)
        parameters = {attribute: self.parameters[f"{name}.{attribute}"].detach()[which]
                      for attribute, _ in module.named_parameters(recurse=False)
                      if f"{name}.{attribute}" not in self.frozen}
        return Layer(name, module, parameters)

    def module(self, replica: int, parameters: State,
               learned: frozenset[str] = frozenset()) -> nn.Module:
        """Make a module whose parameters and buffers are views of the stack."""
        module = copy.deepcopy(self.net)
        for name, stacked in parameters.items():
            owner, _, attribute = name.rpartition(".")
            parameter = nn.Parameter(stacked.detach()[replica], f"{NETWORK}/{name}" in learned)
            module.get_submodule(owner)._parameters[attribute] = parameter
        for name, stacked in self.buffers.items():
            owner, _, attribute = name.rpartition(".")
            module.get_submodule(owner)._buffers[attribute] = stacked[replica]
        for layer in module.modules():
            if isinstance(layer, nn.RNNBase):  # on a GPU it would move weights out of the stack
                layer.flatten_parameters = lambda: None  # type: ignore[method-assign]
        return module


def _differing_numbers(objectives: Sequence[Objective], like: Tensor) -> State:
    """Float fields in which the objectives differ, as tensors (r,)."""
    if all(objective is objectives[0] for objective in objectives):
        return {}
    numbers = {}
    for field in dataclasses.fields(objectives[0]):  # type: ignore[arg-type]
        values = [getattr(objective, field.name) for objective in objectives]
        if not all(same(value, values[0]) for value in values):
            numbers[field.name] = like.new_tensor(values)
    return numbers


def _check_memory(representation: Representation, sample_shape: tuple[int, ...], n_clusters: int,
                  count: int, device: torch.device, dtype: torch.dtype) -> None:
    """Raise if weights, gradients and Adam's moments of networks for large samples do not fit."""
    if math.prod(sample_shape) < LARGE_SAMPLE:
        return
    try:
        net = build_network(representation, sample_shape, n_clusters, dtype, device="meta")
    except (NotImplementedError, RuntimeError):
        return  # a custom representation that cannot be built on the meta device
    needed = 4 * count * sum(weights.numel() for weights in net.parameters()) * dtype.itemsize
    if needed > memory_limit(device):
        raise torch.OutOfMemoryError(f"{count} networks take {needed / 2**30:.0f} GiB.")
