"""Parts of a report as plain data, shared by reports of studies and of single fits.

Shapes: m epochs, r replicas, n samples, s samples shown, d embedding size, k clusters.
"""

from __future__ import annotations

import base64
import dataclasses
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from .. import metrics
from ..data import Dataset
from ..training.history import AFTER_RESET, Curve
from ..utils.values import expanded

Record = list[tuple[str, str]]
THUMBNAIL = 32
"""Largest side of a thumbnail in pixels."""


def curve(columns: Mapping[str, Curve], name: str, *, limit: int = 100) -> dict[str, Any] | None:
    """Compute mean and deviation over replicas of a history column, at most `limit` points.

    x counts trained epochs, so that values before and right after a reset share one x. None if
    the column has no finite value.
    """
    own, after = columns[name], columns.get(name + AFTER_RESET)
    x, values = own.epochs + 1, own.values
    if after is not None and len(x) + len(after.epochs) <= limit:
        order = np.argsort(np.concatenate([x, after.epochs]), kind="stable")
        x = np.concatenate([x, after.epochs])[order]
        values = np.concatenate([values, after.values])[order]
    known = np.isfinite(values).any(axis=1)
    if not known.any():
        return None
    kept = spread(int(known.sum()), limit)
    x, values = x[known][kept], values[known][kept].astype(np.float64)
    finite = np.isfinite(values)
    n = finite.sum(axis=1)
    mean = np.where(finite, values, 0.0).sum(axis=1) / n
    squares = np.where(finite, values - mean[:, None], 0.0) ** 2
    return {"x": x, "mean": mean, "std": np.sqrt(squares.sum(axis=1) / np.maximum(n - 1, 1))}


def scene(columns: Mapping[str, Curve], rows: np.ndarray, *, classes: np.ndarray | None = None,
          samples: int = 400, frames: int = 40) -> dict[str, Any] | None:
    """Project one replica's embeddings over training onto a plane, one frame per moment.

    columns: history of the clustering phase with the curves of the `EmbeddingRows` monitor,
    (m, s, d) and (m, k, d); without them the scene is None. rows, classes: of the samples, (s,).

    All frames share one plane, that of the two largest variances. Each frame is centered and
    scaled to the same spread, since scales change a lot during training.
    """
    taken = _frames(columns, frames)
    if not taken:
        return None
    kept = spread(len(rows), samples)
    z = [np.asarray(points, dtype=np.float64)[kept] for _, points, _ in taken]
    centers = [np.asarray(points, dtype=np.float64) for _, _, points in taken]
    clusters = [((points[:, None] - own) ** 2).sum(-1).argmin(1)
                for points, own in zip(z, centers, strict=True)]
    placed = [standardized(points, own) for points, own in zip(z, centers, strict=True)]
    directions = plane(np.concatenate([points for points, _ in placed]))
    flat = np.stack([np.concatenate(pair) @ directions for pair in placed])
    # Outliers are clipped to the border.
    reach = 1.15 * float(np.quantile(np.abs(flat[:, : len(kept)]), 0.995)) or 1.0
    return {
        "frames": [{"epoch": epoch, "reset": moment == 1} for (epoch, moment), _, _ in taken],
        "points": as_bytes(np.clip(flat / reach * 127 + 128, 0, 255)),
        "clusters": as_bytes(np.stack(clusters)), "rows": rows[kept], "n_clusters": len(centers[0]),
        "classes": None if classes is None else classes[kept],
    }


Frame = tuple[tuple[int, int], np.ndarray, np.ndarray]
"""(Trained epochs, 1 right after a reset), embeddings and centers."""


def _frames(columns: Mapping[str, Curve], limit: int) -> list[Frame]:
    """Select frames in order of time; those around a reset are kept or dropped together."""
    found: list[Frame] = []
    for moment, ending in enumerate(("", AFTER_RESET)):
        if "embedding" + ending in columns:
            z, centers = columns["embedding" + ending], columns["centers" + ending]
            places = {epoch: i for i, epoch in enumerate(centers.epochs.tolist())}
            for epoch, points in zip(z.epochs.tolist(), z.values, strict=True):
                own = centers.values[places[epoch]]
                if np.isfinite(points).all() and np.isfinite(own).all():
                    found.append(((epoch + 1 - moment, moment), points, own))
    found.sort(key=lambda frame: frame[0])
    if len(found) <= limit:
        return found
    resets = [epoch for (epoch, moment), *_ in found if moment == 1]
    chosen = {resets[i] for i in spread(len(resets), (limit - 2) // 3)}
    ends = (found[0][0], found[-1][0])
    return [frame for frame in found if frame[0] in ends or frame[0][0] in chosen
            or (frame[0][0] - 1 in chosen and frame[0][1] == 0)]


def standardized(points: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shift and scale both so that the points have mean 0 and mean squared length 1."""
    mean = points.mean(0)
    scale = np.sqrt(((points - mean) ** 2).sum(1).mean()) or 1.0
    return (points - mean) / scale, (centers - mean) / scale


def plane(points: np.ndarray) -> np.ndarray:
    """Return the two directions of largest variance, (d, 2), padded with zeros if d is 1.

    The sign of a direction is chosen so that the outermost point is on its positive side.
    """
    _, directions = np.linalg.eigh(points.T @ points)
    top = directions[:, ::-1][:, :2]
    along = points @ top
    top = top * np.sign(along[np.abs(along).argmax(0), np.arange(top.shape[1])])
    return np.pad(top, ((0, 0), (0, 2 - top.shape[1])))


def sheet(data: Dataset, labels: np.ndarray, nearest: np.ndarray,
          farthest: np.ndarray) -> dict[str, Any]:
    """Make a contact sheet of the samples nearest to each center and farthest from it, (k, s) each.

    labels: clusters of all samples. -1 stands for no sample, in clusters with fewer than s.
    """
    shown = np.concatenate([nearest, farthest], axis=1).astype(np.int64)
    assert data.image_shape is not None
    channels, height, width = data.image_shape
    images = data.rows(np.maximum(shown, 0).reshape(-1))
    images = images.reshape(*shown.shape, height, width, channels).astype(np.float32)
    made = contact_sheet(images / data.max_value, shown, labels, classes=data.labels)
    return made | {"nearest": nearest.shape[1]}


def contact_sheet(images: np.ndarray, shown: np.ndarray, labels: np.ndarray, *,
                  classes: np.ndarray | None = None) -> dict[str, Any]:
    """Combine images (k, s, h, w, 1 or 3) in [0, 1] into one picture with a row for each cluster.

    shown: the samples, (k, s), or -1 for none. labels, classes: of all samples.
    """
    clusters = []
    for cluster, samples in enumerate(shown):
        members = np.flatnonzero(labels == cluster)
        entry: dict[str, Any] = {"size": len(members), "samples": samples}
        if classes is not None:
            entry |= {"classes": [str(name) for name in classes[samples]],
                      "counts": _most_frequent(classes[members])}
        clusters.append(entry)
    step = -(-max(images.shape[-3:-1]) // THUMBNAIL)
    small = np.clip(images[..., ::step, ::step, :] * 255, 0, 255).astype(np.uint8)
    small = np.where((shown >= 0)[..., None, None, None], small, 0).astype(np.uint8)
    k, s, height, width, channels = small.shape
    picture = png(small.swapaxes(1, 2).reshape(k * height, s * width, channels))
    return {"side": [height, width], "clusters": clusters,
            "picture": "data:image/png;base64," + base64.b64encode(picture).decode()}


def png(pixels: np.ndarray) -> bytes:
    """Encode bytes (h, w, 1 or 3) as PNG, so that reports do not need Pillow."""
    height, width, channels = pixels.shape
    color_type = {1: 0, 3: 2}[channels]
    header = struct.pack(">IIBBBBB", width, height, 8, color_type, 0, 0, 0)
    lines = np.zeros((height, 1 + width * channels), dtype=np.uint8)  # a line begins with filter 0
    lines[:, 1:] = pixels.reshape(height, -1)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content
        + struct.pack(">I", zlib.crc32(kind + content)) for kind, content in chunks)


def _most_frequent(classes: np.ndarray) -> list[tuple[str, int]]:
    names, counts = np.unique(classes, return_counts=True)
    return [(str(names[i]), int(counts[i])) for i in np.argsort(-counts, kind="stable")[:3]]


def confusion(classes: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Count samples by class (rows) and cluster (columns), with matched pairs on the diagonal."""
    table = metrics.contingency(classes, labels)
    rows, columns = (found.tolist() for found in linear_sum_assignment(table, maximize=True))
    rows += [row for row in range(len(table)) if row not in rows]
    columns += [column for column in range(table.shape[1]) if column not in columns]
    names, clusters = np.unique(classes), np.unique(labels)
    return {"classes": [str(names[row]) for row in rows],
            "clusters": [int(clusters[column]) for column in columns],
            "counts": table[rows][:, columns]}


def records(value: Any, name: str = "") -> Record:
    """Flatten settings or provenance to pairs of a dotted name and a text."""
    value = expanded(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return ([(name, type(value).__name__)] if name else []) + records(parts, name)
    if isinstance(value, (list, tuple)) and any(map(dataclasses.is_dataclass, value)):
        value = dict(enumerate(value, 1))
    if isinstance(value, Mapping):
        return [line for key, part in value.items()
                for line in records(part, f"{name}.{key}".lstrip("."))]
    return [(name, _text(value))]


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)


def spread(n: int, limit: int) -> list[int]:
    """Return at most `limit` evenly spaced positions out of n, with the first and the last."""
    positions = np.linspace(0, n - 1, min(n, max(limit, 2)))
    return np.unique(positions.round().astype(int)).tolist() if n else []


def as_bytes(numbers: np.ndarray) -> str:
    """Encode integers from 0 to 255 as base64."""
    return base64.b64encode(numbers.astype(np.uint8).tobytes()).decode()
