"""Parts of a report as plain data: m epochs or samples, r replicas, s samples shown, k clusters."""

import base64
import struct
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from .. import metrics
from ..data import Dataset
from ..training.history import AFTER_RESET, Curve
from ..utils.values import records as records

Frame = tuple[tuple[int, int], np.ndarray, np.ndarray]  # (epochs, after a reset), z, centers
THUMBNAIL = 64  # largest side in pixels


def curve(columns: Mapping[str, Curve], name: str, *, limit: int = 100) -> dict[str, Any] | None:
    """Compute mean and deviation over replicas of a history column, None if nothing is finite."""
    # x counts trained epochs, so that values before and right after a reset share one x.
    before, after = columns[name], columns.get(name + AFTER_RESET)
    x, values = before.epochs + 1, before.values
    if after is not None and len(x) + len(after.epochs) <= limit:
        order = np.argsort(np.concatenate([x, after.epochs]), kind="stable")
        x = np.concatenate([x, after.epochs])[order]
        values = np.concatenate([values, after.values])[order]
    known = np.flatnonzero(np.isfinite(values).any(axis=1))
    if not len(known):
        return None
    shown = known[spread(len(known), limit)]
    finite = np.ma.masked_invalid(values[shown].astype(np.float64))
    return {"x": x[shown], "mean": finite.mean(axis=1).data,
            "std": finite.std(axis=1, ddof=1).filled(0.0)}


def scene(columns: Mapping[str, Curve], rows: np.ndarray, *, classes: np.ndarray | None = None,
          samples: int = 400, frames: int = 40) -> dict[str, Any] | None:
    """Project recorded embeddings (m, s, d) and centers (m, k, d), scaled alike, onto a plane."""
    taken = _frames(columns, frames)
    if not taken:
        return None
    shown = spread(len(rows), samples)
    pairs = [(points[shown].astype(np.float64), centers.astype(np.float64))
             for _, points, centers in taken]
    clusters = [((points[:, None] - centers) ** 2).sum(-1).argmin(1) for points, centers in pairs]
    placed = [_standardized(points, centers) for points, centers in pairs]
    directions = _plane(np.concatenate([points for points, _ in placed]))
    flat = np.stack([np.concatenate(pair) @ directions for pair in placed])
    # Outliers are clipped to the border.
    reach = 1.15 * float(np.quantile(np.abs(flat[:, : len(shown)]), 0.995)) or 1.0
    return {
        "frames": [{"epoch": epoch, "reset": moment == 1} for (epoch, moment), _, _ in taken],
        "points": _as_bytes(np.clip(flat / reach * 127 + 128, 0, 255)),
        "clusters": _as_bytes(np.stack(clusters)), "rows": rows[shown],
        "n_clusters": len(pairs[0][1]), "classes": None if classes is None else classes[shown]}


def embedding_map(z: np.ndarray, centers: np.ndarray, labels: np.ndarray, rows: np.ndarray, *,
                  classes: np.ndarray | None = None, samples: int = 5000) -> dict[str, Any]:
    """Project embeddings (m, d) and centers (k, d) onto a plane, as a scene of one frame."""
    shown = spread(len(z), samples)
    points, middles = _standardized(z[shown].astype(np.float64), centers.astype(np.float64))
    flat = np.concatenate([points, middles]) @ _plane(points)
    reach = 1.1 * float(np.quantile(np.abs(flat[: len(shown)]), 0.998)) or 1.0
    total = float((points**2).sum())
    return {
        "frames": [{"epoch": -1, "reset": False}],
        "points": _as_bytes(np.clip(flat / reach * 127 + 128, 0, 255)),
        "clusters": labels[shown], "rows": rows[shown], "n_clusters": len(centers),
        "classes": None if classes is None else [str(name) for name in classes[shown]],
        "share": float((flat[: len(shown)] ** 2).sum()) / total if total else 1.0}  # of variance


def _frames(columns: Mapping[str, Curve], limit: int) -> list[Frame]:
    """Select frames in order of time; those around a reset are kept or dropped together."""
    frames: list[Frame] = []
    for moment, ending in enumerate(("", AFTER_RESET)):
        if "embedding" + ending in columns:
            z, centers = columns["embedding" + ending], columns["centers" + ending]
            places = {epoch: i for i, epoch in enumerate(centers.epochs.tolist())}
            for epoch, points in zip(z.epochs.tolist(), z.values, strict=True):
                middles = centers.values[places[epoch]]
                if np.isfinite(points).all() and np.isfinite(middles).all():
                    frames.append(((epoch + 1 - moment, moment), points, middles))
    frames.sort(key=lambda frame: frame[0])
    if len(frames) <= limit:
        return frames
    resets = [epoch for (epoch, moment), *_ in frames if moment == 1]
    chosen = {resets[i] for i in spread(len(resets), (limit - 2) // 3)}
    ends = (frames[0][0], frames[-1][0])
    return [frame for frame in frames if frame[0] in ends or frame[0][0] in chosen
            or (frame[0][0] - 1 in chosen and frame[0][1] == 0)]


def _standardized(points: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = points.mean(0)
    scale = np.sqrt(((points - mean) ** 2).sum(1).mean()) or 1.0
    return (points - mean) / scale, (centers - mean) / scale


def _plane(points: np.ndarray) -> np.ndarray:
    """Return the two directions of largest variance, (d, 2), with the outermost point positive."""
    _, directions = np.linalg.eigh(points.T @ points)
    top = directions[:, ::-1][:, :2]
    along = points @ top
    top = top * np.sign(along[np.abs(along).argmax(0), np.arange(top.shape[1])])
    return np.pad(top, ((0, 0), (0, 2 - top.shape[1])))


def sheet(data: Dataset, labels: np.ndarray, nearest: np.ndarray,
          farthest: np.ndarray) -> dict[str, Any]:
    """Make a contact sheet of the samples nearest to each center and farthest from it, (k, s)."""
    shown = np.concatenate([nearest, farthest], axis=1).astype(np.int64)
    assert data.image_shape is not None
    channels, height, width = data.image_shape
    images = data.rows(np.maximum(shown, 0).reshape(-1))
    images = images.reshape(*shown.shape, height, width, channels).astype(np.float32)
    return {"nearest": nearest.shape[1],
            **contact_sheet(images / data.max_value, shown, labels, classes=data.labels)}


def contact_sheet(images: np.ndarray, shown: np.ndarray, labels: np.ndarray, *,
                  classes: np.ndarray | None = None) -> dict[str, Any]:
    """Combine images (k, s, h, w, 1 or 3) in [0, 1] of the samples shown (k, s), -1 for none."""
    clusters = []
    for cluster, samples in enumerate(shown):
        members = np.flatnonzero(labels == cluster)
        entry: dict[str, Any] = {"size": len(members), "samples": samples}
        if classes is not None:
            most_frequent = Counter(np.sort(classes[members])).most_common(3)
            entry |= {"classes": [str(name) for name in classes[samples]],
                      "counts": [(str(name), count) for name, count in most_frequent]}
        clusters.append(entry)
    step = -(-max(images.shape[-3:-1]) // THUMBNAIL)
    small = np.clip(images[..., ::step, ::step, :] * 255, 0, 255).astype(np.uint8)
    small[shown < 0] = 0
    k, s, height, width, channels = small.shape
    picture = png(small.swapaxes(1, 2).reshape(k * height, s * width, channels))
    return {"side": [height, width], "clusters": clusters,
            "picture": "data:image/png;base64," + base64.b64encode(picture).decode()}


def png(pixels: np.ndarray) -> bytes:
    """Encode bytes (h, w, 1 or 3) as PNG, so that reports do not need Pillow."""
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    lines = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0)))  # a line begins with filter 0
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content
        + struct.pack(">I", zlib.crc32(kind + content)) for kind, content in chunks)


def confusion(classes: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Count samples by class (rows) and cluster (columns), with matched pairs on the diagonal."""
    table = metrics.contingency(classes, labels)
    rows, columns = (indices.tolist() for indices in linear_sum_assignment(table, maximize=True))
    rows += sorted({*range(table.shape[0])} - {*rows})
    columns += sorted({*range(table.shape[1])} - {*columns})
    names, clusters = np.unique(classes), np.unique(labels)
    return {"classes": [str(names[row]) for row in rows],
            "clusters": [int(clusters[column]) for column in columns],
            "counts": table[rows][:, columns]}


def histogram(values: np.ndarray, *, bins: int = 20) -> dict[str, Any]:
    """Count finite values in equal bins of [0, 1], and return their median."""
    known = values[np.isfinite(values)]
    counts, _ = np.histogram(np.clip(known, 0.0, 1.0), bins=bins, range=(0.0, 1.0))
    return {"counts": counts, "median": float(np.median(known)) if len(known) else None}


def profiles(x: np.ndarray, labels: np.ndarray, k: int, names: Sequence[str], *,
             count: int = 8) -> list[list[dict[str, Any]]]:
    """Find the features of x (m, f) whose mean in a cluster deviates most from that of all."""
    x = x.astype(np.float64)
    mean, std = x.mean(0), x.std(0)
    varying = std > 1e-12 * np.maximum(np.abs(mean), 1e-300)
    result = []
    for cluster in range(k):
        members = x[labels == cluster]
        cluster_mean = members.mean(0) if len(members) else mean
        deviation = np.where(varying, (cluster_mean - mean) / np.where(varying, std, 1.0), 0.0)
        order = np.argsort(-np.abs(deviation), kind="stable")[:count]
        result.append([{"name": str(names[i]), "deviation": deviation[i], "mean": cluster_mean[i],
                        "overall": mean[i]} for i in order if varying[i]])
    return result


def effective_dimensions(z: np.ndarray) -> float:
    """Return how many directions the variance of z (m, d) spreads over: 1 for a line, d at most."""
    variances = np.linalg.eigvalsh(np.atleast_2d(np.cov(z.astype(np.float64).T))).clip(0.0)
    return float(variances.sum() ** 2 / (variances**2).sum()) if variances.sum() > 0 else 0.0


def spread(n: int, limit: int) -> list[int]:
    """Return at most `limit` evenly spaced positions out of n, with the first and the last."""
    positions = np.linspace(0, n - 1, min(n, max(limit, 2)))
    return np.unique(positions.round().astype(int)).tolist() if n else []


def _as_bytes(numbers: np.ndarray) -> str:
    return base64.b64encode(numbers.astype(np.uint8).tobytes()).decode()
