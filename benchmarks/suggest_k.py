"""What `suggest_k` says of data whose number of groups is known, and of data without any, beside simpler rules.

    python benchmarks/suggest_k.py [set …]

Writes benchmarks/records/suggest_k.json and the figure docs/figures/choosing_k.svg. Sets that are named are measured again,
the others stay as they are in the record.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import numpy as np
import torch
from _records import RECORDS, write_record
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs
from sklearn.metrics import silhouette_score
from sklearn.preprocessing import StandardScaler

from reclust import KSuggestion, suggest_k
from reclust.estimators.suggest_k import STRONG, prediction_strength

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

FIGURE = RECORDS.parents[1] / "docs" / "figures" / "choosing_k.svg"
DRAWN = ("3 groups", "digits 0, 4, 7", "uniform, 10 features")


def digits(*classes: int) -> np.ndarray:
    found = load_digits()
    return found.images[np.isin(found.target, classes)] if classes else found.images


def long_group() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(600, 10)) * [4, 2, 1, 1, 1, 1, 1, 1, 1, 1] @ np.linalg.qr(rng.normal(size=(10, 10)))[0]


SETS: dict[str, tuple[Callable[[], np.ndarray], int | None, int]] = {
    "3 groups": (lambda: make_blobs(600, 10, centers=3, cluster_std=2.5, random_state=1)[0], 3, 6),
    "5 groups": (lambda: make_blobs(800, 10, centers=5, cluster_std=2.5, random_state=2)[0], 5, 7),
    "uniform, 10 features": (lambda: np.random.default_rng(0).random((600, 10)), None, 5),
    "uniform, 2 features": (lambda: np.random.default_rng(0).random((600, 2)), None, 5),
    "one Gaussian, 10 features": (lambda: np.random.default_rng(0).normal(size=(600, 10)), None, 5),
    "one long Gaussian": (long_group, None, 5),
    "iris": (lambda: load_iris().data, 3, 5),
    "wine": (lambda: load_wine().data, 3, 5),
    "breast cancer": (lambda: load_breast_cancer().data, 2, 5),
    "digits 0, 4, 7": (lambda: digits(0, 4, 7), 3, 5),
    "digits 0, 1, 3, 6": (lambda: digits(0, 1, 3, 6), 4, 6),
    "digits, all ten": (digits, 10, 12),
}
"""Name -> samples, the number of groups (None: there are none), and the largest k that is tried."""


def simpler(X: np.ndarray, ks: Sequence[int]) -> dict[str, int | None]:
    """What k-means on the (of tables: standardized) samples would say, by silhouette and by prediction strength."""
    X = StandardScaler().fit_transform(X) if X.ndim == 2 else X.reshape(len(X), -1)
    silhouettes = [silhouette_score(X, KMeans(k, n_init=10, random_state=0).fit_predict(X), sample_size=2000, random_state=0)
                   for k in ks]
    strong = [k for k in ks if np.mean([halves(X, k, seed) for seed in range(4)]) >= STRONG]
    return {"k-means silhouette": ks[int(np.argmax(silhouettes))], "k-means found again": max(strong, default=None)}


def halves(X: np.ndarray, k: int, seed: int) -> float:
    order = np.random.default_rng(seed).permutation(len(X))
    parts = [X[half] for half in np.array_split(order, 2)]
    models = [KMeans(k, n_init=10, random_state=seed).fit(part) for part in parts]
    return float(np.mean([prediction_strength(models[i].labels_, models[1 - i].predict(parts[i]), k) for i in (0, 1)]))


def measure(name: str) -> dict[str, Any]:
    make, groups, most = SETS[name]
    X, ks = make(), tuple(range(2, most + 1))
    started = time.process_time()
    found = suggest_k(X, ks)
    seconds = time.process_time() - started
    measures = {part: np.round(getattr(found, part), 4).tolist() for part in ("strength", "agreement", "resets", "silhouette")}
    rules = {"suggest_k": found.k, "silhouette in the embedding": found.by_silhouette,
             "highest agreement": ks[int(found.agreement[:, 0].argmax())], **simpler(X, ks)}
    print(f"{name}: {groups or 'no'} groups, {seconds:.0f} s of CPU\n{found}\n{rules}\n", flush=True)
    return {"samples": list(X.shape), "groups": groups, "ks": list(ks), "plausible": list(found.plausible), "rules": rules,
            "cpu_seconds": round(seconds, 1), **measures}


def draw(measured: dict[str, Any]) -> None:
    figure, panels = plt.subplots(1, len(DRAWN), figsize=(10, 3.1), layout="constrained", sharey=True)
    for panel, name in zip(panels, DRAWN, strict=True):
        own = measured[name]
        parts = {part: np.array(own[part]) for part in ("strength", "agreement", "resets", "silhouette")}
        made = KSuggestion(tuple(own["ks"]), **parts, n_samples=own["samples"][0])
        made.plot(panel)
        panel.set_title(f"{name}: {'no clear answer' if made.k is None else f'k = {made.k}'}", fontsize=10)
    figure.savefig(FIGURE)


def page_table(measured: dict[str, Any]) -> str:
    """What docs/guides/choosing_k.md shows."""
    names = ("suggest_k", "silhouette in the embedding", "highest agreement", "k-means silhouette", "k-means found again")
    lines = [["data", "groups", "`suggest_k`", "plausible", *names[1:]], ["---"] * 8]
    for name, own in measured.items():
        said = ["–" if own["rules"][rule] is None else str(own["rules"][rule]) for rule in names]
        lines.append([f"{name} ({' × '.join(map(str, own['samples']))})", str(own["groups"] or "none"), f"**{said[0]}**",
                      ", ".join(map(str, own["plausible"])) or "–", *said[1:]])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    torch.set_num_threads(1)
    path = RECORDS / "suggest_k.json"
    before = json.loads(path.read_text())["measured"] if path.exists() and sys.argv[1:] else {}
    for name in sys.argv[1:] or SETS:
        before[name] = measure(name)
        in_order = {one: before[one] for one in SETS if one in before}
        write_record("suggest_k", {"strong": STRONG, "replicas": 3, "splits": 2}, in_order)
    if all(name in before for name in DRAWN):
        draw(before)
    print(page_table(in_order))


if __name__ == "__main__":
    main()
