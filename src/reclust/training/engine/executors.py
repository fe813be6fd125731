"""Execute a training step for many replicas: in a loop, or by vmap over the first axis.

Both apply functions of one replica, (net, objective, state, *tensors) -> tensor or dict, to all.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from ...objectives import Objective, State
from ...utils.exceptions import first_line
from .compilation import Compiled
from .replicas import NETWORK, STATE, Replicas

ForOne = Callable[..., Any]


class PlainExecutor:
    """A Python loop over ordinary modules: for one replica, and the slow reference for many."""

    def __init__(self, replicas: Replicas, learned: frozenset[str], *,
                 compiled: bool = False) -> None:
        self.replicas, count = replicas, range(len(replicas))
        self.modules = [replicas.module(i, replicas.working, learned) for i in count]
        # Evaluation would compile the networks again for each size of chunk.
        same = replicas.working is replicas.parameters and not compiled
        self._exact = self.modules if same else [replicas.module(i, replicas.parameters)
                                                 for i in count]
        if compiled:  # the parts of each network: encoder, decoder, projector
            for part in (part for module in self.modules for part in module.children()):
                part._compiled_call_impl = Compiled(part._call_impl, "network")
        self.states = [{name: nn.Parameter(stack[i]) if f"{STATE}/{name}" in learned else stack[i]
                        for name, stack in replicas.state.items()} for i in count]
        self._leaves = [self._leaves_of(i, learned) for i in count]

    def _leaves_of(self, replica: int, learned: frozenset[str]) -> dict[str, Tensor]:
        parameters = self.modules[replica].named_parameters()
        leaves = {**{f"{NETWORK}/{name}": leaf for name, leaf in parameters},
                  **{f"{STATE}/{name}": leaf for name, leaf in self.states[replica].items()}}
        return {name: leaf for name, leaf in leaves.items() if name in learned}

    def gradients(self, function: ForOne, *batch: Tensor) -> tuple[Tensor, State]:
        """Return results (r, m) and gradients of each first result, by name as in `learned`."""
        results, per_replica = [], []
        for i, leaves in enumerate(self._leaves):  # holds one replica's activations
            _pop_gradients(leaves)  # of a step that failed halfway
            if not self.modules[i].training:  # train() is slow: it visits every layer
                self.modules[i].train()
            result = function(self.modules[i], self._objective(i), self.states[i],
                              *(tensor[i] for tensor in batch))
            result[0].backward()
            results.append(result.detach())
            per_replica.append(_pop_gradients(leaves))
        reached = {name: gradient for gradients in per_replica
                   for name, gradient in gradients.items()}
        # A leaf that is not used in one replica's loss has zero gradient there.
        stacks = {name: _stack([gradients[name] if name in gradients else torch.zeros_like(like)
                                for gradients in per_replica]) for name, like in reached.items()}
        return torch.stack(results), stacks

    @torch.no_grad()
    def evaluate(self, function: ForOne, *batch: Tensor, which: slice = slice(None),
                 training: bool = False) -> Any:
        """Return stacked results of some replicas, in eval or train mode, without gradients."""
        results = []
        for j, i in enumerate(range(len(self.modules))[which]):
            results.append(function(self._exact[i].train(training), self._objective(i),
                                    self.states[i], *(tensor[j] for tensor in batch)))
        if isinstance(results[0], dict):
            return {name: torch.stack([result[name] for result in results]) for name in results[0]}
        return torch.stack(results)

    def _objective(self, replica: int) -> Objective | None:
        return self.replicas.objectives[replica] if self.replicas.objectives else None


class VmapExecutor:
    """One functional model mapped over all replicas at once, see `PlainExecutor`."""

    def __init__(self, replicas: Replicas, learned: frozenset[str]) -> None:
        self.replicas, self.caller = replicas, _Caller(replicas.net)
        self._leaves = {name: leaf.requires_grad_(name in learned)
                        for name, (_, leaf) in replicas.learned.items()}

    def gradients(self, function: ForOne, *batch: Tensor) -> tuple[Tensor, State]:
        _pop_gradients(self._leaves)  # of a step that failed halfway
        self.caller.train()
        results = self._map(function, self.replicas.working, batch, slice(None))
        results[:, 0].sum().backward()  # replicas share no parameters, so gradients stay separate
        return results.detach(), _pop_gradients(self._leaves)

    @torch.no_grad()
    def evaluate(self, function: ForOne, *batch: Tensor, which: slice = slice(None),
                 training: bool = False) -> Any:
        self.caller.train(training)
        return self._map(function, self.replicas.parameters, batch, which)

    def _map(self, function: ForOne, parameters: State, batch: tuple[Tensor, ...],
             which: slice) -> Any:
        replicas = self.replicas
        objective = replicas.objectives[0] if replicas.objectives else None

        def call(parameters: State, buffers: State, state: State, numbers: State,
                 *tensors: Tensor) -> Any:
            named = {f"net.{name}": tensor for name, tensor in (parameters | buffers).items()}
            arguments = (function, _with_numbers(objective, numbers), state, *tensors)
            return functional_call(self.caller, named, arguments)

        mapped: list[Any] = [parameters, replicas.buffers, replicas.state, replicas.numbers]
        if which != slice(None):
            mapped = [{name: stack[which] for name, stack in stacks.items()} for stacks in mapped]
        try:
            return vmap(call)(*mapped, *batch)
        except RuntimeError as error:
            if "vmap" not in str(error) and "Batching rule" not in str(error):
                raise
            raise RuntimeError(
                f"A custom part cannot be mapped over replicas ({first_line(error)}). Avoid "
                ".item(), .numpy(), `if` on tensor values and torch's random functions, or train "
                "one replica at a time with n_init=1 or Execution(executor='plain').") from error


Executor = PlainExecutor | VmapExecutor


def _pop_gradients(leaves: dict[str, Tensor]) -> State:
    gradients = {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
    for leaf in leaves.values():
        leaf.grad = None
    return gradients


def _stack(tensors: list[Tensor]) -> Tensor:
    return tensors[0].unsqueeze(0) if len(tensors) == 1 else torch.stack(tensors)


class _Caller(nn.Module):
    """Call a function of the network inside `functional_call`, which only calls modules."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, function: ForOne, *arguments: Any) -> Any:
        return function(self.net, *arguments)


def _with_numbers(objective: Objective | None, numbers: State) -> Objective | None:
    if objective is None or not numbers:
        return objective
    # `replace` would run checks that fail under vmap, and `copy` would keep cached properties.
    changed = object.__new__(type(objective))
    for field in dataclasses.fields(objective):  # type: ignore[arg-type]
        content = numbers[field.name] if field.name in numbers else getattr(objective, field.name)
        object.__setattr__(changed, field.name, content)
    return changed


def executor_kind(replicas: Replicas, wanted: str) -> str:
    """Resolve executor="auto"; vmap cannot map recurrent layers and attention in eval mode."""
    if wanted != "auto":
        return wanted
    maps = not any(isinstance(module, (nn.RNNBase, nn.MultiheadAttention))
                   for module in replicas.net.modules())
    mapped = len(replicas) > 1 and replicas.representation.stacks and maps
    return "vmap" if mapped else "plain"
