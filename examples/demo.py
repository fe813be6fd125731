"""`make demo`: cluster scikit-learn's digits in under a minute on two cores.

1. k-means, UMAP + Gaussian mixture (if umap-learn is installed), and reclust, without labels.
2. What BRB does: IDEC from scratch, with and without it.

Writes the learning curves and an HTML report of the fit to demo-output/. Nothing is downloaded;
labels are only used to score.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.mixture import GaussianMixture

from reclust import (
    BRB,
    Autoencoder,
    Evaluation,
    IDECObjective,
    Progress,
    Reclust,
    Result,
    Schedule,
    Settings,
    metrics,
    train,
)

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OUTPUT = Path("demo-output")
SEEDS, EPOCHS = 3, 30
VARIANTS = {"IDEC from scratch": None, "IDEC from scratch + BRB": BRB(interval=8, keep=0.8)}
COLOURS = ("#0072B2", "#D55E00")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--fits", type=int, default=1, help="number of seeds in the first part")
    options.add_argument("--record", type=Path, help="also write the numbers to this file")
    arguments = options.parse_args()
    OUTPUT.mkdir(exist_ok=True)
    X, y = load_digits(return_X_y=True)

    rows: dict[str, dict[str, list[float]]] = {}
    line("digits: 1,797 images of 8 x 8", "ACC", "NMI", "ARI", "seconds")
    for name, method in METHODS.items():
        if method is umap_mixture and not find_spec("umap"):
            print(f"{name:30}    left out: pip install umap-learn")
            continue
        labels, seconds = timed(method, X, range(arguments.fits))
        rows[name] = show(name, y, labels, seconds)

    print(f"\nWhat BRB does, mean of {SEEDS} seeds without pretraining")
    [result], seconds = timed(from_scratch, X, [y])
    for number, name in enumerate(VARIANTS):
        labels = result.labels[number * SEEDS : (number + 1) * SEEDS]
        rows[name] = show(name, y, labels, [seconds[0] / len(VARIANTS)])

    draw(result, OUTPUT / "learning_curves.png")
    print(f"\nLearning curves: {OUTPUT / 'learning_curves.png'}")
    print(f"Report:          {OUTPUT / 'report.html'}")
    if arguments.record:
        command = f"examples/demo.py --fits {arguments.fits}"
        record = {"command": command, "provenance": result.provenance, "scores": rows}
        arguments.record.write_text(json.dumps(record, indent=1) + "\n")


def k_means(X: np.ndarray, seed: int) -> np.ndarray:
    return KMeans(10, n_init=10, random_state=seed).fit_predict(X)


def umap_mixture(X: np.ndarray, seed: int) -> np.ndarray:
    from umap import UMAP

    umap = UMAP(n_neighbors=20, n_components=10, min_dist=0.0, random_state=seed, n_jobs=1)
    mixture = GaussianMixture(10, n_init=5, reg_covar=1e-5, random_state=seed)
    return mixture.fit_predict(umap.fit_transform(X))


def reclust(X: np.ndarray, seed: int) -> np.ndarray:
    model = Reclust(10, image_shape=(8, 8), random_state=seed).fit(X)
    if seed == 0:
        model.report(OUTPUT / "report.html", X)
    return model.labels_


METHODS = {
    "k-means": k_means,
    "UMAP + Gaussian mixture": umap_mixture,
    "Reclust": reclust,
}


def from_scratch(X: np.ndarray, y: np.ndarray) -> Result:
    """Train both variants with all seeds in one stack."""
    plain = Settings(
        n_clusters=10,
        objective=IDECObjective(),
        representation=Autoencoder(hidden=(128, 64)),
        pretraining=None,
        clustering=Schedule(epochs=EPOCHS, batch_size=64),
    )
    variants = [replace(plain, intervention=brb) for brb in VARIANTS.values() for _ in range(SEEDS)]
    inputs = ((X - X.mean()) / X.std()).astype(np.float32)
    monitors = [Progress(), Evaluation(y, every=3)]
    return train(inputs, variants, seeds=list(range(SEEDS)) * len(VARIANTS), monitors=monitors)


def timed(
    function: Callable[..., Any], X: np.ndarray, arguments: Iterable[Any]
) -> tuple[list[Any], list[float]]:
    """Call the function with X and each argument: results and seconds."""
    results, seconds = [], []
    for argument in arguments:
        started = time.perf_counter()
        results.append(function(X, argument))
        seconds.append(time.perf_counter() - started)
    return results, seconds


def show(
    name: str, y: np.ndarray, labels: Iterable[np.ndarray], seconds: list[float]
) -> dict[str, list[float]]:
    """Print a line of the table and return its numbers."""
    fits = [metrics.scores(y, fit) for fit in labels]
    scores = {score: [100 * fit[score] for fit in fits] for score in ("accuracy", "nmi", "ari")}
    line(name, *map(mean_and_error, scores.values()), f"{np.mean(seconds):.0f}")
    return {**scores, "seconds": seconds}


def line(name: str, *cells: str) -> None:
    print(f"{name:30}" + "".join(f"{cell:>13}" for cell in cells), flush=True)


def mean_and_error(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.1f}"


def draw(result: Result, path: Path) -> None:
    """Draw the accuracy of both variants over epochs, with the resets marked."""
    figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
    curve, resets = result.history["clustering"]["accuracy"], result.history["clustering"]["fired"]
    for epoch in resets.epochs:
        axis.axvline(epoch, color="0.85", linewidth=1, zorder=0)
    for number, (name, colour) in enumerate(zip(VARIANTS, COLOURS, strict=True)):
        values = 100 * curve.values[:, number * SEEDS : (number + 1) * SEEDS]
        mean, error = values.mean(1), values.std(1, ddof=1) / np.sqrt(SEEDS)
        epochs = curve.epochs + 1
        axis.plot(epochs, mean, color=colour, label=name)
        axis.fill_between(epochs, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
    axis.set(xlabel="epochs (gray lines: resets)", ylabel="accuracy in %")
    axis.legend(frameon=False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
