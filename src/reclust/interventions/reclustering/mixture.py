"""Gaussian mixtures by expectation maximisation, many at once, on any device.

A mixture with full covariances is an exponential family: the log-density of a component is a product of its parameters
with the features (1, x, x_i x_j for i <= j), and its new parameters come from the mean features of its samples. Both
steps are then one product with the features, (n, f) with f = (d + 1)(d + 2) / 2, for all restarts of a problem.

Shapes: p problems, s restarts, n samples, d numbers, k components; moments (p, s, k, f).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ... import draws
from ...utils.values import check_float, check_int, value
from .kmeans import KMeans

_NUMBERS = {"cpu": 2**18, "cuda": 2**24}
"""Log-densities or features held at a time; on a CPU they should stay in the cache."""


@value
class GaussianMixture:
    """The means of a Gaussian mixture as a reclustering method: full covariances, the best of `restarts` by likelihood.

    Every restart begins with k-means, gets `regularization` added to each variance, and ends when the mean
    log-likelihood of a sample changes by less than `tol`, as in scikit-learn's `GaussianMixture`. In float64.
    """

    restarts: int = 10
    regularization: float = 1e-5
    max_iter: int = 100
    tol: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("restarts", "max_iter"):
            object.__setattr__(self, name, check_int(name, getattr(self, name), 1))
        for name in ("regularization", "tol"):
            object.__setattr__(self, name, check_float(name, getattr(self, name)))
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)!r}.")

    @torch.no_grad()
    def __call__(self, z: Tensor, k: int, key: Tensor) -> Tensor:
        kmeans = KMeans(n_init=1)
        labels = torch.stack([kmeans.fit(z, k, draws.fold(key, "mixture", i)).labels for i in range(self.restarts)], -2)
        x = z.reshape(-1, *z.shape[-2:]).double()
        shift = x.mean(1, keepdim=True)  # products lose digits when the data lies far from the origin
        together = 1 if z.device.type == "cpu" else len(x)
        problems = zip((x - shift).split(together), labels.reshape(len(x), self.restarts, -1).split(together), strict=True)
        means = torch.cat([self._best(own, groups, k) for own, groups in problems]) + shift
        return means.to(z.dtype).reshape(*z.shape[:-2], k, z.shape[-1])

    def _best(self, x: Tensor, labels: Tensor, k: int) -> Tensor:
        """(p, n, d), first labels (p, s, n) -> means (p, k, d)."""
        moments = self._first_moments(x, labels, k)
        likelihood = x.new_full(labels.shape[:2], -torch.inf)
        running = torch.ones_like(likelihood, dtype=torch.bool)
        for _ in range(self.max_iter):
            moved, now = self._improve(x, moments)
            # Where a covariance became singular, the last moments that were numbers stay, at first those of k-means.
            running = running & now.isfinite() & moved.isfinite().all(-1).all(-1)
            far = (now - likelihood).abs() >= self.tol
            moments = torch.where(running[..., None, None], moved, moments)
            likelihood = torch.where(running, now, likelihood)
            running = running & far
            if not bool(running.any()):
                break
        best = likelihood.amax(1, keepdim=True)
        first = (likelihood >= best - 1e-9 * best.abs()).int().argmax(1)  # rounding must not choose among equals
        chosen = moments[torch.arange(len(x), device=x.device), first]
        return _means(chosen, x.shape[-1])

    def _first_moments(self, x: Tensor, labels: Tensor, k: int) -> Tensor:
        clusters, size = torch.arange(k, device=x.device), _piece(x, labels.shape[1] * k)
        parts = zip(x.split(size, dim=1), labels.mT.split(size, dim=1), strict=True)
        sums = [_gather(part, (own.unsqueeze(-1) == clusters).to(x.dtype)) for part, own in parts]
        return torch.stack(sums).sum(0)

    def _improve(self, x: Tensor, moments: Tensor) -> tuple[Tensor, Tensor]:
        """One step of every restart: moments (p, s, k, f), and the mean log-likelihood before it, (p, s)."""
        p, s, k, f = moments.shape
        weights = self._log_density(moments, x.shape[-1], x.shape[1]).reshape(p, s * k, f).mT
        total, likelihood = torch.zeros_like(moments), x.new_zeros(p, s)
        for part in x.split(_piece(x, s * k), dim=1):
            joint = (_features(part) @ weights).unflatten(-1, (s, k))
            density = joint.logsumexp(-1, keepdim=True)
            total += _gather(part, joint.sub_(density).exp_())
            likelihood += density.sum((1, 3))
        return total, likelihood / x.shape[1]

    def _log_density(self, moments: Tensor, d: int, n: int) -> Tensor:
        """What features are multiplied with: log of weight times density, (p, s, k, f)."""
        i, j = torch.triu_indices(d, d, device=moments.device)
        mass, mean = moments[..., :1].clamp(min=1e-14), _means(moments, d)
        covariance = moments.new_zeros(*moments.shape[:-1], d, d)
        second = moments[..., 1 + d :] / mass - mean[..., i] * mean[..., j]
        covariance[..., i, j] = covariance[..., j, i] = second
        covariance.diagonal(dim1=-2, dim2=-1).add_(self.regularization)
        factor, _ = torch.linalg.cholesky_ex(covariance)  # without a look at the result; a failure turns up as NaN
        one = torch.eye(d, dtype=factor.dtype, device=factor.device).expand_as(factor)
        precision = torch.cholesky_solve(one, factor)  # cholesky_inverse would raise where this gives no number
        linear = (precision @ mean.unsqueeze(-1)).squeeze(-1)
        half_log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1, keepdim=True)
        constant = (mass / n).log() - half_log_det - (d * math.log(2 * math.pi) + (linear * mean).sum(-1, keepdim=True)) / 2
        return torch.cat([constant, linear, precision[..., i, j] * torch.where(i == j, -0.5, -1.0)], -1)


def _piece(x: Tensor, components: int) -> int:
    """How many samples of each problem to take at a time."""
    d = x.shape[-1]
    per_sample = len(x) * max(components, (d + 1) * (d + 2) // 2)
    return max(1, _NUMBERS.get(x.device.type, _NUMBERS["cpu"]) // per_sample)


def _features(x: Tensor) -> Tensor:
    """(p, n, d) -> (p, n, f)."""
    i, j = torch.triu_indices(x.shape[-1], x.shape[-1], device=x.device)
    return torch.cat([torch.ones_like(x[..., :1]), x, x[..., i] * x[..., j]], -1)


def _gather(x: Tensor, member: Tensor) -> Tensor:
    """Features summed by responsibility: (p, n, d), (p, n, s, k) -> (p, s, k, f)."""
    return (member.flatten(2).mT @ _features(x)).unflatten(1, member.shape[2:])


def _means(moments: Tensor, d: int) -> Tensor:
    return moments[..., 1 : 1 + d] / moments[..., :1].clamp(min=1e-14)
