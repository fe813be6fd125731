"""Positions of samples relative to classes, centers and neighbors, without n x n matrices.

Shapes: n samples, d features, k classes or centers.

Examples
--------
>>> import torch
>>> from reclust import geometry
>>> geometry.distance_ratio(torch.randn(50, 2), torch.randn(3, 2)).shape
torch.Size([50])
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

from .metrics import cluster_sizes
from .utils.exceptions import warn

INDEXED_ROWS = 100_000  # from which a CPU finds neighbors by an index
_CHUNK, _CHUNK_CPU = 2**26, 2**22  # distances held at a time


class ClassDistances(NamedTuple):
    """Mean cosine distances of each sample (..., n) to its class and to the nearest other class.

    A class with one sample has intra-class distance 0 and silhouette 0. With a single class the
    inter-class distance and the silhouette are NaN.
    """

    intra: Tensor
    inter: Tensor
    silhouette: Tensor


@torch.no_grad()
def class_distances(z: Tensor, labels: Tensor) -> ClassDistances:
    """Compute distances of z (..., n, d) under integer labels (..., n), in float64 and O(n k d).

    The mean cosine distance to a class is 1 - u · m, with m the mean of its unit vectors u.
    """
    _check(z, labels)
    unit = normalize(z.double(), dim=-1, eps=1e-300)  # not exact in float32
    classes = torch.unique(labels, return_inverse=True)[1]
    sizes = cluster_sizes(classes, int(classes.max()) + 1)  # classes may be empty in some labelings
    sums = unit.new_zeros(*sizes.shape, z.shape[-1])
    sums.scatter_add_(-2, _each(classes, z.shape[-1]), unit)
    intra, inter = torch.empty_like(unit[..., 0]), torch.empty_like(unit[..., 0])
    size = _rows(sizes.numel(), z.device)
    parts = (tensor.split(size, -1) for tensor in (classes, intra, inter))
    for u, label, near, far in zip(unit.split(size, -2), *parts, strict=True):
        others = (sizes.gather(-1, label) - 1).double()  # without the sample itself
        alike = ((sums.gather(-2, _each(label, z.shape[-1])) - u) * u).sum(-1)
        near.copy_(torch.where(others > 0, 1 - alike / others.clamp(min=1), 0.0))
        distance = (1 - (u @ sums.mT) / sizes.unsqueeze(-2)).nan_to_num(torch.inf, torch.inf)
        far.copy_(distance.scatter_(-1, label.unsqueeze(-1), torch.inf).amin(-1))
    intra, inter = intra.clamp_(min=0), inter.clamp_(min=0).masked_fill_(inter.isinf(), torch.nan)
    widest = torch.maximum(intra, inter)
    silhouette = torch.where(widest == 0, 0.0, (inter - intra) / widest)
    alone = (sizes.gather(-1, classes) == 1) & ~inter.isnan()
    return ClassDistances(intra, inter, torch.where(alone, 0.0, silhouette))


def _each(labels: Tensor, d: int) -> Tensor:
    return labels.unsqueeze(-1).expand(*labels.shape, d)


@torch.no_grad()
def squared_silhouette(z: Tensor, labels: Tensor) -> Tensor:
    """Silhouette with squared Euclidean distances in float64 and O(n k d): (n, d), (n,) -> (n,).

    The mean squared distance to a class is |z - m|² plus the class's mean squared distance from
    its mean m. Classes with one sample have silhouette 0; a single class has NaN.
    """
    _check(z, labels)
    x = z.double() - z.double().mean(0)
    classes, sizes = torch.unique(labels, return_inverse=True, return_counts=True)[1:]
    means = x.new_zeros(len(sizes), x.shape[-1]).index_add_(0, classes, x) / sizes[:, None]
    squares = (x - means[classes]).square().sum(-1)
    spread = x.new_zeros(len(sizes)).index_add_(0, classes, squares) / sizes
    parts, size = [], _rows(len(sizes), z.device)
    for some, label in zip(x.split(size), classes.split(size), strict=True):
        distance = torch.cdist(some, means).square() + spread
        # In its own class without the sample itself: the same sum over one member less.
        near = distance.gather(1, label[:, None])[:, 0] * sizes[label]
        near = near / (sizes[label] - 1).clamp(min=1)
        far = distance.scatter(1, label[:, None], torch.inf).amin(1)
        widest = torch.maximum(near, far)
        parts.append(torch.where(widest == 0, 0.0, (far - near) / widest))
    silhouette = torch.cat(parts)
    if len(sizes) == 1:
        return torch.full_like(silhouette, torch.nan)
    return torch.where(sizes[classes] == 1, 0.0, silhouette)


@torch.no_grad()
def distance_ratio(z: Tensor, centers: Tensor) -> Tensor:
    """Distance to the nearest over the next center: (..., n, d), (..., k, d) -> (..., n)."""
    k = centers.shape[-2]
    z, centers = _at_least_float32(z), _at_least_float32(centers)
    parts = torch.split(z, _rows(z.shape[:-2].numel() * k, z.device), dim=-2)
    exact = "donot_use_mm_for_euclid_dist"  # as samples may be close to their center
    nearest = [torch.cdist(part, centers, compute_mode=exact).topk(2, largest=False).values
               for part in parts]
    first, second = torch.cat(nearest, -2).unbind(-1)
    return torch.where(second == 0, 1.0, first / second)


def distance_ratio_histogram(z: Tensor, centers: Tensor, *, bins: int = 20) -> Tensor:
    """Count distance ratios in equal bins of [0, 1], without NaN: -> (..., bins)."""
    part = (distance_ratio(z, centers) * bins).clamp(max=bins - 1).nan_to_num(nan=bins).long()
    return cluster_sizes(part, bins + 1)[..., :bins]


@torch.no_grad()
def local_purity(z: Tensor, labels: Tensor, *, neighbors: int = 10) -> Tensor:
    """Share of Euclidean nearest neighbors with the same label: (n, d), (n,) -> (n,)."""
    _check(z, labels)
    x = _at_least_float32(z)
    near = nearest_neighbors(x, neighbors)
    return (labels[near] == labels[:, None]).to(x.dtype).mean(-1)


@torch.no_grad()
def majority_share(z: Tensor, labels: Tensor, *, samples: int = 10) -> Tensor:
    """Share of the commonest label among the nearest samples, itself included: -> (n,)."""
    _check(z, labels)
    x, own = _at_least_float32(z), torch.arange(len(z), device=z.device)[:, None]
    near = torch.cat([own, nearest_neighbors(x, samples - 1)], 1)
    classes = torch.unique(labels, return_inverse=True)[1]
    counts = x.new_zeros(len(x), int(classes.max()) + 1)
    return counts.scatter_add_(1, classes[near], x.new_ones(near.shape)).amax(1) / near.shape[1]


@torch.no_grad()
def extremes(z: Tensor, labels: Tensor, centers: Tensor, *, count: int) -> tuple[Tensor, Tensor]:
    """Return row numbers of the samples nearest to and farthest from their center.

    z (..., n, d), labels (..., n), centers (..., k, d) -> two of (..., k, count), padded with -1.
    """
    distances = (z - centers.gather(-2, _each(labels, centers.shape[-1]))).norm(dim=-1)
    result = []
    for sign in (1, -1):
        clusters = []
        for cluster in range(centers.shape[-2]):
            among = torch.where(labels == cluster, sign * distances, torch.inf)
            least, rows = among.topk(min(count, among.shape[-1]), largest=False)
            rows = torch.where(least.isinf(), -1, rows)
            clusters.append(pad(rows, (0, count - rows.shape[-1]), value=-1))
        result.append(torch.stack(clusters, dim=-2))
    return result[0], result[1]


def _at_least_float32(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _rows(distances: int, device: torch.device) -> int:
    return max(1, (_CHUNK_CPU if device.type == "cpu" else _CHUNK) // max(1, distances))


def _check(z: Tensor, labels: Tensor) -> None:
    if z.ndim < 2 or labels.shape != z.shape[:-1]:
        raise ValueError(f"Labels {tuple(labels.shape)} do not fit samples {tuple(z.shape)}.")


def nearest_neighbors(x: Tensor, k: int, *, values: int = 2**26) -> Tensor:
    """Return the rows of the k nearest other samples, nearest first: (n, d) -> (n, k).

    For very many samples a CPU uses an index of faiss if it is installed, which misses a few.
    """
    x, n = x - x.mean(0), len(x)
    if n >= INDEXED_ROWS and x.device.type == "cpu":
        try:
            return indexed_neighbors(x, k)
        except ImportError:
            warn(f"Finding the neighbors of {n} samples takes long; `pip install "
                 "'reclust[neighbors]'` makes it several times as fast.")
    squares, neighbors = x.square().sum(-1), []
    for rows in torch.arange(n, device=x.device).split(max(1, values // n)):
        costs = torch.addmm(squares, x[rows], x.mT, alpha=-2)  # squared distance less |row|²
        costs[torch.arange(len(rows), device=x.device), rows] = torch.inf
        neighbors.append(costs.topk(min(k, n - 1), largest=False).indices)
    return torch.cat(neighbors)


def indexed_neighbors(x: Tensor, k: int) -> Tensor:
    """Do what `nearest_neighbors` does by comparing each sample with about a 32nd of the others."""
    import faiss

    rows, (n, d), lists = x.float().contiguous().numpy(), x.shape, int(4 * len(x) ** 0.5)
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, lists)
    index.cp.max_points_per_centroid, index.nprobe = 50, max(8, lists // 32)
    index.train(rows)
    index.add(rows)
    found = index.search(rows, k + 1)[1]
    itself = found == np.arange(n)[:, None]
    itself[:, -1] |= ~itself.any(1)  # a copy may be nearer
    return torch.from_numpy(found[~itself].reshape(n, k))
