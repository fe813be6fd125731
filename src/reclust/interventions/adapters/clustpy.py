"""Interventions in ClustPy's DEC, IDEC and DCN (0.0.3), whose training loops have no place for them.

A ClustPy estimator calls a function that makes a module and calls the module's `fit`, which holds the loop. Here the estimator
gets copies of these functions in which the module's name means a child of it. ClustPy's own classes stay as they are, so that
estimators with and without interventions live side by side, in threads too, and ClustPy is not even imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar

import torch
from sklearn.base import clone
from torch import Tensor, nn

from .. import BRB, Intervention, Target

E = TypeVar("E")


def _keep_nothing(module: Any, z: Tensor) -> None:
    """DEC's module knows its centres and nothing else."""


def _relabel(module: Any, z: Tensor) -> None:
    """DCN goes by labels (n,) that it noted batch by batch, of centres that are no more."""
    module.labels.copy_(module.predict_hard(z))


KNOWN = {"_dec": ("_DEC_Module", _keep_nothing), "_dcn": ("_DCN_Module", _relabel)}
"""The functions that train; the modules they make; what these must be told after a firing, with the new embeddings (n, d)."""


def intervene(estimator: E, intervention: Intervention = BRB(), *, seed: int = 0,
              encoder: Callable[[Any], nn.Module] = lambda network: network.encoder) -> E:
    """An unfitted copy of a ClustPy DEC, IDEC or DCN in which the intervention happens between epochs of clustering.

    seed: of the reset's and the reclustering's draws. encoder: the part of the network whose layers may be reset.
    """
    kind: Any = type(estimator)
    trainer = next((name for name in KNOWN if name in kind.fit.__code__.co_names), None)
    if trainer is None:
        raise TypeError(f"intervene needs ClustPy's DEC, IDEC or DCN, got {kind.__name__}.")
    function, (name, afterwards) = kind.fit.__globals__[trainer], KNOWN[trainer]

    def act(epoch: int, memory: dict[str, Tensor], module: Any, network: Any, loader: Any,
            optimizer: torch.optim.Optimizer) -> None:
        if intervention.fires(epoch):
            target = Target.of(encoder(network), module.centers, optimizer, seed=seed, memory=memory,
                               embed=lambda: _embeddings(module, network, loader))
            if intervention(epoch, target):
                afterwards(module, target.embed())

    ours = _between_epochs(function.__globals__[name], act)
    fit = _meaning(kind.fit, {trainer: _meaning(function, {name: ours})})
    made = type(kind.__name__, (kind,), {"fit": fit, "__doc__": kind.__doc__})
    return made(**clone(estimator).get_params(deep=False))


@torch.no_grad()
def _embeddings(module: Any, network: Any, loader: Any) -> Tensor:
    """(n, d) of all samples, in the order of their numbers."""
    view = 2 if module.augmentation_invariance else 1  # behind the samples' numbers, and behind their augmented views
    batches = torch.utils.data.DataLoader(loader.dataset, batch_size=loader.batch_size, collate_fn=loader.collate_fn)
    z = torch.cat([network.encode(batch[view].to(module.centers.device)) for batch in batches])
    return z.to(module.centers.dtype)  # which is float64 where scikit-learn's k-means found them so


def _meaning(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    """The same function, to which some global names mean something else."""
    made = FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__, function.__defaults__,
                        function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _between_epochs(kind: Any, act: Callable[..., None]) -> type[nn.Module]:
    """The module, but each pass of its `fit` over the batches begins with
    `act(epoch, memory, module, network, loader, optimizer)`."""

    def fit(self: Any, neural_network: nn.Module, trainloader: Any, *rest: Any) -> Any:
        optimizer = next(one for one in rest if isinstance(one, torch.optim.Optimizer))
        memory: dict[str, Tensor] = {}
        started = _Epochs(trainloader, lambda epoch: act(epoch, memory, self, neural_network, trainloader, optimizer))
        return kind.fit(self, neural_network, started, *rest)

    return type(kind.__name__, (kind,), {"fit": fit})


class _Epochs:
    """Batches again and again; before each time somebody is told how often it was before."""

    def __init__(self, batches: Any, tell: Callable[[int], None]) -> None:
        self.batches, self.tell, self.epoch = batches, tell, 0

    def __iter__(self) -> Iterator[Any]:
        self.tell(self.epoch)
        self.epoch += 1
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)
