"""How a step of many models is executed: replicas as ordinary modules whose parameters are views of the stack
(`PlainExecutor`), or as one functional model mapped over the first axis (`VmapExecutor`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from ...objectives import Objective, State
from ...utils.exceptions import first_line, warn
from .replicas import NETWORK, STATE, Replicas

ForOne = Callable[..., Any]
"""A function of one replica: (net, objective, state, *tensors of that replica) -> tensor or dict of tensors."""


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
            if "vmap" not in str(error) and "Batching rule" not in str(error):
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


def _with(objective: Objective | None, numbers: State) -> Objective | None:
    """The objective with tensors for some of its numbers; `replace` would run checks that tensors under vmap cannot pass, and
    a copy would keep what a `cached_property` made of the numbers of another."""
    if objective is None or not numbers:
        return objective
    made = object.__new__(type(objective))
    for field in dataclasses.fields(objective):  # type: ignore[arg-type]
        object.__setattr__(made, field.name, numbers[field.name] if field.name in numbers else getattr(objective, field.name))
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
