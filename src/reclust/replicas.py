"""Many models as one: the only place that knows replicas are stacked on a leading axis, and how a step is executed.

Every tensor of r replicas lives in one stacked tensor (r, ...). An executor lends them out: `PlainExecutor` as ordinary
modules whose parameters are views of the stack, `VmapExecutor` as one functional model mapped over the first axis.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from . import draws
from .exceptions import first_line, warn
from .interventions import Layer
from .objectives import Objective, State
from .representations import Representation, build_network

NETWORK, STATE = "network", "state"
"""How the names of network parameters and of what objectives keep begin, among all that is learned."""

ForOne = Callable[..., Any]
"""A function of one replica: (net, objective, state, *tensors of that replica) -> tensor or dict of tensors."""


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


class Executor(Protocol):
    """Runs functions of one replica for all of them."""

    def gradients(self, function: ForOne, *batch: Tensor) -> tuple[Tensor, State]:
        """In training mode: stacked results (r, m), and the gradients of each one's first number, by the names of what is
        learned, (r, ...) each; batch tensors are (r, ...)."""
        ...

    def forget_gradients(self) -> None:
        """Leave nothing behind of a step that failed halfway."""
        ...

    def evaluate(self, function: ForOne, *batch: Tensor, which: slice = slice(None)) -> Any:
        """Stacked results of the chosen replicas, no gradients, in eval mode; batch tensors are (len(which), ...)."""
        ...


class PlainExecutor:
    """A Python loop over ordinary modules: what one replica wants, and the slow reference for many.

    learned: names of what gets gradients. Compiled, the parts of each network (encoder, decoder, projector) go through
    `torch.compile` for training.
    """

    def __init__(self, replicas: Replicas, learned: frozenset[str], *, compiled: bool = False) -> None:
        self.replicas, self._compiled = replicas, compiled
        self.modules = [replicas.module(i, replicas.working, learned) for i in range(len(replicas))]
        # Compiled networks would be compiled once more for evaluation and each of its chunks.
        same = replicas.working is replicas.parameters and not compiled
        self._exact = self.modules if same else [replicas.module(i, replicas.parameters) for i in range(len(replicas))]
        for part in self._parts() if compiled else ():
            part.compile(dynamic=False)
        self.states = [{name: nn.Parameter(stack[i]) if f"{STATE}/{name}" in learned else stack[i]
                        for name, stack in replicas.state.items()} for i in range(len(replicas))]
        self._leaves = [self._leaves_of(i, learned) for i in range(len(replicas))]

    def _leaves_of(self, replica: int, learned: frozenset[str]) -> dict[str, Tensor]:
        network = {f"{NETWORK}/{name}": leaf for name, leaf in self.modules[replica].named_parameters()}
        state = {f"{STATE}/{name}": leaf for name, leaf in self.states[replica].items()}
        return {name: leaf for name, leaf in {**network, **state}.items() if name in learned}

    def gradients(self, function: ForOne, *batch: Tensor) -> tuple[Tensor, State]:
        results, each = [], []
        for i in range(len(self.modules)):  # one after the other, so that the activations of one are held at a time
            if not self.modules[i].training:  # asking takes no time, setting each layer does
                self.modules[i].train()
            result = self._trained(function, i, [tensor[i] for tensor in batch])
            result[0].backward()
            results.append(result.detach())
            each.append(_taken(self._leaves[i]))
        reached = {name: gradient for gradients in each for name, gradient in gradients.items()}
        # A replica whose loss does not reach a leaf that another's does stands still there.
        stacks = {name: _stacked([own[name] if name in own else torch.zeros_like(like) for own in each])
                  for name, like in reached.items()}
        return torch.stack(results), stacks

    def forget_gradients(self) -> None:
        for leaves in self._leaves:
            _taken(leaves)

    def _trained(self, function: ForOne, replica: int, batch: list[Tensor]) -> Tensor:
        try:
            return self._call(function, self.modules[replica], replica, batch)
        except Exception as error:
            if not self._compiled or isinstance(error, torch.OutOfMemoryError):
                raise
            self._go_on_uncompiled(error)
        return self._call(function, self.modules[replica], replica, batch)

    @torch.no_grad()
    def evaluate(self, function: ForOne, *batch: Tensor, which: slice = slice(None)) -> Any:
        chosen = range(len(self.modules))[which]
        for i in chosen:
            self._exact[i].eval()
        results = [self._call(function, self._exact[i], i, [tensor[j] for tensor in batch]) for j, i in enumerate(chosen)]
        if isinstance(results[0], dict):
            return {name: torch.stack([one[name] for one in results]) for name in results[0]}
        return torch.stack(results)

    def _call(self, function: ForOne, module: nn.Module, replica: int, batch: list[Tensor]) -> Any:
        objective = self.replicas.objectives[replica] if self.replicas.objectives else None
        return function(module, objective, self.states[replica], *batch)

    def _parts(self) -> Iterator[nn.Module]:
        return (part for module in self.modules for part in module.children())

    def _go_on_uncompiled(self, error: Exception) -> None:
        warn(f"The network cannot be compiled and trains as it is, which is slower but equally right: "
             f"{first_line(error)}")
        self._compiled = False
        for part in self._parts():
            part._compiled_call_impl = None  # what nn.Module.compile() sets


class VmapExecutor:
    """One functional model mapped over all replicas at once. learned: names of what gets gradients."""

    def __init__(self, replicas: Replicas, learned: frozenset[str]) -> None:
        self.replicas = replicas
        self.caller = _Caller(replicas.net)
        self._leaves = {name: leaf.requires_grad_(name in learned) for name, (_, leaf) in replicas.learned.items()}

    def gradients(self, function: ForOne, *batch: Tensor) -> tuple[Tensor, State]:
        self.caller.train()
        results = self._map(function, self.replicas.working, batch, slice(None))
        results[:, 0].sum().backward()  # replicas share no parameter, so the gradient of the sum is each one's own
        return results.detach(), _taken(self._leaves)

    def forget_gradients(self) -> None:
        _taken(self._leaves)

    @torch.no_grad()
    def evaluate(self, function: ForOne, *batch: Tensor, which: slice = slice(None)) -> Any:
        self.caller.eval()
        return self._map(function, self.replicas.parameters, batch, which)

    def _map(self, function: ForOne, parameters: State, batch: tuple[Tensor, ...], which: slice) -> Any:
        replicas = self.replicas
        objective = replicas.objectives[0] if replicas.objectives else None

        def one(parameters: State, buffers: State, state: State, numbers: State, *tensors: Tensor) -> Any:
            tensors_of_net = {f"net.{name}": tensor for name, tensor in (parameters | buffers).items()}
            return functional_call(self.caller, tensors_of_net, (function, _with(objective, numbers), state, *tensors))

        stacks = [stack if which == slice(None) else {name: tensor[which] for name, tensor in stack.items()}
                  for stack in (parameters, replicas.buffers, replicas.state, replicas.numbers)]
        arguments: list[Any] = [*stacks, *batch]
        try:
            return vmap(one)(*arguments)
        except RuntimeError as error:
            if "vmap" not in str(error):
                raise
            raise RuntimeError(
                f"Something of your own cannot be computed for several replicas at once ({first_line(error)}). Do without "
                ".item(), `if` on the values of tensors, .numpy() and torch's random functions; or train one replica at a "
                "time, by n_init=1 or Execution(executor='plain').") from error


def _taken(leaves: dict[str, Tensor]) -> State:
    """The gradients that a backward pass left; nothing stays behind."""
    gradients = {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
    for leaf in leaves.values():
        leaf.grad = None
    return gradients


def _stacked(tensors: list[Tensor]) -> Tensor:
    return tensors[0].unsqueeze(0) if len(tensors) == 1 else torch.stack(tensors)


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


def executor_kind(replicas: Replicas, wanted: str) -> str:
    """What "auto" means for so many replicas of this representation."""
    recurrent = any(isinstance(module, nn.RNNBase) for module in replicas.net.modules())  # which vmap cannot map
    worth_mapping = len(replicas) > 1 and replicas.representation.stacks and not recurrent
    return ("vmap" if worth_mapping else "plain") if wanted == "auto" else wanted


def make_executor(replicas: Replicas, wanted: str, learned: frozenset[str], *, compiled: bool = False) -> Executor:
    if executor_kind(replicas, wanted) == "plain":
        return PlainExecutor(replicas, learned, compiled=compiled)
    return VmapExecutor(replicas, learned)
