"""What an intervention may see and change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from .. import draws
from ..data.augmentation.affine import Augmentation
from ..objectives.base import nearest
from ..representations.base import encoder_blocks
from ..utils.timer import Timer
from ..utils.values import check_int


@dataclass(frozen=True)
class Layer:
    """One layer's parameters, (..., *shape) each, to be written in place. `module` only tells what kind of layer it is."""

    name: str
    module: nn.Module
    parameters: Mapping[str, Tensor]


Blocks = Mapping[str, tuple[Layer, ...]]


@dataclass(frozen=True)
class Peers:
    """What replicas that train side by side can do beyond what each can do alone."""

    become: Callable[[Sequence[int]], None]
    """For each of the r replicas, the number of the one whose copy it becomes, in place: weights, buffers, what its objective
    keeps and what the optimizer remembers."""
    embed_views: Callable[[Tensor, Tensor, Augmentation | None], Tensor]
    """Rows (m,), a key () and an augmentation, None for that of training -> embeddings of a random view of each of these
    samples, (r, m, d)."""
    only: Callable[[slice], Target]
    """The target of some of the r replicas."""


MOMENTS = frozenset({"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "exp_inf", "momentum_buffer", "square_avg", "grad_avg",
                     "acc_delta", "sum", "prev", "row_var", "col_var", "variance"})
"""What PyTorch's optimizers call their means of gradients and of their squares. Step sizes and averages of weights are none."""


@dataclass(frozen=True)
class _Kept(Sequence[Tensor]):
    """What an optimizer keeps for the centres under these names, read when it is asked for: a target may be made before there
    is anything, and optimizers replace what they keep when they load it."""

    optimizer: torch.optim.Optimizer | None
    centers: Tensor
    names: Collection[str]

    def __getitem__(self, index: Any) -> Any:
        return self._now()[index]

    def __len__(self) -> int:
        return len(self._now())

    def _now(self) -> list[Tensor]:
        state: dict[str, Any] = {} if self.optimizer is None else self.optimizer.state.get(self.centers, {})
        return [entry for name, entry in state.items() if name in self.names and isinstance(entry, Tensor)]


@dataclass
class Target:
    """All that an intervention may touch, for one model or for several stacked on leading axes.

    Shapes: centers (..., k, d), key (...), moments and step counts whatever the optimizer keeps for the centres. All of it
    is written in place and nothing is replaced, so the owner's tensors, optimizer and captured graphs stay valid.
    """

    blocks: Mapping[str, tuple[Layer, ...]]
    centers: Tensor
    key: Tensor
    embedder: Callable[[Tensor | None], Tensor]
    """Rows (..., m), or None for all -> embeddings (..., m, d), in eval mode and without gradients."""
    assigner: Callable[[Tensor], Tensor]
    n_samples: int | None = None
    moments: Sequence[Tensor] = ()
    step_counts: Sequence[Tensor] = ()
    clock: Timer = field(default_factory=Timer)
    labels: Tensor | None = None
    """A note between the steps of one firing, (..., n): the labels from before the first of them."""
    copies: Tensor | None = None
    """Another such note, (...): which replicas have just become copies of others; None where nothing is copied."""
    peers: Peers | None = None
    """None in somebody's own loop, which trains one model."""
    memory: dict[str, Tensor] | None = None
    """Notes between epochs, (..., *shape) each, of interventions that go by more than the epoch. Checkpoints keep them."""

    @classmethod
    def of(
        cls,
        encoder: nn.Module,
        centers: Tensor,
        optimizer: torch.optim.Optimizer | None = None,
        *,
        embed: Callable[[], Tensor],
        blocks: Mapping[str, nn.Module] | None = None,
        seed: int = 0,
        memory: dict[str, Tensor] | None = None,
        moments: Collection[str] = MOMENTS,
    ) -> Target:
        """The target in somebody's own training loop: one model, `centers` (k, d), `embed()` -> (n, d) of all samples.

        Without `blocks` every layer of the encoder is a block of its own, the last one 'embedding'. memory: a dict, the same
        in every epoch, for interventions that keep notes, as `WhenSettled` does. moments: what the optimizer calls its means of
        gradients, where it is none of PyTorch's.

        Nobody checks before such a loop begins, so interventions do whenever they are called, before they change anything.
        """
        _check_own_loop(encoder, centers, optimizer, embed)

        def all_rows(rows: Tensor | None) -> Tensor:
            modes = [(module, module.training) for module in encoder.modules()]
            encoder.eval()
            try:
                z = embed()
            finally:
                for module, training in modes:
                    module.training = training
            if not isinstance(z, Tensor) or z.ndim != 2 or z.shape[1] != centers.shape[1]:
                given = tuple(z.shape) if isinstance(z, Tensor) else type(z).__name__
                raise ValueError(f"embed() gave {given}: it must give the embeddings of all samples as a tensor (n, "
                                 f"{centers.shape[1]}), as wide as the centres.")
            z = z.detach().to(torch.promote_types(centers.dtype, torch.float32))  # halves are too coarse to find centres
            if not z.isfinite().all():
                raise ValueError("embed() gave embeddings that are not finite, of which no centres can be made. Training has "
                                 "diverged: try a smaller lr, clip gradients, and check the scale of the data.")
            return z if rows is None else z[rows]

        return cls(
            blocks=_blocks_of(encoder, blocks),
            centers=centers,
            key=draws.key(check_int("seed", seed, 0), device=centers.device),
            embedder=all_rows,
            assigner=lambda z: nearest(z, centers.detach().to(z.dtype)),
            moments=_Kept(optimizer, centers, moments),
            step_counts=_Kept(optimizer, centers, ("step",)),
            memory=memory,
        )

    def at(self, *values: int | str) -> Target:
        """The same target with a key of its own for this epoch or step."""
        return replace(self, key=draws.fold(self.key, *values))

    def embed(self, rows: Tensor | None = None) -> Tensor:
        """(..., n, d), or (..., m, d) for rows (..., m)."""
        with self.clock("embedding"):
            return self.embedder(rows)

    def embed_some(self, limit: int | None, pick: Callable[[Tensor, int, int], Tensor]) -> Tensor:
        """Embeddings of at most `limit` samples, (..., m, d); `pick(key, n, m)` says which."""
        z = None
        n = self.n_samples
        if n is None:  # somebody's own loop: only its embeddings tell how many samples there are
            z = self.embed()
            n = z.shape[-2]
        if limit is None or limit >= n:
            return self.embed() if z is None else z
        rows = pick(draws.fold(self.key, "subsample"), n, limit)
        return self.embed(rows) if z is None else z[rows]


def _check_own_loop(encoder: Any, centers: Any, optimizer: Any, embed: Any) -> None:
    """What a loop of one's own gives, before anything is made of it."""
    for name, given, kind in (("encoder", encoder, nn.Module), ("centers", centers, Tensor)):
        if not isinstance(given, kind):
            raise TypeError(f"{name} must be a {kind.__name__}, got {type(given).__name__}.")
    if centers.ndim != 2 or not centers.is_floating_point():
        raise ValueError(f"centers must be floats of shape (k, d), got {centers.dtype} of shape {tuple(centers.shape)}.")
    if not callable(embed):
        raise TypeError(f"embed must be a function that gives the embeddings of all samples, got {type(embed).__name__}: write "
                        "embed=lambda: encoder(X).")
    if optimizer is None:
        return
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer must be the one that moves the centres, or None, got {optimizer!r}.")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("LBFGS remembers gradients of all parameters in one piece, and cannot forget those of the centres: "
                         "move these by another optimizer, or clear optimizer.state at each reset and give none here.")
    if not any(own is centers for group in optimizer.param_groups for own in group["params"]):
        raise ValueError("The optimizer does not move these centres, so it has no momentum of theirs to reset: pass the very "
                         "Parameter that it was given, or no optimizer where something else moves them.")


def _blocks_of(encoder: nn.Module, blocks: Mapping[str, nn.Module] | None) -> dict[str, tuple[Layer, ...]]:
    if blocks is None:
        named = {block: {name: encoder.get_submodule(name) for name in names}
                 for block, names in encoder_blocks(encoder).items()}
    else:
        named = {block: {f"{block}.{name}": layer for name, layer in module.named_modules()}
                 for block, module in blocks.items()}
    made = {
        block: tuple(
            # torch.compile and DataParallel put a word before the names that noise is drawn by.
            Layer(name.removeprefix("_orig_mod.").removeprefix("module."), layer,
                  {leaf: own for leaf, own in layer.named_parameters(recurse=False) if own.requires_grad})
            for name, layer in members.items() if next(layer.parameters(recurse=False), None) is not None
        )
        for block, members in named.items()
    }
    _check_parameters(made)
    return made


def _check_parameters(blocks: Blocks) -> None:
    owner: dict[int, str] = {}
    for block, members in blocks.items():
        for layer in members:
            for name, own in layer.parameters.items():
                if is_lazy(own):
                    raise ValueError(f"The weights of {layer.name} do not exist yet: run a batch through the encoder first.")
                if own.is_complex():
                    raise ValueError(f"{name} of {layer.name} is complex, and noise is real: keep it as torch.view_as_real(…), "
                                     "or leave it out by blocks=.")
                other = owner.setdefault(id(own), f"{block}/{layer.name}.{name}")
                if other != f"{block}/{layer.name}.{name}":
                    raise ValueError(f"{other} and {block}/{layer.name}.{name} are one tensor, which would be reset twice: "
                                     "give blocks= in which it is only once.")
