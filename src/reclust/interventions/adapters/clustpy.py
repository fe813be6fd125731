"""Interventions in ClustPy's DEC, IDEC and DCN (0.0.3), whose training loops have no callbacks.

`intervene` returns an estimator with copies of its functions that use a subclass of its module.
"""

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar

import torch
from sklearn.base import clone
from torch import Tensor, nn

from .. import BRB, Intervention, Target

E = TypeVar("E")
KNOWN = {"_dec": "_DEC_Module", "_dcn": "_DCN_Module"}  # training function -> class of its module


def intervene(estimator: E, intervention: Intervention = BRB(), *, seed: int = 0,
              encoder: Callable[[Any], nn.Module] = lambda network: network.encoder) -> E:
    """Return an unfitted copy of a ClustPy DEC, IDEC or DCN that intervenes between epochs."""
    kind: Any = type(estimator)
    trainer = next((name for name in KNOWN if name in kind.fit.__code__.co_names), None)
    if trainer is None:
        raise TypeError(f"intervene needs ClustPy's DEC, IDEC or DCN, got {kind.__name__}.")
    function, name = kind.fit.__globals__[trainer], KNOWN[trainer]

    def act(epoch: int, memory: dict[str, Tensor], module: Any, network: Any, loader: Any,
            optimizer: torch.optim.Optimizer) -> None:
        if intervention.fires(epoch):
            target = Target.of(encoder(network), module.centers, optimizer, seed=seed,
                               memory=memory, embed=lambda: _embeddings(module, network, loader))
            if intervention(epoch, target) and trainer == "_dcn":  # keeps labels between batches
                module.labels.copy_(module.predict_hard(target.embed()))

    module = _with_action(function.__globals__[name], act)
    fit = _with_globals(kind.fit, {trainer: _with_globals(function, {name: module})})
    subclass = type(kind.__name__, (kind,), {"fit": fit, "__doc__": kind.__doc__})
    return subclass(**clone(estimator).get_params(deep=False))


@torch.no_grad()
def _embeddings(module: Any, network: Any, loader: Any) -> Tensor:
    view = 2 if module.augmentation_invariance else 1  # batches: indices, (augmented,) samples
    batches = torch.utils.data.DataLoader(loader.dataset, batch_size=loader.batch_size,
                                          collate_fn=loader.collate_fn)
    z = torch.cat([network.encode(batch[view].to(module.centers.device)) for batch in batches])
    return z.to(module.centers.dtype)  # float64 after scikit-learn's k-means


def _with_globals(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    """Copy a function, with other objects under some of its global names."""
    copy = FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__,
                        function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _with_action(kind: Any, act: Callable[..., None]) -> type[nn.Module]:
    """Return a subclass of the module whose `fit` calls `act` before each pass over the data."""

    def fit(self: Any, neural_network: nn.Module, trainloader: Any, *rest: Any) -> Any:
        optimizer = next(x for x in rest if isinstance(x, torch.optim.Optimizer))
        memory: dict[str, Tensor] = {}
        loader = _Loader(trainloader, lambda epoch: act(epoch, memory, self, neural_network,
                                                        trainloader, optimizer))
        return kind.fit(self, neural_network, loader, *rest)

    return type(kind.__name__, (kind,), {"fit": fit})


class _Loader:
    """Batches that call a function with the epoch before each pass."""

    def __init__(self, batches: Any, on_epoch: Callable[[int], None]) -> None:
        self.batches, self.on_epoch, self.epoch = batches, on_epoch, 0

    def __iter__(self) -> Iterator[Any]:
        self.on_epoch(self.epoch)
        self.epoch += 1
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)
