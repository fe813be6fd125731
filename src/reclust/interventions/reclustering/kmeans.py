"""Batched k-means: greedy k-means++ seeding and Lloyd's iterations on (..., n, d), on any device.

Problems and restarts run together, in blocks that bound the memory. Draws come from each problem's
key, so a problem ends the same alone or among others, to rounding.

Shapes: p problems (the leading axes, flattened), s restarts, n samples, d features, k clusters; a
*row* is one restart of one problem. Samples are centered and have a column of ones, (p, n, d + 1):
one product with (-2 c, |c|²) is then the squared distance to a center less |x|², and one with the
memberships gives sums and sizes. Allowing TF32 for products decides near ties at random.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

from ... import draws
from ...utils.values import integer, number, value


class _Limits(NamedTuple):
    block: int  # rows × n × k run together: bounds the memory
    piece: int  # distances in one product: on a CPU up to twice as fast if they fit the cache
    look: int  # iterations between two checks of convergence, which stall a GPU


_CPU, _GPU = _Limits(2**25, 2**19, 1), _Limits(2**27, 2**27, 8)


def _limits(device: torch.device) -> _Limits:
    return _CPU if device.type == "cpu" else _GPU


class KMeansFit(NamedTuple):
    """Best restarts, the first among equals: centers (..., k, d), labels (..., n), inertia."""

    centers: Tensor
    labels: Tensor
    inertia: Tensor


@value
class KMeans:
    """Batched k-means, the default method of `Recluster`.

    Parameters
    ----------
    n_init : int, default=10
        Number of restarts, of which the one with the lowest inertia is kept.
    max_iter, tol : int and float, default=300, 1e-4
        Iterations of a restart at most, and the squared movement at which it stops, relative to the
        mean variance of a feature.

    Examples
    --------
    >>> import torch
    >>> from reclust import KMeans, draws
    >>> z = torch.randn(2, 50, 3)  # two problems
    >>> KMeans(n_init=3)(z, 4, draws.key([0, 1])).shape
    torch.Size([2, 4, 3])
    """

    n_init: int = integer(default=10, least=1)
    max_iter: int = integer(default=300, least=1)
    tol: float = number(default=1e-4, least=0)

    def __call__(self, z: Tensor, k: int, key: Tensor) -> Tensor:
        return self.fit(z, k, key).centers

    def fit(self, z: Tensor, k: int, key: Tensor) -> KMeansFit:
        with torch.no_grad(), torch.autocast(z.device.type, enabled=False):
            points, mean, keys = _prepare(z, key, self.n_init)
            (*lead, n, d), limits = z.shape, _limits(z.device)
            rows = max(1, limits.block // (n * k))
            problems = max(1, limits.piece // (self.n_init * n * k))
            fits = [reduce(_better, self._restarts(x, k, restart_keys.split(rows, dim=1)))
                    for x, restart_keys in _together(problems, points, keys)]
            centers, labels, inertia = (torch.cat(field) for field in zip(*fits, strict=True))
            centers = (centers + mean).to(z.dtype).reshape(*lead, k, d)
        return KMeansFit(centers, labels.reshape(*lead, n), inertia.to(points.dtype).reshape(lead))

    def _restarts(self, points: Tensor, k: int, keys: tuple[Tensor, ...]) -> Iterator[KMeansFit]:
        """Yield the fit of each restart; keys (p, s) come in groups that fit into memory."""
        for group in keys:
            centers = _lloyd(points, _seed(points, k, group), max_iter=self.max_iter, tol=self.tol)
            for start in centers.unbind(1):
                yield _judge(points, start)


@value
class KMeansPlusPlus:
    """Reclustering method: k-means++ seeding alone, as in the first restart of `KMeans`."""

    def __call__(self, z: Tensor, k: int, key: Tensor) -> Tensor:
        with torch.no_grad(), torch.autocast(z.device.type, enabled=False):
            points, mean, keys = _prepare(z, key, n_init=1)
            *lead, n, d = z.shape
            parts = _together(max(1, _limits(z.device).block // (n * k)), points, keys)
            centers = torch.cat([_seed(x, k, seed_keys)[:, 0] for x, seed_keys in parts])
            return (centers + mean).to(z.dtype).reshape(*lead, k, d)


def _prepare(z: Tensor, key: Tensor, n_init: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return samples with ones (p, n, d + 1), their mean (p, 1, d) and a key per row (p, s)."""
    x = z.detach().reshape(-1, *z.shape[-2:])
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    mean = x.mean(1, keepdim=True)  # centered for precision
    points = torch.cat([x - mean, torch.ones_like(x[..., :1])], -1)
    restarts = torch.arange(n_init, device=z.device)
    return points, mean, draws.fold(key.reshape(-1, 1).to(z.device), "kmeans", restarts)


def _together(size: int, first: Tensor, second: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(first.split(size), second.split(size), strict=True)


def _costs(points: Tensor, centers: Tensor) -> Tensor:
    """Return squared distances less |x|²: (p, n, d + 1), (p, s, k, d) -> (p, s, k, n)."""
    weights = torch.cat([-2 * centers, centers.square().sum(-1, keepdim=True)], -1)
    return (weights.flatten(1, 2) @ points.mT).reshape(*centers.shape[:3], points.shape[1])


def _piece(per_sample: int, device: torch.device) -> int:
    """Return the number of samples to process at a time; float32 counts up to 2**24."""
    return min(max(1, _limits(device).piece // max(1, per_sample)), 2**24)


def _gather(points: Tensor, index: Tensor) -> Tensor:
    """(p, n, d) at rows (p, ...) -> (p, ..., d)."""
    problem = torch.arange(len(points), device=points.device).reshape(-1, *[1] * (index.ndim - 1))
    return points[problem, index]


def _seed(points: Tensor, k: int, keys: Tensor) -> Tensor:
    """Run greedy k-means++ for each row: keys (p, s) -> (p, s, k, d)."""
    n = points.shape[1]
    x, squares = points[..., :-1], points[..., :-1].square().sum(-1)[:, None, None]
    tries = 2 + int(math.log(k))
    # 48 random bits a draw, since 24 would not reach each of 10⁸ samples.
    u = draws.uniform(draws.fold(keys, "candidates"), (k, tries, 2), dtype=torch.float64)
    chance = u[..., 0] + u[..., 1] * 2.0**-24
    chosen = _gather(x, draws.integers(draws.fold(keys, "first"), n, (1,)))
    centers, closest = [chosen], (_costs(points, chosen) + squares).clamp_(min=0)
    for step in range(1, k):
        # In float64, so that the choice does not depend on how a device adds.
        mass = closest[:, :, 0].cumsum(-1, dtype=torch.float64)
        at = torch.searchsorted(mass, chance[:, :, step] * mass[..., -1:], right=True)
        candidates = _gather(x, at.clamp_(max=n - 1))  # beyond if all samples are covered or NaN
        left = torch.minimum((_costs(points, candidates) + squares).clamp_(min=0), closest)
        best = left.sum(-1).argmin(-1)[..., None, None]
        centers.append(candidates.take_along_dim(best, 2))
        closest = left.take_along_dim(best, 2)
    return torch.cat(centers, 2)


@dataclass
class _Rows:
    """The rows of a block that still move: at most s' of p' problems, and their origin."""

    points: Tensor  # (p', n, d + 1)
    limit: Tensor  # (p', 1), squared movement at which a row stops
    problem: Tensor  # (p', 1)
    restart: Tensor  # (p', s')
    centers: Tensor  # (p', s', k, d)
    steps: Tensor  # (p', s')
    running: Tensor  # (p', s'), False for finished rows

    def shrunk(self) -> "_Rows":
        """Drop finished rows, as far as the rest stays a rectangle and copying is worth it."""
        left = self.running.sum(1)
        width, busy = int(left.max()), left > 0
        if 4 * int(busy.sum()) > 3 * len(busy):
            busy = torch.ones_like(busy)
        if width == self.running.shape[1] and bool(busy.all()):
            return self
        keep = self.running[busy].int().argsort(dim=1, descending=True, stable=True)[:, :width]
        restart, steps, running = (field[busy].gather(1, keep)
                                   for field in (self.restart, self.steps, self.running))
        return _Rows(self.points if bool(busy.all()) else self.points[busy], self.limit[busy],
                     self.problem[busy], restart,
                     self.centers[busy].take_along_dim(keep[..., None, None], 1), steps, running)


def _lloyd(points: Tensor, centers: Tensor, *, max_iter: int, tol: float) -> Tensor:
    """Run Lloyd's iterations on centers (p, s, k, d) until each row has converged."""
    p, s = centers.shape[:2]
    index = torch.arange(max(p, s), device=points.device)
    limit = tol * points[..., :-1].square().mean((1, 2))[:, None]
    steps = torch.zeros(p, s, dtype=torch.int64, device=points.device)
    rows = _Rows(points, limit, index[:p, None], index[:s].expand(p, s), centers, steps, steps == 0)
    result, turn, look = centers.clone(), 0, _limits(points.device).look
    while True:
        turn += 1
        moved, regular = _means(rows.points, rows.centers)
        if turn % look == 0:  # the only synchronization with the device
            for i, j in (rows.running & ~regular).nonzero().tolist():
                moved[i, j] = _careful_means(rows.points[i], rows.centers[i, j])
            regular = torch.ones_like(regular)
        go = rows.running & regular  # irregular rows wait for the next careful step
        far = (moved - rows.centers).square().sum((2, 3)) > rows.limit  # False for NaN
        rows.centers = torch.where(go[..., None, None], moved, rows.centers)
        rows.steps = rows.steps + go
        rows.running = rows.running & ~(go & ~(far & (rows.steps < max_iter)))
        if turn % look == 0:
            left = int(rows.running.sum())
            if left < rows.running.numel() or left == 0:
                result[rows.problem, rows.restart] = rows.centers
                if left == 0:
                    return result
                rows = rows.shrunk()


def _means(points: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
    """Return new centers of all rows (p, s, k, d), and whether they are valid (p, s)."""
    p, s, k, d = centers.shape
    totals = centers.new_zeros(p, s, k, d + 1)
    regular = torch.ones(p, s, dtype=torch.bool, device=centers.device)
    for piece in torch.split(points, _piece(p * s * k, points.device), dim=1):
        costs = _costs(piece, centers)
        # Faster than an argmin, but counts ties twice: a careful step then replaces this one.
        member = costs.eq_(costs.amin(2, keepdim=True))
        total = (member.flatten(1, 2) @ piece).reshape(p, s, k, d + 1)
        regular &= total[..., -1].sum(-1) == piece.shape[1]
        totals += total
    sizes = totals[..., -1:]
    return totals[..., :-1] / sizes, regular & (sizes > 0).all(-1).all(-1)


def _careful_means(points: Tensor, centers: Tensor) -> Tensor:
    """Return new centers of one row; ties go to the lower index, empty clusters to far samples."""
    x, k = points[:, :-1], len(centers)
    labels = _nearest(points[None], centers[None])[0]
    distance = (x - centers[labels]).square().sum(-1)
    empty = (torch.bincount(labels, minlength=k) == 0).nonzero()[:, 0]
    worst, sample = distance.topk(len(empty))
    # With fewer distinct samples than clusters all lie on a center: moving would never end.
    sample = sample[worst > torch.finfo(x.dtype).eps * x.square().sum(-1).mean()]
    labels[sample] = empty[: len(sample)]
    sizes, size = torch.bincount(labels, minlength=k)[:, None], _piece(k, x.device)
    index, sums = torch.arange(k, device=x.device)[:, None], torch.zeros_like(centers)
    for part, label in _together(size, x, labels):
        sums += (label == index).to(x.dtype) @ part
    return torch.where(sizes > 0, sums / sizes, centers)


def _nearest(points: Tensor, centers: Tensor) -> Tensor:
    """Return the nearest center, the first of equals: (p, n, d + 1), (p, k, d) -> (p, n)."""
    pieces = torch.split(points, _piece(math.prod(centers.shape[:2]), points.device), dim=1)
    return torch.cat([_costs(piece, centers[:, None])[:, 0].min(1).indices for piece in pieces], 1)


def _judge(points: Tensor, centers: Tensor) -> KMeansFit:
    """Evaluate one restart of each problem, with inertia from differences for precision."""
    labels = _nearest(points, centers)
    squares = (points[..., :-1] - _gather(centers, labels)).square_().sum(-1)
    return KMeansFit(centers, labels, squares.sum(-1, dtype=torch.float64))


def _better(old: KMeansFit, new: KMeansFit) -> KMeansFit:
    """Choose the fit of lower inertia for each problem, the old one if equal to rounding."""
    slack = torch.finfo(new.centers.dtype).eps ** 0.75
    wins = new.inertia < old.inertia * (1 - slack)
    return KMeansFit(torch.where(wins[:, None, None], new.centers, old.centers),
                     torch.where(wins[:, None], new.labels, old.labels),
                     torch.where(wins, new.inertia, old.inertia))
