"""Reclustering: new centres from the current embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor

from ... import draws
from ...utils.values import check_int, value
from ..steps import Step
from ..target import Target
from .kmeans import KMeans

AT_ONCE = 2**25
"""Numbers in the embeddings of several targets that are reclustered together; methods need several times as much memory."""


class Method(Protocol):
    """A way to find centres: (z (..., n, d), k, key (...)) -> (..., k, d)."""

    def __call__(self, z: Tensor, k: int, key: Tensor) -> Tensor: ...


def random_rows(key: Tensor, n: int, m: int) -> Tensor:
    return draws.permutation(key, n)[..., :m]


def _first_rows(key: Tensor, n: int, m: int) -> Tensor:
    return torch.arange(m, device=key.device).expand(*key.shape, m)


_PICKS = {"random": random_rows, "first": _first_rows}


@dataclass(frozen=True)
class OnSamples(Step):
    """A step that looks at the embeddings of at most `subsample` samples (None: all of them).

    rows: "random" draws the subsample anew each time; "first" takes the first rows, which made the published numbers.
    """

    _: KW_ONLY
    subsample: int | None = 10_000
    rows: Literal["random", "first"] = "random"
    part: ClassVar[str] = "clustering"

    def __post_init__(self) -> None:
        if self.subsample is not None:
            object.__setattr__(self, "subsample", check_int("subsample", self.subsample, 1))
        if self.rows not in _PICKS:
            raise ValueError(f"rows must be 'random' or 'first', got {self.rows!r}.")

    def embed(self, target: Target) -> Tensor:
        """(..., m, d); the same samples each time within one firing."""
        # Fewer samples than clusters cannot be clustered: a smaller subsample would be a trap, not a saving.
        limit = None if self.subsample is None else max(self.subsample, target.centers.shape[-2])
        return target.embed_some(limit, _PICKS[self.rows])


@value
class Recluster(OnSamples):
    """Centres by `method` on the current embeddings."""

    method: Method = KMeans()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_method(self.method)

    def __call__(self, target: Target) -> None:
        place_centers(self.method, [target], [self.embed(target)])

    def at_once(self, targets: Sequence[Target]) -> None:
        """In one call of the method, as far as memory allows: the replicas of one target do not fill a GPU."""
        together: list[tuple[Target, Tensor]] = []
        for target in targets:
            z = self.embed(target)
            if together and z.numel() + sum(other.numel() for _, other in together) > AT_ONCE:
                place_centers(self.method, *zip(*together, strict=True))
                together = []
            together.append((target, z))
        place_centers(self.method, *zip(*together, strict=True))


def check_method(method: Any) -> None:
    if isinstance(method, type) or not callable(method):
        name = method.__name__ if isinstance(method, type) else "KMeans"
        raise TypeError(f"method must be a callable (z, k, key) -> centers, got {method!r}: write {name}().")


def place_centers(method: Method, targets: Sequence[Target], embeddings: Sequence[Tensor]) -> None:
    """The centres of these targets become what the method finds in the embeddings of each."""
    z, key = _joined(embeddings), _joined([target.key for target in targets])
    sound = z.isfinite().flatten(-2).all(-1)
    if z.ndim > 2 and sound.any() and not sound.all():  # a replica that failed must not stop the others
        z = z.where(sound[:, None, None], z[sound.nonzero()[0]])
    wanted = (*z.shape[:-2], *targets[0].centers.shape[-2:])
    found = method(z, wanted[-2], draws.fold(key, "recluster"))
    if not isinstance(found, Tensor) or found.shape != wanted:
        got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ValueError(f"{method!r} gave {got} for embeddings of shape {tuple(z.shape)}: it must give a tensor of centres, "
                         f"{wanted}. In `train` the first axis of both is that of replicas.")
    if (sound & ~found.isfinite().flatten(-2).all(-1)).any():
        raise ValueError(f"{method!r} gave centres that are not finite for embeddings that are: the mean of an empty "
                         "cluster is no number, for example. Give a sample instead.")
    if not sound.all():
        found = found.where(sound[..., None, None], torch.nan)
    own = [found] if len(targets) == 1 else found.split([len(target.centers) for target in targets])
    for target, centers in zip(targets, own, strict=True):
        target.centers.copy_(centers)


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """Along the axis of replicas; a single model, which has none, is alone."""
    return torch.cat(list(parts)) if len(parts) > 1 else parts[0]


@value
class RandomCenters:
    """Samples drawn at random as a reclustering method, k different ones."""

    def __call__(self, z: Tensor, k: int, key: Tensor) -> Tensor:
        rows = draws.permutation(draws.fold(key, "random centers"), z.shape[-2])[..., :k]
        return z.take_along_dim(rows.unsqueeze(-1), -2)
