"""Many models as one: the only place that knows replicas are stacked on a leading axis, and how a step is executed.

Every tensor of r replicas lives in one stacked tensor (r, ...). An executor lends them out: `PlainExecutor` as ordinary
modules whose parameters are views of the stack, `VmapExecutor` as one functional model mapped over the first axis.
"""

from __future__ import annotations

import copy
import dataclasses
import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from . import draws
from .exceptions import ReclustWarning
from .interventions import Layer
from .objectives import Objective, State
from .representations import Representation, build_network

ForOne = Callable[..., Any]
"""A function of one replica: (net, objective, state, *tensors of that replica) -> tensor or dict of tensors."""


class Replicas:
    """The tensors of r independent models, and of what their objectives keep.

    parameters, buffers, state: name -> (r, ...). Trainable entries of the state are leaves of their own for each replica,
    views of the stack, because the optimizer counts steps by leaf and an intervention may reset the count of one replica.
    """

    def __init__(self, representation: Representation, net: nn.Module, parameters: State, buffers: State,
                 seeds: Sequence[int]) -> None:
        self.representation, self.net, self.seeds = representation, net, tuple(seeds)
        self.parameters, self.buffers = parameters, buffers
        self.objectives: list[Objective] = []
        self.numbers: State = {}
        self.state: State = {}
        self.state_leaves: dict[str, list[nn.Parameter]] = {}
        self.key = draws.key(self.seeds, device=next(iter(parameters.values())).device)

    @classmethod
    def create(cls, representation: Representation, sample_shape: tuple[int, ...], n_clusters: int, *,
               seeds: Sequence[int], device: torch.device, dtype: torch.dtype) -> Replicas:
        """Freshly initialised replicas, one for each seed."""
        net = build_network(representation, sample_shape, n_clusters, dtype).to(device)
        representation.blocks(net)  # refuses an encoder without weights before anything is computed
        key = draws.fold(draws.key(seeds, device=device), "weights")
        parameters = representation.initial_weights(net, key, dtype)
        buffers = {name: buffer.expand(len(seeds), *buffer.shape).clone() for name, buffer in net.named_buffers()}
        return cls(representation, net, parameters, buffers, seeds)

    def __len__(self) -> int:
        return len(self.seeds)

    def set_objectives(self, objectives: Sequence[Objective], state: State) -> None:
        """Adopt what the objectives keep: name -> (r, ...)."""
        self.objectives, self.numbers = list(objectives), _differing_numbers(objectives, like=state["centers"])
        self.state = {name: tensor.detach().clone() for name, tensor in state.items()}
        self.state_leaves = {
            name: [nn.Parameter(one) for one in self.state[name].unbind()] for name in sorted(objectives[0].trainable)
        }

    def start_objectives(self, objectives: Sequence[Objective], centers: Tensor) -> None:
        """The objectives' first states, from centres (r, k, d)."""
        states = [objective.init(own) for objective, own in zip(objectives, centers, strict=True)]
        self.set_objectives(objectives, {name: torch.stack([state[name] for state in states]) for name in states[0]})

    def blocks(self, which: slice) -> dict[str, tuple[Layer, ...]]:
        """The blocks that may be reset, as views of the stack."""
        return {
            block: tuple(self._layer(name, which) for name in names)
            for block, names in self.representation.blocks(self.net).items()
        }

    def _layer(self, name: str, which: slice) -> Layer:
        module = self.net.get_submodule(name)
        own = {leaf: self.parameters[f"{name}.{leaf}"].detach()[which] for leaf, _ in module.named_parameters(recurse=False)}
        return Layer(name, module, own)

    def module(self, replica: int) -> nn.Module:
        """An ordinary module whose parameters and buffers are views of the stack."""
        made = copy.deepcopy(self.net)
        for name, stacked in self.parameters.items():
            owner, _, leaf = name.rpartition(".")
            made.get_submodule(owner)._parameters[leaf] = nn.Parameter(stacked.detach()[replica])
        for name, stacked in self.buffers.items():
            owner, _, leaf = name.rpartition(".")
            made.get_submodule(owner)._buffers[leaf] = stacked[replica]
        return made


class Executor(Protocol):
    """Runs functions of one replica for all of them."""

    leaves: list[Tensor]
    """What the optimizer moves: the network's parameters."""

    names: list[str]
    """What each of the leaves is called in the network."""

    def train(self, function: ForOne, *batch: Tensor) -> Tensor:
        """Stacked results, with gradients, in training mode; batch tensors are (r, ...)."""
        ...

    def evaluate(self, function: ForOne, *batch: Tensor, which: slice = slice(None)) -> Any:
        """Stacked results of the chosen replicas, no gradients, in eval mode; batch tensors are (len(which), ...)."""
        ...

    def clip_(self, max_norm: float) -> Tensor:
        """Scale each replica's network gradient down to this l2 norm; the norms before, (r,)."""
        ...


class PlainExecutor:
    """A Python loop over ordinary modules: what one replica wants, and the slow reference for many."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self.modules = [replicas.module(replica) for replica in range(len(replicas))]
        self.leaves: list[Tensor] = [leaf for module in self.modules for leaf in module.parameters()]
        self.names = [name for module in self.modules for name, _ in module.named_parameters()]

    def train(self, function: ForOne, *batch: Tensor) -> Tensor:
        for module in self.modules:
            module.train()
        return torch.stack([self._call(function, i, [tensor[i] for tensor in batch]) for i in range(len(self.modules))])

    @torch.no_grad()
    def evaluate(self, function: ForOne, *batch: Tensor, which: slice = slice(None)) -> Any:
        chosen = range(len(self.modules))[which]
        for i in chosen:
            self.modules[i].eval()
        results = [self._call(function, i, [tensor[j] for tensor in batch]) for j, i in enumerate(chosen)]
        if isinstance(results[0], dict):
            return {name: torch.stack([one[name] for one in results]) for name in results[0]}
        return torch.stack(results)

    def _call(self, function: ForOne, replica: int, batch: list[Tensor]) -> Any:
        replicas = self.replicas
        state = {name: replicas.state_leaves[name][replica] if name in replicas.state_leaves else stacked[replica]
                 for name, stacked in replicas.state.items()}
        objective = replicas.objectives[replica] if replicas.objectives else None
        return function(self.modules[replica], objective, state, *batch)

    def clip_(self, max_norm: float) -> Tensor:
        return torch.stack([nn.utils.clip_grad_norm_(module.parameters(), max_norm) for module in self.modules])


class VmapExecutor:
    """One functional model mapped over all replicas at once."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self.caller = _Caller(replicas.net)
        self.leaves: list[Tensor] = [stacked.requires_grad_() for stacked in replicas.parameters.values()]
        self.names = list(replicas.parameters)

    def train(self, function: ForOne, *batch: Tensor) -> Tensor:
        self.caller.train()
        return self._map(function, batch, slice(None))

    @torch.no_grad()
    def evaluate(self, function: ForOne, *batch: Tensor, which: slice = slice(None)) -> Any:
        self.caller.eval()
        return self._map(function, batch, which)

    def _map(self, function: ForOne, batch: tuple[Tensor, ...], which: slice) -> Any:
        replicas = self.replicas
        state = {name: torch.stack(list(replicas.state_leaves[name])) if name in replicas.state_leaves else stacked
                 for name, stacked in replicas.state.items()}
        objective = replicas.objectives[0] if replicas.objectives else None

        def one(parameters: State, buffers: State, state: State, numbers: State, *tensors: Tensor) -> Any:
            tensors_of_net = {f"net.{name}": tensor for name, tensor in (parameters | buffers).items()}
            return functional_call(self.caller, tensors_of_net, (function, _with(objective, numbers), state, *tensors))

        stacks = [{name: tensor[which] for name, tensor in stack.items()}
                  for stack in (replicas.parameters, replicas.buffers, state, replicas.numbers)]
        arguments: list[Any] = [*stacks, *batch]
        return vmap(one)(*arguments)

    def clip_(self, max_norm: float) -> Tensor:
        gradients = [leaf.grad for leaf in self.leaves if leaf.grad is not None]
        norms = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in gradients]).norm(dim=0)
        factors = (max_norm / (norms + 1e-6)).clamp(max=1)
        if norms.is_cuda or bool((factors < 1).any()):  # on a GPU asking would cost more than multiplying
            for gradient in gradients:
                gradient.mul_(factors.reshape(-1, *[1] * (gradient.ndim - 1)))
        return norms


class _Caller(nn.Module):
    """Calls a function of the network inside `functional_call`, which only knows how to call modules."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, function: ForOne, *arguments: Any) -> Any:
        return function(self.net, *arguments)


def _differing_numbers(objectives: Sequence[Objective], like: Tensor) -> State:
    """The float fields in which the replicas' objectives differ, as tensors (r,)."""
    numbers = {}
    for field in dataclasses.fields(objectives[0]):  # type: ignore[arg-type]
        values = [getattr(objective, field.name) for objective in objectives]
        if any(value != values[0] for value in values):
            numbers[field.name] = like.new_tensor(values)
    return numbers


def _with(objective: Objective | None, numbers: State) -> Objective | None:
    """The objective with tensors for some of its numbers; `replace` would run checks that tensors under vmap cannot pass."""
    made = copy.copy(objective)
    for name, number in numbers.items():
        object.__setattr__(made, name, number)
    return made


class Captured:
    """A function of tensors that runs as one CUDA graph after a few ordinary calls; shapes must stay the same.

    The ordinary calls do real work and let libraries and optimizers set themselves up. If the capture fails, the function
    goes on being called the ordinary way, with one warning. On a CPU there is nothing to capture.
    """

    ORDINARY_CALLS = 3

    def __init__(self, function: Callable[..., Any], device: torch.device) -> None:
        self.function = function
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, *inputs: Tensor) -> Any:
        if self.stream is None:
            return self.function(*inputs)
        if self.calls < self.ORDINARY_CALLS:
            self.calls += 1
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                output = self.function(*inputs)
            torch.cuda.current_stream().wait_stream(self.stream)
            return output
        if self.graph is None and not self._capture(inputs, self.stream):
            return self.function(*inputs)
        for own, given in zip(self.inputs, inputs, strict=True):
            own.copy_(given)
        assert self.graph is not None
        self.graph.replay()
        return self.output

    def _capture(self, inputs: tuple[Tensor, ...], stream: torch.cuda.Stream) -> bool:
        self.inputs = [tensor.clone() for tensor in inputs]
        gc.collect()  # a forgotten graph that is collected during a capture would break it
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):
                self.output = self.function(*self.inputs)
        except RuntimeError as error:
            self.stream = None
            warnings.warn(f"The training step cannot be captured as a CUDA graph and runs step by step, which is slower "
                          f"but equally right: {str(error).splitlines()[0]}", ReclustWarning, stacklevel=2)
            return False
        self.graph = graph
        return True

    def release(self) -> None:
        """Forget the graph; the next call captures anew."""
        self.graph = None


@contextmanager
def tensor_cores(device: torch.device) -> Iterator[None]:
    """TF32 products on a GPU for as long as this lasts; the caller's setting comes back afterwards."""
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def executor_kind(replicas: Replicas, wanted: str) -> str:
    """What "auto" means for so many replicas of this representation."""
    worth_mapping = len(replicas) > 1 and replicas.representation.stacks
    return ("vmap" if worth_mapping else "plain") if wanted == "auto" else wanted


def make_executor(replicas: Replicas, wanted: str) -> Executor:
    return PlainExecutor(replicas) if executor_kind(replicas, wanted) == "plain" else VmapExecutor(replicas)
