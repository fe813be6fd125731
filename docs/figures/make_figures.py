"""Draw the figures of the documentation: `python docs/figures/make_figures.py [NAME …]`.

Takes minutes on two cores; needs the extras plot and data, and scanpy for the journeys.
"""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import matplotlib
import numpy as np
import torch
from sklearn.datasets import load_digits

from reclust import (
    BRB,
    IDEC,
    Autoencoder,
    Evaluation,
    Every,
    IDECObjective,
    Recluster,
    ResetMomentum,
    Schedule,
    Settings,
    SoftReset,
    Step,
    Target,
    metrics,
    train,
    value,
)
from reclust.data.accept import accept
from reclust.data.augmentation.affine import Affine
from reclust.data.preparation import Preparation
from reclust.objectives import nearest
from reclust.training.monitors.analysis import EmbeddingRows

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.animation import FuncAnimation, PillowWriter  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

HERE = Path(__file__).parent
COLOURS = np.array(["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"])
SCRATCH = Settings(
    n_clusters=5, objective=IDECObjective(), representation=Autoencoder(hidden=(256, 128, 64), embedding=2), pretraining=None,
    clustering=Schedule(epochs=40, batch_size=64), augment=Affine(),
)
matplotlib.rcParams.update({"svg.hashsalt": "reclust", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False})

SEEN: list[tuple[np.ndarray, np.ndarray]] = []
"""Embeddings and centers, recorded by `Look`."""


@value
class Look(Step):
    """Record embeddings and centers without changing anything."""

    part: ClassVar[str] = "look"

    def __call__(self, target: Target) -> None:
        SEEN.append((target.embed()[0].numpy(), target.centers[0].clone().numpy()))


def scene(axis: Axes, z: np.ndarray, centers: np.ndarray, y: np.ndarray, title: str) -> None:
    """Draw embeddings colored by their true digit, centers, and the borders between clusters."""
    low, high = z.min(0), z.max(0)
    low, high = low - 0.08 * (high - low), high + 0.08 * (high - low)
    across, up = np.meshgrid(np.linspace(low[0], high[0], 160), np.linspace(low[1], high[1], 160))
    cells = nearest(torch.from_numpy(np.stack([across, up], -1).reshape(-1, 2)).float(), torch.from_numpy(centers)).numpy()
    axis.clear()
    for cluster in range(len(centers)):
        axis.contour(across, up, (cells == cluster).reshape(across.shape), levels=[0.5], colors="0.6", linewidths=0.7)
    axis.scatter(*z.T, c=COLOURS[y], s=4, linewidths=0)
    axis.scatter(*centers.T, marker="X", s=70, c="black", edgecolors="white")
    labels = nearest(torch.from_numpy(z), torch.from_numpy(centers)).numpy()
    axis.set(title=f"{title}\naccuracy {100 * metrics.accuracy(y, labels):.0f} %", xticks=[], yticks=[])


def one_reset(images: np.ndarray, y: np.ndarray) -> None:
    """Draw one run with one reset, in four pictures and as an animation.

    Seed 4 was picked as the clearest of seeds 0 to 7.
    """
    sentence = Every(20, (Look(), SoftReset(0.8), Look(), Recluster(), Look(), ResetMomentum()))
    inputs = Preparation.fit(accept(images, image_shape=(8, 8)), standardize=True).inputs(images)
    rows = EmbeddingRows(range(len(y)), epochs=range(-1, 40))
    seen = train(inputs, replace(SCRATCH, intervention=sentence), seeds=[4], monitors=[rows]).history["clustering"]
    over_time = [(z[0], c[0]) for z, c in zip(seen["embedding"].values, seen["centers"].values, strict=True)]

    pictures = [(*SEEN[0], "before"), (*SEEN[1], "encoder softly reset"), (*SEEN[2], "reclustered"),
                (*over_time[-1], "20 epochs later")]
    figure, axes = plt.subplots(1, 4, figsize=(11, 3.1), layout="constrained")
    for number, (axis, (z, centers, title)) in enumerate(zip(axes, pictures, strict=True)):
        scene(axis, z, centers, y, f"{number + 1}. {title}")
    figure.savefig(HERE / "reset.png", dpi=110)

    frames = [(*pair, f"epoch {epoch}") for epoch, pair in zip(seen["embedding"].epochs + 1, over_time, strict=True)]
    at = 21  # frame 20 is the state right before the reset
    frames[at:at] = [(*SEEN[step], title) for step, title in ((1, "soft reset"), (1, "soft reset"), (1, "soft reset"),
                                                              (2, "reclustered"), (2, "reclustered"), (2, "reclustered"))]
    figure, axis = plt.subplots(figsize=(4, 4.2), layout="constrained")
    film = FuncAnimation(figure, lambda i: scene(axis, *frames[i][:2], y, frames[i][2]), frames=len(frames))
    film.save(HERE / "reset.gif", writer=PillowWriter(fps=5), dpi=75)


def each_part(images: np.ndarray, y: np.ndarray) -> None:
    """Draw learning curves from scratch: no intervention, each half of BRB alone, both."""
    plain = replace(SCRATCH, n_clusters=10, representation=Autoencoder(hidden=(256, 128, 64)))
    sentences = {"no intervention": None, "recluster only": Every(10, (Recluster(),)),
                 "reset only": Every(10, (SoftReset(0.8),)), "BRB": BRB(10, 0.8)}
    seeds = range(3)
    variants = [replace(plain, intervention=sentence) for sentence in sentences.values() for _ in seeds]
    inputs = Preparation.fit(accept(images, image_shape=(8, 8)), standardize=True).inputs(images)
    result = train(inputs, variants, seeds=[*seeds] * len(sentences), monitors=[Evaluation(y, every=2)])
    curve = result.history["clustering"]["accuracy"]
    figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
    for epoch in (10, 20, 30):
        axis.axvline(epoch, color="0.88", zorder=0)
    each = 100 * curve.values.reshape(len(curve.epochs), len(sentences), len(seeds))
    for number, name in enumerate(sentences):
        axis.plot(curve.epochs + 1, each[:, number], color=COLOURS[number], alpha=0.25, linewidth=0.8)
        axis.plot(curve.epochs + 1, each[:, number].mean(-1), color=COLOURS[number], label=name, linewidth=2)
    axis.set(xlabel="epochs trained (grey: when interventions fire)", ylabel="accuracy in %")
    axis.legend(frameon=False)
    figure.savefig(HERE / "each_part.svg", metadata={"Date": None})


def best_of_many(images: np.ndarray, y: np.ndarray) -> None:
    """Draw the label-free score of the replicas of one fit against their accuracy."""
    model = IDEC(10, image_shape=(8, 8), augment="affine", representation=Autoencoder(hidden=(256, 128)), n_init=6,
                 batch_size=128, pretrain_epochs=15, epochs=35, random_state=0).fit(images)
    scores = np.array([replica.score for replica in model.replicas_])
    right = np.array([100 * metrics.accuracy(y, replica.labels) for replica in model.replicas_])
    figure, axis = plt.subplots(figsize=(4.4, 3.2), layout="constrained")
    axis.scatter(100 * scores, right, color=COLOURS[0], label="replica")
    kept = model.best_replica_
    axis.scatter(100 * scores[kept], right[kept], s=160, facecolors="none", edgecolors=COLOURS[1], linewidths=2, label="kept")
    axis.set(xlabel="score: shared information of samples and their views, %", ylabel="accuracy in %")
    axis.legend(frameon=False)
    figure.savefig(HERE / "best_of_many.svg", metadata={"Date": None})


def journeys() -> None:
    """Draw the last model of each script in examples/journeys."""
    os.chdir(tempfile.mkdtemp())  # for the files that they write
    for script in sorted(HERE.parents[1].glob("examples/journeys/*.py")):
        ran = runpy.run_path(str(script))
        figure, axes = plt.subplots(figsize=(3.6, 2.4), layout="constrained")
        ran["model"].plot(ax=axes)
        figure.savefig(HERE / f"journey_{script.stem}.png", dpi=120, metadata={"Software": None})
        plt.close(figure)


def main() -> None:
    images, y = load_digits(return_X_y=True)
    drawn = {"reset": lambda: one_reset(images[y < 5], y[y < 5]), "each_part": lambda: each_part(images, y),
             "best_of_many": lambda: best_of_many(images, y), "journeys": journeys}
    for name in sys.argv[1:] or drawn:
        drawn[name]()


if __name__ == "__main__":
    main()
