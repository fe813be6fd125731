"""Batched k-means: greedy k-means++ seeding and Lloyd's iterations on (..., n, d), seeded, on any device, no gradients.

All problems and all their restarts move together, in blocks that bound the memory, and rows that have converged leave
their block. Each draw comes from the problem's own key: it ends the same alone or among others, to rounding.

Shapes: p problems (the leading axes, flattened), s restarts, n samples, d features, k clusters; a *row* is one restart
of one problem. Inside, samples are centred and carry a column of ones, (p, n, d + 1): one product with (-2 c, |c|²) is
then the squared distance to a centre less |x|², and one with the memberships gives sums and sizes at once. Products
follow torch's float32 precision: allowing TF32 makes near ties fall at random.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ... import draws
from ...utils.values import check_float, check_int, value


class _Limits(NamedTuple):
    block: int  # rows × n × k moved together: bounds the memory
    piece: int  # distances in one product: on a CPU up to twice as fast when they stay in the cache
    look: int  # iterations between two looks at the result: a GPU would wait for the host at each of them


_CPU, _GPU = _Limits(2**25, 2**19, 1), _Limits(2**27, 2**27, 8)


class KMeansFit(NamedTuple):
    """The best restart of each problem: centers (..., k, d), labels (..., n), inertia (...)."""

    centers: Tensor
    labels: Tensor
    inertia: Tensor


@value
class KMeans:
    """K-means as a reclustering method: (z (..., n, d), k, key (...)) -> centres (..., k, d) of the best restart.

    `tol` is the squared movement of all centres at which a restart stops, relative to the mean variance of a feature.
    """

    n_init: int = 10
    max_iter: int = 300
    tol: float = 1e-4

    def __post_init__(self) -> None:
        for name in ("n_init", "max_iter"):
            object.__setattr__(self, name, check_int(name, getattr(self, name), 1))
        object.__setattr__(self, "tol", check_float("tol", self.tol))
        if not self.tol >= 0:
            raise ValueError(f"tol={self.tol} must not be negative: 0 runs until the centres stand still.")

    def __call__(self, z: Tensor, k: int, key: Tensor) -> Tensor:
        return self.fit(z, k, key).centers

    def fit(self, z: Tensor, k: int, key: Tensor) -> KMeansFit:
        """Centres, labels and inertia of the best restart of each problem; the first one among equals."""
        with torch.no_grad(), torch.autocast(z.device.type, enabled=False):
            points, mean, key = _prepare(z, k, key)
            (*lead, n, d), limits = z.shape, _limits(z.device)
            rows = max(1, limits.block // (n * k))
            problems = max(1, limits.piece // (self.n_init * n * k))
            parts = _together(problems, points, _restart_keys(key, self.n_init))
            fits = [self._best(x, k, torch.split(keys, rows, dim=1)) for x, keys in parts]
            centers, labels, inertia = (torch.cat(field) for field in zip(*fits, strict=True))
            centers, inertia = (centers + mean).to(z.dtype), inertia.to(points.dtype)
        return KMeansFit(centers.reshape(*lead, k, d), labels.reshape(*lead, n), inertia.reshape(lead))

    def _best(self, points: Tensor, k: int, keys: tuple[Tensor, ...]) -> KMeansFit:
        """The best over all restarts, whose keys (p, s) come in groups that fit into the memory."""
        best: KMeansFit | None = None
        for group in keys:
            centers = _lloyd(points, _seed(points, k, group), max_iter=self.max_iter, tol=self.tol)
            for one in centers.unbind(1):
                fit = _judge(points, one)
                best = fit if best is None else _better(best, fit)
        assert best is not None  # n_init is at least 1
        return best


@value
class KMeansPlusPlus:
    """K-means++ seeding alone as a reclustering method: the centres that the first restart of `KMeans` starts from."""

    def __call__(self, z: Tensor, k: int, key: Tensor) -> Tensor:
        with torch.no_grad(), torch.autocast(z.device.type, enabled=False):
            points, mean, key = _prepare(z, k, key)
            *lead, n, d = z.shape
            problems = max(1, _limits(z.device).block // (n * k))
            parts = _together(problems, points, _restart_keys(key, 1))
            centers = torch.cat([_seed(x, k, keys)[:, 0] for x, keys in parts])
            return (centers + mean).to(z.dtype).reshape(*lead, k, d)


def kmeans(z: Tensor, k: int, *, key: Tensor, n_init: int = 10, max_iter: int = 300, tol: float = 1e-4) -> KMeansFit:
    """K-means of each problem in z (..., n, d), with draws from key (...): the best of `n_init` restarts."""
    return KMeans(n_init=n_init, max_iter=max_iter, tol=tol).fit(z, k, key)


def _limits(device: torch.device) -> _Limits:
    return _CPU if device.type == "cpu" else _GPU


def _prepare(z: Tensor, k: int, key: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Checked and flattened: samples with ones (p, n, d + 1), their mean (p, 1, d), keys (p,)."""
    if z.ndim < 2 or not z.is_floating_point():
        raise ValueError(f"z is {z.dtype} of shape {tuple(z.shape)}, floating (..., n, d) is needed: try z.float().")
    if k < 1:
        raise ValueError(f"n_clusters={k} must be at least 1.")
    if k > z.shape[-2]:
        raise ValueError(f"n_clusters={k} needs at least {k} samples, X has {z.shape[-2]}.")
    if key.shape != z.shape[:-2]:
        raise ValueError(
            f"key has shape {tuple(key.shape)}, z of shape {tuple(z.shape)} needs one key a problem, "
            f"{tuple(z.shape[:-2])}: fold an index into a single key with draws.fold."
        )
    x = z.detach().reshape(-1, *z.shape[-2:])
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    mean = x.mean(1, keepdim=True)  # products lose digits when the data lies far from the origin
    return torch.cat([x - mean, torch.ones_like(x[..., :1])], -1), mean, key.reshape(-1).to(z.device)


def _restart_keys(key: Tensor, n_init: int) -> Tensor:
    """One key for each row, (p, s)."""
    return draws.fold(key.unsqueeze(-1), "kmeans", torch.arange(n_init, device=key.device))


def _together(size: int, first: Tensor, second: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Both tensors in parts of `size` along their first axis."""
    return zip(torch.split(first, size), torch.split(second, size), strict=True)


def _costs(points: Tensor, centers: Tensor) -> Tensor:
    """Squared distances less |x|², which comparisons do not need: (p, n, d + 1), (p, s, k, d) -> (p, s, k, n)."""
    weights = torch.cat([-2 * centers, centers.square().sum(-1, keepdim=True)], -1)
    return (weights.flatten(1, 2) @ points.mT).reshape(*centers.shape[:3], points.shape[1])


def _piece(per_sample: int, device: torch.device) -> int:
    """How many samples to take at a time when each needs so many distances; float32 counts exactly up to 2**24."""
    return min(max(1, _limits(device).piece // max(1, per_sample)), 2**24)


def _gather(points: Tensor, index: Tensor) -> Tensor:
    """Rows of (p, n, d) at index (p, ...): (p, ..., d)."""
    problem = torch.arange(len(points), device=points.device).reshape(-1, *[1] * (index.ndim - 1))
    return points[problem, index]


def _seed(points: Tensor, k: int, keys: Tensor) -> Tensor:
    """Greedy k-means++ of each row, keys (p, s) -> (p, s, k, d): the best of a few draws by squared distance."""
    n = points.shape[1]
    x, squares = points[..., :-1], points[..., :-1].square().sum(-1)[:, None, None]
    tries = 2 + int(math.log(k))
    # 48 random bits a draw, since 24 would not reach every one of 10⁸ samples.
    high, low = draws.uniform(draws.fold(keys, "candidates"), (k, tries, 2), dtype=torch.float64).unbind(-1)
    chance = high + low * 2.0**-24
    chosen = _gather(x, draws.integers(draws.fold(keys, "first"), n, (1,)))
    centers, closest = [chosen], (_costs(points, chosen) + squares).clamp_(min=0)
    for step in range(1, k):
        # In float64, or the choice would hang on how a device adds; the clamp is for samples all covered or NaN.
        mass = closest[:, :, 0].cumsum(-1, dtype=torch.float64)
        at = torch.searchsorted(mass, chance[:, :, step] * mass[..., -1:], right=True).clamp_(max=n - 1)
        candidates = _gather(x, at)
        left = torch.minimum((_costs(points, candidates) + squares).clamp_(min=0), closest)
        best = left.sum(-1).argmin(-1)[..., None, None]
        centers.append(candidates.take_along_dim(best, 2))
        closest = left.take_along_dim(best, 2)
    return torch.cat(centers, 2)


@dataclass
class _Rows:
    """The rows of a block that still move, at most s' of p' problems, and where they came from."""

    points: Tensor  # (p', n, d + 1)
    limit: Tensor  # (p', 1), the squared movement that counts as none
    problem: Tensor  # (p', 1)
    restart: Tensor  # (p', s')
    centers: Tensor  # (p', s', k, d)
    steps: Tensor  # (p', s')
    running: Tensor  # (p', s'), False for a finished row that fills a place

    def shrunk(self) -> _Rows:
        """Without the places of finished rows, as far as the rest stays a rectangle and copying samples pays."""
        left = self.running.sum(1)
        width, busy = int(left.max()), left > 0
        if 4 * int(busy.sum()) > 3 * len(busy):
            busy = torch.ones_like(busy)
        if width == self.running.shape[1] and bool(busy.all()):
            return self
        keep = self.running[busy].int().argsort(dim=1, descending=True, stable=True)[:, :width]
        return _Rows(
            self.points if bool(busy.all()) else self.points[busy],
            self.limit[busy],
            self.problem[busy],
            self.restart[busy].gather(1, keep),
            self.centers[busy].take_along_dim(keep[..., None, None], 1),
            self.steps[busy].gather(1, keep),
            self.running[busy].gather(1, keep),
        )


def _lloyd(points: Tensor, centers: Tensor, *, max_iter: int, tol: float) -> Tensor:
    """Lloyd's iterations of every row until its own convergence: centers (p, s, k, d) -> the same."""
    p, s = centers.shape[:2]
    index = torch.arange(max(p, s), device=points.device)
    limit = tol * points[..., :-1].square().mean((1, 2))[:, None]
    steps = torch.zeros(p, s, dtype=torch.int64, device=points.device)
    rows = _Rows(points, limit, index[:p, None], index[:s].expand(p, s), centers, steps, steps == 0)
    result, turn, look = centers.clone(), 0, _limits(points.device).look
    while True:
        turn += 1
        moved, regular = _means(rows.points, rows.centers)
        if turn % look == 0:  # the only place that waits for the device
            for i, j in (rows.running & ~regular).nonzero().tolist():
                moved[i, j] = _careful_means(rows.points[i], rows.centers[i, j])
            regular = torch.ones_like(regular)
        go = rows.running & regular  # an irregular row stays where it is until the next look
        far = (moved - rows.centers).square().sum((2, 3)) > rows.limit  # False for NaN: nothing to wait for
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
    """One step of all rows: new centres (p, s, k, d), and (p, s) whether they hold.

    They do where each sample has one nearest centre and each centre a sample. Comparing costs with their minimum is
    several times faster than an argmin, but counts a sample twice between two equally near centres: a careful step
    then replaces this one.
    """
    p, s, k, d = centers.shape
    totals = centers.new_zeros(p, s, k, d + 1)
    regular = torch.ones(p, s, dtype=torch.bool, device=centers.device)
    for piece in torch.split(points, _piece(p * s * k, points.device), dim=1):
        costs = _costs(piece, centers)
        member = costs.eq_(costs.amin(2, keepdim=True))
        total = (member.flatten(1, 2) @ piece).reshape(p, s, k, d + 1)
        regular &= total[..., -1].sum(-1) == piece.shape[1]
        totals += total
    sizes = totals[..., -1:]
    return totals[..., :-1] / sizes, regular & (sizes > 0).all(-1).all(-1)


def _careful_means(points: Tensor, centers: Tensor) -> Tensor:
    """One step of one row, (n, d + 1) and (k, d): ties go to the lower index, empty clusters to far samples."""
    x, k = points[:, :-1], len(centers)
    labels = _nearest(points[None], centers[None])[0]
    distance = (x - centers[labels]).square().sum(-1)
    empty = (torch.bincount(labels, minlength=k) == 0).nonzero()[:, 0]
    worst, sample = distance.topk(len(empty))
    # With fewer distinct samples than clusters all lie on a centre, to rounding: moves would gain nothing, forever.
    sample = sample[worst > torch.finfo(x.dtype).eps * x.square().sum(-1).mean()]
    labels[sample] = empty[: len(sample)]
    sizes, size = torch.bincount(labels, minlength=k)[:, None], _piece(k, x.device)
    index, sums = torch.arange(k, device=x.device)[:, None], torch.zeros_like(centers)
    for part, label in _together(size, x, labels):
        sums += (label == index).to(x.dtype) @ part
    return torch.where(sizes > 0, sums / sizes, centers)


def _nearest(points: Tensor, centers: Tensor) -> Tensor:
    """Index of the nearest centre, the lowest among equals: (p, n, d + 1), (p, k, d) -> (p, n)."""
    pieces = torch.split(points, _piece(centers.shape[0] * centers.shape[1], points.device), dim=1)
    return torch.cat([_costs(piece, centers[:, None])[:, 0].min(1).indices for piece in pieces], 1)


def _judge(points: Tensor, centers: Tensor) -> KMeansFit:
    """One restart of each problem, centers (p, k, d), with its inertia from differences, since products lose digits."""
    labels = _nearest(points, centers)
    inertia = (points[..., :-1] - _gather(centers, labels)).square_().sum(-1).sum(-1, dtype=torch.float64)
    return KMeansFit(centers, labels, inertia)


def _better(old: KMeansFit, new: KMeansFit) -> KMeansFit:
    """For each problem the fit of lower inertia, the old one if equal to rounding, which must not choose."""
    slack = torch.finfo(new.centers.dtype).eps ** 0.75
    wins = new.inertia < old.inertia * (1 - slack)
    return KMeansFit(
        torch.where(wins[:, None, None], new.centers, old.centers),
        torch.where(wins[:, None], new.labels, old.labels),
        torch.where(wins, new.inertia, old.inertia),
    )
