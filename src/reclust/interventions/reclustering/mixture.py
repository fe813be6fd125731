"""Gaussian mixtures by expectation maximization, batched, on any device.

The log-density of a Gaussian is a product of its parameters with the features 1, x and x_i x_j for
i <= j, and its new parameters come from their means, so both steps are one product with the
features (n, f) for all restarts of a problem.

Shapes: p problems, s restarts, n samples, d features, k components; moments (p, s, k, f).
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from ... import draws
from ...utils.values import integer, number, value
from .kmeans import KMeans

_NUMBERS = {"cpu": 2**18, "cuda": 2**24}  # held at a time; on a CPU they should fit the cache
_KEPT = 2**24  # features of all samples at most, to compute them only once


@value
class GaussianMixture:
    """Reclustering method: means of a Gaussian mixture, computed as scikit-learn's in float64."""

    restarts: int = integer(default=10, least=1)
    regularization: float = number(default=1e-5, least=0)
    max_iter: int = integer(default=100, least=1)
    tol: float = number(default=1e-3, least=0)
    starts: int = integer(default=1, least=1)  # of k-means before each restart, the best is taken

    def __call__(self, z: Tensor, k: int, key: Tensor) -> Tensor:
        """Return the means of the best restart of each problem: (..., n, d) -> (..., k, d)."""
        x, shift, moments, likelihood = self._fit(z, k, key)
        best = likelihood.amax(1, keepdim=True)
        # The first of those equal to rounding, which must not decide.
        first = (likelihood >= best - 1e-9 * best.abs()).int().argmax(1)
        chosen = moments[torch.arange(len(x), device=x.device), first]
        means = _means(chosen, x.shape[-1]) + shift
        return means.to(z.dtype).reshape(*z.shape[:-2], k, z.shape[-1])

    @torch.no_grad()
    def labels(self, z: Tensor, k: int, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return labels (..., s, n) and the mean log-likelihood (..., s) of each restart."""
        x, _, moments, likelihood = self._fit(z, k, key)
        weights = self._log_density(moments, *x.shape[1:])
        parts = [(self._features(part) @ weights.flatten(1, 2).mT).unflatten(-1, weights.shape[1:3])
                 for part in x.split(_piece(x, weights[0, ..., 0].numel()), dim=1)]
        labels = torch.cat(parts, 1).argmax(-1).mT
        return (labels.reshape(*z.shape[:-2], self.restarts, -1),
                likelihood.reshape(*z.shape[:-2], self.restarts))

    @torch.no_grad()
    def _fit(self, z: Tensor, k: int, key: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return centered problems (p, n, d), their shift, moments and likelihood (p, s)."""
        kmeans = KMeans(n_init=self.starts)
        labels = torch.stack([kmeans.fit(z, k, draws.fold(key, "mixture", i)).labels
                              for i in range(self.restarts)], -2)
        x = z.reshape(-1, *z.shape[-2:]).double()
        shift = x.mean(1, keepdim=True)  # centered for precision
        x, together = x - shift, 1 if z.device.type == "cpu" else len(x)
        labels = labels.reshape(len(x), self.restarts, -1)
        problems = zip(x.split(together), labels.split(together), strict=True)
        fits = [self._maximize(part, groups, k) for part, groups in problems]
        moments, likelihood = (torch.cat(field) for field in zip(*fits, strict=True))
        return x, shift, moments, likelihood

    def _maximize(self, x: Tensor, labels: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return moments (p, s, k, f) and mean log-likelihoods (p, s) of all restarts."""
        moments = self._first_moments(x, labels, k)
        parts = x.split(_piece(x, labels.shape[1] * k), dim=1)
        small = x.shape[:2].numel() * moments.shape[-1] <= _KEPT
        kept = [self._features(part) for part in parts] if small else None
        likelihood = x.new_full(labels.shape[:2], -torch.inf)
        running = torch.ones_like(likelihood, dtype=torch.bool)
        for _ in range(self.max_iter):
            features = map(self._features, parts) if kept is None else kept
            moved, now = self._improve(features, moments, *x.shape[1:])
            # Where a covariance becomes singular, the last finite moments stay.
            running = running & now.isfinite() & moved.isfinite().all(-1).all(-1)
            far = (now - likelihood).abs() >= self.tol
            moments = torch.where(running[..., None, None], moved, moments)
            likelihood = torch.where(running, now, likelihood)
            running = running & far
            if not bool(running.any()):
                break
        return moments, likelihood

    def _first_moments(self, x: Tensor, labels: Tensor, k: int) -> Tensor:
        clusters, size = torch.arange(k, device=x.device), _piece(x, labels.shape[1] * k)
        parts = zip(x.split(size, dim=1), labels.mT.split(size, dim=1), strict=True)
        sums = [self._gather(part, (part_labels.unsqueeze(-1) == clusters).to(x.dtype))
                for part, part_labels in parts]
        return torch.stack(sums).sum(0)

    def _improve(self, parts: Iterable[Tensor], moments: Tensor, n: int,
                 d: int) -> tuple[Tensor, Tensor]:
        """Return new moments (p, s, k, f) and the mean log-likelihood before the step, (p, s)."""
        p, s, k, f = moments.shape
        weights = self._log_density(moments, n, d).reshape(p, s * k, f).mT
        total, likelihood = torch.zeros_like(moments), moments.new_zeros(p, s)
        for features in parts:
            joint = (features @ weights).unflatten(-1, (s, k))
            density = joint.logsumexp(-1, keepdim=True)
            member = joint.sub_(density).exp_()
            total += (member.flatten(2).mT @ features).unflatten(1, (s, k))
            likelihood += density.sum((1, 3))
        return total, likelihood / n

    def _features(self, x: Tensor) -> Tensor:
        """Compute features: (p, n, d) -> (p, n, f)."""
        i, j = torch.triu_indices(*x.shape[-1:] * 2, device=x.device)
        return torch.cat([torch.ones_like(x[..., :1]), x,
                          x.index_select(-1, i) * x.index_select(-1, j)], -1)

    def _gather(self, x: Tensor, member: Tensor) -> Tensor:
        """Sum features by responsibility: (p, n, d), (p, n, s, k) -> (p, s, k, f)."""
        return (member.flatten(2).mT @ self._features(x)).unflatten(1, member.shape[2:])

    def _log_density(self, moments: Tensor, n: int, d: int) -> Tensor:
        """Return coefficients of features for the log of weight times density, (p, s, k, f)."""
        i, j = torch.triu_indices(d, d, device=moments.device)
        mass, mean = moments[..., :1].clamp(min=1e-14), _means(moments, d)
        covariance = moments.new_zeros(*moments.shape[:-1], d, d)
        second = moments[..., 1 + d :] / mass - mean[..., i] * mean[..., j]
        covariance[..., i, j] = covariance[..., j, i] = second
        covariance.diagonal(dim1=-2, dim2=-1).add_(self.regularization)
        factor, _ = torch.linalg.cholesky_ex(covariance)  # failures show as NaN
        identity = torch.eye(d, dtype=factor.dtype, device=factor.device).expand_as(factor)
        precision = torch.cholesky_solve(identity, factor)  # cholesky_inverse would raise on NaN
        linear = (precision @ mean.unsqueeze(-1)).squeeze(-1)
        half_log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1, keepdim=True)
        squares = d * math.log(2 * math.pi) + (linear * mean).sum(-1, keepdim=True)
        constant = (mass / n).log() - half_log_det - squares / 2
        quadratic = precision[..., i, j] * torch.where(i == j, -0.5, -1.0)
        return torch.cat([constant, linear, quadratic], -1)


def _piece(x: Tensor, components: int) -> int:
    d = x.shape[-1]
    per_sample = len(x) * max(components, (d + 1) * (d + 2) // 2)
    return max(1, _NUMBERS.get(x.device.type, _NUMBERS["cpu"]) // per_sample)


def _means(moments: Tensor, d: int) -> Tensor:
    return moments[..., 1 : 1 + d] / moments[..., :1].clamp(min=1e-14)
