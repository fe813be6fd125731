"""What `make demo` runs: IDEC on the embedded digits, from scratch and pretrained, each with and without BRB.

Several seeds train side by side, with random affine views of the images. Prints a table with k-means on raw pixels beside
it and saves the learning curves, with the resets marked, to demo-output/. Nothing is downloaded; labels only score.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from reclust import (
    BRB,
    Autoencoder,
    Evaluation,
    IDECObjective,
    Progress,
    Result,
    Schedule,
    Settings,
    metrics,
    train,
)
from reclust.data.augmentation.affine import Affine
from reclust.data.inputs import Inputs
from reclust.data.preparation import Preparation

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

VARIANTS = ("IDEC", "IDEC + BRB")
COLOURS = ("#0072B2", "#D55E00")
SCORES = ("accuracy", "nmi", "ari")
OUTPUT = Path("demo-output")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=4)
    options.add_argument("--epochs", type=int, default=40)
    options.add_argument("--record", type=Path, default=None, help="also write the numbers, with where they come from, here")
    given = options.parse_args()
    images, y = load_digits(return_X_y=True)
    inputs = Preparation.fit(images, (8, 8), standardize=True).inputs(images)

    started = time.perf_counter()
    fits = [KMeans(10, n_init=10, random_state=seed).fit(images).labels_ for seed in range(given.seeds)]
    rows = [("k-means on raw pixels", score_each(y, fits), time.perf_counter() - started)]
    panels = {}
    for start, pretraining in (("from scratch", None), ("pretrained", Schedule(epochs=20, batch_size=64, views=("clean",)))):
        started = time.perf_counter()
        result = run(inputs, y, pretraining, given.seeds, given.epochs)
        seconds = (time.perf_counter() - started) / len(VARIANTS)
        for number, variant in enumerate(VARIANTS):
            own = result.labels[number * given.seeds : (number + 1) * given.seeds]
            rows.append((f"{variant}, {start}", score_each(y, own), seconds))
        panels[start] = result
    show_table(rows, given.seeds)
    if given.record:
        write_record(given.record, rows, panels["from scratch"], vars(given))
    print(f"Learning curves: {draw(panels, given.seeds)}")


def run(inputs: Inputs, y: np.ndarray, pretraining: Schedule | None, seeds: int, epochs: int) -> Result:
    """Both variants and all their seeds in one stack of replicas."""
    plain = Settings(
        n_clusters=10,
        objective=IDECObjective(),
        representation=Autoencoder(hidden=(256, 128, 64)),
        pretraining=pretraining,
        clustering=Schedule(epochs=epochs, batch_size=64),
        augment=Affine(),
    )
    variants = [plain] * seeds + [replace(plain, intervention=BRB(interval=10, keep=0.8))] * seeds
    return train(inputs, variants, seeds=list(range(seeds)) * 2, monitors=[Progress(), Evaluation(y, every=2)])


def score_each(y: np.ndarray, labelings: list[np.ndarray]) -> dict[str, np.ndarray]:
    each = [metrics.scores(y, labels) for labels in labelings]
    return {name: 100 * np.array([one[name] for one in each]) for name in SCORES}


def show_table(rows: list[tuple[str, dict[str, np.ndarray], float]], seeds: int) -> None:
    print(f"\n{'digits, 1,797 images of 8 x 8':28}" + "".join(f"{name:>16}" for name in ("ACC", "NMI", "ARI", "seconds")))
    for name, scores, seconds in rows:
        cells = [f"{v.mean():.1f} ± {v.std(ddof=1) / np.sqrt(len(v)):.1f}" for v in scores.values()]
        print(f"{name:28}" + "".join(f"{cell:>16}" for cell in (*cells, f"{seconds:.1f}")))
    print(f"Mean ± standard error over {seeds} seeds; seconds for all of them. Both variants of a row pair train in one stack,")
    print("so each is given half of its time.\n")


def write_record(path: Path, rows: list[tuple[str, dict[str, np.ndarray], float]], result: Result, given: dict) -> None:
    scores = {name: {"seconds": seconds, **{score: values.tolist() for score, values in each.items()}}
              for name, each, seconds in rows}
    settings = {name: value for name, value in given.items() if name != "record"}
    record = {"command": "examples/demo.py", "settings": settings, "provenance": result.provenance, "scores": scores}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


def draw(panels: dict[str, Result], seeds: int) -> Path:
    figure, axes = plt.subplots(1, len(panels), figsize=(11, 4), sharey=True, layout="constrained")
    for axis, (start, result) in zip(axes, panels.items(), strict=True):
        curve, resets = result.history["clustering"]["accuracy"], result.history["clustering"]["fired"]
        for epoch in resets.epochs:
            axis.axvline(epoch, color="0.85", linewidth=1, zorder=0)
        for number, (variant, colour) in enumerate(zip(VARIANTS, COLOURS, strict=True)):
            values = 100 * curve.values[:, number * seeds : (number + 1) * seeds]
            mean, error = values.mean(1), values.std(1, ddof=1) / np.sqrt(seeds)
            axis.plot(curve.epochs, mean, color=colour, label=variant)
            axis.fill_between(curve.epochs, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
        axis.set(title=start, xlabel="epoch (grey lines: resets)")
    axes[0].set_ylabel("accuracy in %")
    axes[0].legend(frameon=False)
    OUTPUT.mkdir(exist_ok=True)
    figure.savefig(OUTPUT / "learning_curves.png", dpi=130)
    return OUTPUT / "learning_curves.png"


if __name__ == "__main__":
    main()
