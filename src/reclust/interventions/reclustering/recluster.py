"""Reclustering: new centers from the current embeddings, or as means of known groups."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ... import draws
from ...utils.values import choice, integer, value
from ..steps import Step
from ..target import Target
from .kmeans import KMeans

# A function that finds centers: (z (..., n, d), k, key (...)) -> (..., k, d).
Method = Callable[[Tensor, int, Tensor], Tensor]


def group_means(z: Tensor, labels: Tensor, centers: Tensor) -> Tensor:
    """Average z (..., n, d) by label (..., n); unused labels keep their center (..., k, d)."""
    clusters = torch.arange(centers.shape[-2], device=z.device).unsqueeze(-1)
    member = (labels.unsqueeze(-2) == clusters).to(z.dtype)
    sizes = member.sum(-1, keepdim=True)
    with torch.autocast(z.device.type, enabled=False):
        sums = member @ z
    return torch.where(sizes > 0, sums / sizes.clamp(min=1), centers)


def random_rows(key: Tensor, n: int, m: int) -> Tensor:
    return draws.permutation(key, n)[..., :m]


def _first_rows(key: Tensor, n: int, m: int) -> Tensor:
    return torch.arange(m, device=key.device).expand(*key.shape, m)


@dataclass(frozen=True)
class OnSamples(Step):
    """Base of steps that use the embeddings of a subsample; see `Recluster` for the fields."""

    _: KW_ONLY
    subsample: int | None = integer(default=10_000, least=1, optional=True)
    rows: Literal["random", "first"] = choice("random", "first", default="random")
    part: ClassVar[str] = "clustering"

    def embed(self, target: Target) -> Tensor:
        """Return embeddings (..., m, d), of the same samples each time within one firing."""
        limit = None if self.subsample is None else max(self.subsample, target.centers.shape[-2])
        return target.embed_some(limit, random_rows if self.rows == "random" else _first_rows)


@value
class Recluster(OnSamples):
    """Set centers to those that a clustering method finds in the current embeddings.

    Parameters
    ----------
    method : callable, default=KMeans()
        Function of embeddings (..., n, d), k and keys (...) that returns centers (..., k, d).
    subsample : int, optional, default=10_000
        Maximum number of samples to cluster; None for all.
    rows : {"random", "first"}, default="random"
        Draw the subsample anew each time, or take the first rows as in the published runs.

    Examples
    --------
    >>> from reclust import Every, KMeans, Recluster
    >>> intervention = Every(10, (Recluster(KMeans(n_init=3)),))
    """

    method: Method = KMeans()

    def __post_init__(self) -> None:
        if isinstance(self.method, type) or not callable(self.method):
            raise TypeError(f"method must be a function such as KMeans(), got {self.method!r}.")

    def __call__(self, target: Target) -> None:
        place_centers(self.method, target, self.embed(target))


def place_centers(method: Method, target: Target, z: Tensor) -> None:
    """Set the centers to those that the method finds in embeddings (..., m, d)."""
    finite = z.isfinite().flatten(-2).all(-1)
    if z.ndim > 2 and not finite.any():
        target.centers.fill_(torch.nan)
        return
    if z.ndim > 2 and not finite.all():  # failed replicas must not stop others
        z = z.where(finite[:, None, None], z[finite.nonzero()[0]])
    shape = target.centers.shape
    centers = method(z, shape[-2], draws.fold(target.key, "recluster"))
    if centers.shape != shape:
        raise ValueError(f"{method!r} returned centers of shape {tuple(centers.shape)} for "
                         f"embeddings of shape {tuple(z.shape)}, expected {tuple(shape)}.")
    if (finite & ~centers.isfinite().flatten(-2).all(-1)).any():
        raise ValueError(f"{method!r} returned centers that are not finite.")
    if not finite.all():
        centers = centers.where(finite[..., None, None], torch.nan)
    target.centers.copy_(centers)


@value
class RandomCenters:
    """Reclustering method: k samples drawn at random, all different unless "with replacement"."""

    drawn: Literal["different", "with replacement"] = choice(
        "different", "with replacement", default="different")

    def __call__(self, z: Tensor, k: int, key: Tensor) -> Tensor:
        key, n = draws.fold(key, "random centers"), z.shape[-2]
        if self.drawn == "different":
            rows = draws.permutation(key, n)[..., :k]
        else:
            rows = draws.integers(key, n, (k,))
        return z.take_along_dim(rows.unsqueeze(-1), -2)


@value
class NativeRecluster(OnSamples):
    """Set centers to the means of the objective's current hard assignment."""

    def __call__(self, target: Target) -> None:
        z = self.embed(target)
        target.centers.copy_(group_means(z, target.assigner(z), target.centers))


@value
class RecomputeCenters(Step):
    """Keep the labels from before the first step, and set centers to their current means."""

    part: ClassVar[str] = "clustering"

    def prepare(self, target: Target) -> None:
        with target.clock(self.part):
            target.labels = target.assigner(target.embed())

    def __call__(self, target: Target) -> None:
        assert target.labels is not None, "call prepare(target) before the first step"
        target.centers.copy_(group_means(target.embed(), target.labels, target.centers))
