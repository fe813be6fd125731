"""Where samples lie relative to classes, centres and neighbours. Chunked: no n × n matrix is ever held, on any device.

Shapes: n samples, d features, k classes or centres.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

from .metrics import cluster_sizes

_CHUNK, _CHUNK_CPU = 2**26, 2**22  # distances held at a time
_GROUP = 64  # distances of which at first only the least is compared


class ClassDistances(NamedTuple):
    """Of each sample (..., n): mean cosine distance to the rest of its class, to the nearest other class, and silhouette.

    A class of one has intra-class distance 0 and silhouette 0. With a single class there is no other: the inter-class
    distance and the silhouette are NaN.
    """

    intra: Tensor
    inter: Tensor
    silhouette: Tensor


@torch.no_grad()
def class_distances(z: Tensor, labels: Tensor) -> ClassDistances:
    """Class distances of embeddings z (..., n, d) under integer labels (..., n), in float64.

    The mean cosine distance to a class is 1 - u · m, with m the mean of its unit vectors: exact, in O(n k d). A vector
    of zeros is at distance 1 from everything.
    """
    _check(z, labels)
    unit = normalize(z.double(), dim=-1, eps=1e-300)  # float32 loses the distances of nearly parallel vectors
    own = torch.unique(labels, return_inverse=True)[1]
    sizes = cluster_sizes(own, int(own.max()) + 1)  # a class may be empty in one labeling and not in another
    sums = unit.new_zeros(*sizes.shape, z.shape[-1]).scatter_add_(-2, _each(own, z.shape[-1]), unit)
    intra, inter = torch.empty_like(unit[..., 0]), torch.empty_like(unit[..., 0])
    size = _rows(sizes.numel(), z.device)
    for u, label, near, far in zip(unit.split(size, -2), *(a.split(size, -1) for a in (own, intra, inter)), strict=True):
        others = (sizes.gather(-1, label) - 1).double()
        # Without the sample itself: its unit vector leaves the sum of its class.
        alike = ((sums.gather(-2, _each(label, z.shape[-1])) - u) * u).sum(-1)
        near.copy_(torch.where(others > 0, 1 - alike / others.clamp(min=1), 0.0))
        distance = 1 - (u @ sums.mT) / sizes.unsqueeze(-2)
        far.copy_(distance.nan_to_num(nan=torch.inf, posinf=torch.inf).scatter_(-1, label.unsqueeze(-1), torch.inf).amin(-1))
    intra, inter = intra.clamp_(min=0), inter.clamp_(min=0).masked_fill_(inter.isinf(), torch.nan)
    widest = torch.maximum(intra, inter)
    silhouette = torch.where(widest == 0, 0.0, (inter - intra) / widest)
    alone = (sizes.gather(-1, own) == 1) & ~inter.isnan()
    return ClassDistances(intra, inter, torch.where(alone, 0.0, silhouette))


def _each(labels: Tensor, d: int) -> Tensor:
    """(..., n) -> (..., n, d), to gather rows by."""
    return labels.unsqueeze(-1).expand(*labels.shape, d)


@torch.no_grad()
def squared_silhouette(z: Tensor, labels: Tensor) -> Tensor:
    """The silhouette of each sample with squared Euclidean distances, z (n, d), integer labels (n,) -> (n,), in float64.

    The mean squared distance to a class is |z - m|² plus the class's mean squared distance from its mean m: exact, in
    O(n k d). Classes of one have silhouette 0; a single class has NaN.
    """
    _check(z, labels)
    x = z.double() - z.double().mean(0)
    own, sizes = torch.unique(labels, return_inverse=True, return_counts=True)[1:]
    means = x.new_zeros(len(sizes), x.shape[-1]).index_add_(0, own, x) / sizes[:, None]
    spread = x.new_zeros(len(sizes)).index_add_(0, own, (x - means[own]).square().sum(-1)) / sizes
    parts = []
    for some, label in zip(*(torch.split(a, _rows(len(sizes), z.device)) for a in (x, own)), strict=True):
        distance = torch.cdist(some, means).square() + spread
        # Of its own class without itself: the same sum over one member less.
        near = distance.gather(1, label[:, None])[:, 0] * sizes[label] / (sizes[label] - 1).clamp(min=1)
        far = distance.scatter(1, label[:, None], torch.inf).amin(1)
        parts.append(torch.where(torch.maximum(near, far) == 0, 0.0, (far - near) / torch.maximum(near, far)))
    silhouette = torch.cat(parts)
    return torch.where(sizes[own] == 1, 0.0, silhouette) if len(sizes) > 1 else torch.full_like(silhouette, torch.nan)


@torch.no_grad()
def distance_ratio(z: Tensor, centers: Tensor) -> Tensor:
    """Distance to the nearest centre over that to the second nearest: z (..., n, d), centers (..., k, d) -> (..., n).

    0 on a centre, 1 half-way between two, and 1 where two centres coincide on the sample.
    """
    k = centers.shape[-2]
    if k < 2:
        raise ValueError(f"centers has {k} rows, a distance ratio needs at least 2.")
    z, centers = _at_least_float32(z), _at_least_float32(centers)
    parts = torch.split(z, _rows(z.shape[:-2].numel() * k, z.device), dim=-2)
    # Differences, not products: the ratio is about samples that are close to their centre.
    exact = "donot_use_mm_for_euclid_dist"
    nearest = [torch.cdist(part, centers, compute_mode=exact).topk(2, largest=False).values for part in parts]
    first, second = torch.cat(nearest, -2).unbind(-1)
    return torch.where(second == 0, 1.0, first / second)


def distance_ratio_histogram(z: Tensor, centers: Tensor, *, bins: int = 20) -> Tensor:
    """How many samples have a distance ratio in each of so many equal parts of [0, 1]: (..., bins).

    Edges are torch.linspace(0, 1, bins + 1); the last part includes 1. A ratio that is not a number is not counted.
    """
    ratio = distance_ratio(z, centers)
    part = (ratio * bins).clamp(max=bins - 1).nan_to_num(nan=bins).to(torch.int64)
    counts = part.new_zeros(*part.shape[:-1], bins + 1).scatter_add_(-1, part, torch.ones_like(part))
    return counts[..., :bins]


@torch.no_grad()
def local_purity(z: Tensor, labels: Tensor, *, neighbors: int = 10) -> Tensor:
    """Share of the Euclidean nearest neighbours, without oneself, that have the same label: (n, d), (n,) -> (n,)."""
    _check(z, labels)
    n = len(z)
    if not 1 <= neighbors < n:
        raise ValueError(f"neighbors={neighbors} must be at least 1 and below the number of samples, which is {n}.")
    x = _at_least_float32(z)
    x = x - x.mean(0)  # products lose digits when the data lies far from the origin
    # Squared distances less |x|² of the sample itself, which orders nothing, are one product.
    left = torch.cat([-2 * x, torch.ones_like(x[:, :1])], 1)
    right = pad(torch.cat([x, x.square().sum(-1, keepdim=True)], 1), (0, 0, 0, -n % _GROUP))
    right[n:, -1] = torch.inf  # nobody's neighbours, they fill up the last group
    index, rows, shares = torch.arange(n, device=z.device), _rows(n, z.device), []
    held = x.new_empty(min(n, rows), len(right))  # once: on a CPU fresh memory takes longer than the products
    for at in torch.split(index, rows):
        distance = torch.mm(left[at], right.mT, out=held[: len(at)])
        distance[index[: len(at)], at] = torch.inf
        near = _least(distance, neighbors).clamp(max=n - 1)  # where nothing is a number, those that fill up may be found
        shares.append((labels[near] == labels[at, None]).to(x.dtype).mean(-1))
    return torch.cat(shares)


def _least(distance: Tensor, count: int) -> Tensor:
    """Columns of the least numbers of each row, (m, n) -> (m, count), n a multiple of the size of a group.

    They lie in the groups of columns with the least minima, so most numbers are looked at once and never sorted.
    """
    minima = distance.unflatten(1, (-1, _GROUP)).amin(2)
    groups = minima.topk(min(count, minima.shape[1]), largest=False).indices
    columns = (groups.unsqueeze(2) * _GROUP + torch.arange(_GROUP, device=distance.device)).flatten(1)
    return columns.gather(1, distance.gather(1, columns).topk(count, largest=False).indices)


@torch.no_grad()
def extremes(z: Tensor, labels: Tensor, centers: Tensor, *, count: int) -> tuple[Tensor, Tensor]:
    """Row numbers of the samples nearest to the centre of their cluster, nearest first, and of those farthest from it, farthest
    first: z (..., n, d), labels (..., n), centers (..., k, d) -> two of (..., k, count), with -1 where samples are lacking."""
    own = centers.gather(-2, _each(labels, centers.shape[-1]))
    distances = (z - own).norm(dim=-1)
    found = []
    for sign in (1, -1):
        each = []
        for cluster in range(centers.shape[-2]):
            among = torch.where(labels == cluster, sign * distances, torch.inf)
            least, rows = among.topk(min(count, among.shape[-1]), largest=False)
            rows = torch.where(least.isinf(), -1, rows)
            each.append(pad(rows, (0, count - rows.shape[-1]), value=-1))
        found.append(torch.stack(each, dim=-2))
    return found[0], found[1]


def _at_least_float32(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _rows(distances: int, device: torch.device) -> int:
    """How many samples to take at a time when each has so many distances."""
    return max(1, (_CHUNK_CPU if device.type == "cpu" else _CHUNK) // max(1, distances))


def _check(z: Tensor, labels: Tensor) -> None:
    if z.ndim < 2 or labels.shape != z.shape[:-1]:
        raise ValueError(
            f"z has shape {tuple(z.shape)} and labels {tuple(labels.shape)}: (n, d) and (n,) are needed, "
            "one label for each sample."
        )
