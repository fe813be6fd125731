"""What a report shows, each part as plain data from arrays, so that studies and single fits look the same.

Shapes: m epochs, r replicas, n samples, s samples shown, d embedding size, k clusters.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from .. import metrics
from ..data import Dataset
from ..training.history import AFTER_RESET, Curve
from ..utils.values import expanded
from .png import png

Record = list[tuple[str, str]]
SIDE = 32
"""Pixels of a thumbnail, at most."""


def curve(columns: Mapping[str, Curve], name: str, *, limit: int = 100) -> dict[str, Any] | None:
    """Mean and deviation over replicas of one column of a history, at most `limit` points; None where it holds no number.

    x counts epochs that were trained, so that what was measured right after a reset stands above what was measured before.
    """
    own, after = columns[name], columns.get(name + AFTER_RESET)
    x, values = own.epochs + 1, own.values
    if after is not None and len(x) + len(after.epochs) <= limit:
        order = np.argsort(np.concatenate([x, after.epochs]), kind="stable")
        x, values = (np.concatenate(pair)[order] for pair in ((x, after.epochs), (values, after.values)))
    known = np.isfinite(values).any(axis=1)
    x, values = x[known], values[known].astype(np.float64)
    if not len(x):
        return None
    kept = spread(len(x), limit)
    x, values = x[kept], values[kept]
    finite = np.isfinite(values)
    n = finite.sum(axis=1)
    mean = np.where(finite, values, 0.0).sum(axis=1) / n
    squares = np.where(finite, values - mean[:, None], 0.0) ** 2
    return {"x": x, "mean": mean, "std": np.sqrt(squares.sum(axis=1) / np.maximum(n - 1, 1))}


def scene(columns: Mapping[str, Curve], rows: np.ndarray, *, classes: np.ndarray | None = None, samples: int = 400,
          frames: int = 40) -> dict[str, Any] | None:
    """One replica's embeddings over training as frames of a plane, None where there are none.

    columns: of the clustering phase, as the monitor `EmbeddingRows` records them, values (m, s, d) and (m, k, d).
    rows: the samples they belong to, (s,). classes: of these, (s,). A compact store has centres at more epochs than embeddings.

    All frames are shown from one direction, that of the two largest variances over all of them; each is centred and brought
    to the same spread, since lengths change a lot and directions are what is compared.
    """
    taken = _frames(columns, frames)
    if not taken:
        return None
    kept = spread(len(rows), samples)
    z = [np.asarray(points, dtype=np.float64)[kept] for _, points, _ in taken]
    centers = [np.asarray(points, dtype=np.float64) for _, _, points in taken]
    clusters = [((points[:, None] - own) ** 2).sum(-1).argmin(1) for points, own in zip(z, centers, strict=True)]
    placed = [centred(points, own) for points, own in zip(z, centers, strict=True)]
    directions = plane(np.concatenate([points for points, _ in placed]))
    flat = [np.concatenate(pair) @ directions for pair in placed]
    reach = 1.15 * float(np.quantile(np.abs(np.stack(flat)[:, : len(kept)]), 0.995)) or 1.0  # what lies farther out is moved in
    return {
        "frames": [{"epoch": epoch, "reset": moment == 1} for (epoch, moment), _, _ in taken],
        "points": as_bytes(np.clip(np.stack(flat) / reach * 127 + 128, 0, 255)),
        "clusters": as_bytes(np.stack(clusters)), "rows": rows[kept], "n_clusters": len(centers[0]),
        "classes": None if classes is None else classes[kept],
    }


def _frames(columns: Mapping[str, Curve], limit: int) -> list[tuple[tuple[int, int], np.ndarray, np.ndarray]]:
    """(epochs trained, 1 right after a reset), embeddings and centres in the order of time; those around one reset are kept or
    left out together."""
    found = []
    for moment, ending in enumerate(("", AFTER_RESET)):
        if "embedding" + ending in columns:
            z, centers = columns["embedding" + ending], columns["centers" + ending]
            places = {epoch: i for i, epoch in enumerate(centers.epochs.tolist())}
            found += [((epoch + 1 - moment, moment), points, centers.values[places[epoch]])
                      for epoch, points in zip(z.epochs.tolist(), z.values, strict=True)]
    found = sorted(((*frame,) for frame in found if all(np.isfinite(part).all() for part in frame[1:])), key=lambda one: one[0])
    if len(found) <= limit:
        return found
    resets = [epoch for (epoch, moment), *_ in found if moment == 1]
    chosen = {resets[i] for i in spread(len(resets), (limit - 2) // 3)}
    ends = (found[0][0], found[-1][0])
    return [one for one in found if one[0] in ends or one[0][0] in chosen or (one[0][0] - 1 in chosen and one[0][1] == 0)]


def centred(points: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both moved and scaled so that the points have mean 0 and mean square length 1."""
    middle = points.mean(0)
    size = np.sqrt(((points - middle) ** 2).sum(1).mean()) or 1.0
    return (points - middle) / size, (centers - middle) / size


def plane(points: np.ndarray) -> np.ndarray:
    """(d, 2): the directions of largest variance, such that the outermost point is on the positive side; zeros where d is 1."""
    _, directions = np.linalg.eigh(points.T @ points)
    top = directions[:, ::-1][:, :2]
    along = points @ top
    top = top * np.sign(along[np.abs(along).argmax(0), np.arange(top.shape[1])])
    return np.pad(top, ((0, 0), (0, 2 - top.shape[1])))


def sheet(data: Dataset, labels: np.ndarray, nearest: np.ndarray, farthest: np.ndarray) -> dict[str, Any]:
    """Contact sheet of a set of images: for each cluster the (k, s) samples nearest to its centre, then the farthest ones.

    labels: the clusters of all samples. Places of clusters with fewer samples are -1.
    """
    shown = np.concatenate([nearest, farthest], axis=1).astype(np.int64)
    assert data.image_shape is not None
    channels, height, width = data.image_shape
    images = data.rows(np.maximum(shown, 0).reshape(-1)).reshape(*shown.shape, height, width, channels)
    images = images.astype(np.float32) / data.max_value
    return contact_sheet(images, shown, labels, classes=data.labels) | {"nearest": nearest.shape[1]}


def contact_sheet(images: np.ndarray, shown: np.ndarray, labels: np.ndarray, *,
                  classes: np.ndarray | None = None) -> dict[str, Any]:
    """Images (k, s, h, w, 1 or 3) in [0, 1] of the samples shown, (k, s), as one picture with a line for each cluster; nothing
    where a sample is -1. labels, classes: of all samples."""
    clusters = []
    for cluster, samples in enumerate(shown):
        members = np.flatnonzero(labels == cluster)
        entry: dict[str, Any] = {"size": len(members), "samples": samples}
        if classes is not None:
            entry |= {"classes": [str(one) for one in classes[samples]], "counts": _largest(classes[members])}
        clusters.append(entry)
    small = np.where((shown >= 0)[..., None, None, None], thumbnails(images), 0).astype(np.uint8)
    k, s, height, width, channels = small.shape
    picture = png(small.swapaxes(1, 2).reshape(k * height, s * width, channels))
    return {"side": [height, width], "clusters": clusters,
            "picture": "data:image/png;base64," + base64.b64encode(picture).decode()}


def thumbnails(images: np.ndarray) -> np.ndarray:
    """(..., h, w, c) in [0, 1] -> the same as bytes, no side longer than SIDE."""
    step = -(-max(images.shape[-3:-1]) // SIDE)
    return np.clip(images[..., ::step, ::step, :] * 255, 0, 255).astype(np.uint8)


def _largest(classes: np.ndarray) -> list[tuple[str, int]]:
    """The three most frequent classes with their counts."""
    names, counts = np.unique(classes, return_counts=True)
    return [(str(names[i]), int(counts[i])) for i in np.argsort(-counts, kind="stable")[:3]]


def confusion(classes: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Counts with a row for each class and a column for each cluster that has samples, matched ones on the diagonal."""
    table = metrics.contingency(classes, labels)
    rows, columns = linear_sum_assignment(table, maximize=True)
    matched = [column for _, column in sorted(zip(rows.tolist(), columns.tolist(), strict=True))]
    order = [*matched, *(column for column in range(table.shape[1]) if column not in matched)]
    top = [*sorted(rows.tolist()), *(row for row in range(len(table)) if row not in rows)]
    names, clusters = np.unique(classes), np.unique(labels)
    return {"classes": [str(names[row]) for row in top], "clusters": [int(clusters[column]) for column in order],
            "counts": table[top][:, order]}


def records(thing: Any, name: str = "") -> Record:
    """A value, or a mapping, as lines of a dotted name and a text: what settings and provenance are shown as."""
    thing = expanded(thing)
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        own = [(name, type(thing).__name__)] if name else []
        return own + [line for field in dataclasses.fields(thing)
                      for line in records(getattr(thing, field.name), f"{name}.{field.name}".lstrip("."))]
    if isinstance(thing, Mapping):
        return [line for key, part in thing.items() for line in records(part, f"{name}.{key}".lstrip("."))]
    if isinstance(thing, (list, tuple)) and any(dataclasses.is_dataclass(part) for part in thing):
        return [line for i, part in enumerate(thing, 1) for line in records(part, f"{name}.{i}".lstrip("."))]
    return [(name, _text(thing))]


def _text(thing: Any) -> str:
    if isinstance(thing, (list, tuple)):
        return ", ".join(map(_text, thing))
    return f"{thing:g}" if isinstance(thing, float) else "none" if thing is None else str(thing)


def spread(n: int, limit: int) -> list[int]:
    """At most `limit` of n positions, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, max(limit, 2))).round().astype(int)).tolist() if n else []


def as_bytes(numbers: np.ndarray) -> str:
    """Whole numbers from 0 to 255 as base64."""
    return base64.b64encode(numbers.astype(np.uint8).tobytes()).decode()
