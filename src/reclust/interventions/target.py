"""The target of an intervention: what it may see and change."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .. import draws
from ..data.augmentation.affine import Augmentation
from ..objectives.base import nearest
from ..representations.base import encoder_blocks
from ..utils.device import Timer
from ..utils.values import check_int


@dataclass(frozen=True)
class Layer:
    """The parameters of a layer, (..., *shape) each; `module` only tells its kind."""

    name: str
    module: nn.Module
    parameters: Mapping[str, Tensor]


Blocks = Mapping[str, tuple[Layer, ...]]
Clock = Callable[[str], AbstractContextManager[None]]


@dataclass(frozen=True)
class Peers:
    """Operations on r replicas that train side by side."""

    # Make each replica a copy of the one whose number is given for it, optimizer included.
    become: Callable[[Sequence[int]], None]
    # Embed augmented samples: rows (m,), key (), augmentation or None -> (r, m, d).
    embed_views: Callable[[Tensor, Tensor, Augmentation | None], Tensor]
    only: "Callable[[slice], Target]"  # the target of some of the replicas


# Names under which PyTorch's optimizers keep means of gradients and of their squares.
MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "exp_inf", "momentum_buffer", "square_avg",
           "grad_avg", "acc_delta", "sum", "prev", "row_var", "col_var", "variance")


@dataclass(frozen=True)
class _OptimizerState:
    """An optimizer's tensors for the centers, looked up at each access as they may be replaced."""

    optimizer: Optimizer | None
    centers: Tensor
    names: Collection[str]

    def __iter__(self) -> Iterator[Tensor]:
        state = {} if self.optimizer is None else self.optimizer.state.get(self.centers, {})
        return (entry for name, entry in state.items()
                if name in self.names and isinstance(entry, Tensor))


@dataclass
class Target:
    """Everything an intervention may see and change, for one model or for stacked replicas.

    Tensors are written in place and never replaced. In a custom loop create it with `Target.of`.

    Parameters
    ----------
    blocks : mapping of str to tuple of Layer
        Layers of the encoder by block.
    centers : Tensor of shape (..., k, d)
        Cluster centers.
    key : Tensor of shape (...)
        Key for random draws, see `reclust.draws`.
    embedder, assigner : callable
        Rows (..., m), or None for all -> embeddings (..., m, d) -> labels (..., m).
    n_samples : int, optional
        Number of samples, if known.
    moments, step_counts : iterables of Tensor
        What the optimizer keeps for the centers.
    clock : callable
        Returns a context manager that records the time of a named part.
    labels, copies, memory : Tensor or dict of Tensor, optional
        Notes for later steps (labels, copies) and later epochs (memory).
    peers : Peers, optional
        Operations between replicas; None in a custom loop.

    Examples
    --------
    >>> import torch
    >>> from reclust import BRB, Target
    >>> X = torch.randn(50, 4)
    >>> encoder = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> centers = torch.zeros(3, 2)
    >>> target = Target.of(encoder, centers, embed=lambda: encoder(X))
    >>> BRB(interval=5)(5, target)
    True
    """

    blocks: Blocks
    centers: Tensor
    key: Tensor
    embedder: Callable[[Tensor | None], Tensor]
    assigner: Callable[[Tensor], Tensor]
    n_samples: int | None = None
    moments: Iterable[Tensor] = ()
    step_counts: Iterable[Tensor] = ()
    clock: Clock = field(default_factory=Timer)
    labels: Tensor | None = None
    copies: Tensor | None = None
    peers: Peers | None = None
    memory: dict[str, Tensor] | None = None

    @classmethod
    def of(cls, encoder: nn.Module, centers: Tensor, optimizer: Optimizer | None = None, *,
           embed: Callable[[], Tensor], blocks: Mapping[str, nn.Module] | None = None,
           seed: int = 0, memory: dict[str, Tensor] | None = None,
           moments: Collection[str] = MOMENTS) -> "Target":
        """Make the target of one model in a custom training loop.

        Parameters
        ----------
        encoder : Module
            Network whose layers may be reset.
        centers : Tensor of shape (k, d)
            Cluster centers, changed in place.
        optimizer : Optimizer, optional
            Optimizer that trains the centers.
        embed : callable
            Returns the embeddings (n, d) of all samples.
        blocks : mapping of str to Module, optional
            Named parts of the encoder. By default each layer is a block, the last 'embedding'.
        seed : int, default=0
            Seed of random draws.
        memory : dict, optional
            The same dict in every epoch, for interventions such as `WhenSettled`.
        moments : collection of str
            Names of moments in the state of an optimizer that is not PyTorch's.
        """
        groups = [] if optimizer is None else optimizer.param_groups
        if groups and not any(x is centers for group in groups for x in group["params"]):
            raise ValueError("The optimizer does not train these centers: pass its Parameter.")

        def embedder(rows: Tensor | None) -> Tensor:
            modes = [(module, module.training) for module in encoder.modules()]
            encoder.eval()
            try:
                z = embed()
            finally:
                for module, training in modes:
                    module.training = training
            if z.ndim != 2 or z.shape[1:] != centers.shape[1:]:
                raise ValueError(f"embed() returned shape {tuple(z.shape)}, expected (n, d) for "
                                 f"centers of shape {tuple(centers.shape)}.")
            # Half precision is too coarse to find centers.
            z = z.detach().to(torch.promote_types(centers.dtype, torch.float32))
            if not z.isfinite().all():
                raise ValueError("embed() returned NaN or infinite values, training has diverged: "
                                 "try a smaller lr, and check the scale of the data.")
            return z if rows is None else z[rows]

        return cls(
            _blocks_of(encoder, blocks), centers,
            draws.key(check_int("seed", seed, 0), device=centers.device), embedder,
            assigner=lambda z: nearest(z, centers.detach().to(z.dtype)), memory=memory,
            moments=_OptimizerState(optimizer, centers, moments),
            step_counts=_OptimizerState(optimizer, centers, ("step",)))

    def at(self, *values: int | str) -> "Target":
        """Return a copy whose key is derived from these values, such as the epoch."""
        return replace(self, key=draws.fold(self.key, *values))

    def embed(self, rows: Tensor | None = None) -> Tensor:
        """Embed all samples, (..., n, d), or those in rows (..., m)."""
        with self.clock("embedding"):
            return self.embedder(rows)

    def embed_some(self, limit: int | None, pick: Callable[[Tensor, int, int], Tensor]) -> Tensor:
        """Embed at most `limit` samples, (..., m, d), chosen by `pick(key, n, m)`."""
        key = draws.fold(self.key, "subsample")
        if self.n_samples is None:  # a custom loop, where only the embeddings tell the number
            z = self.embed()
            return z if limit is None or limit >= len(z) else z[pick(key, len(z), limit)]
        if limit is None or limit >= self.n_samples:
            return self.embed()
        return self.embed(pick(key, self.n_samples, limit))


def _blocks_of(encoder: nn.Module, blocks: Mapping[str, nn.Module] | None) -> Blocks:
    if blocks is None:
        named = {block: {name: encoder.get_submodule(name) for name in names}
                 for block, names in encoder_blocks(encoder).items()}
    else:
        named = {block: {f"{block}.{name}": layer for name, layer in module.named_modules()}
                 for block, module in blocks.items()}
    return {block: tuple(_layer(name, layer) for name, layer in members.items()
                         if next(layer.parameters(recurse=False), None) is not None)
            for block, members in named.items()}


def _layer(name: str, module: nn.Module) -> Layer:
    # Noise is drawn by name, and torch.compile and DataParallel prefix names.
    name = name.removeprefix("_orig_mod.").removeprefix("module.")
    parameters = module.named_parameters(recurse=False)
    return Layer(name, module, {leaf: parameter for leaf, parameter in parameters
                                if parameter.requires_grad})
