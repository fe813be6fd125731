"""How the time of an epoch grows with samples, clusters, features and replicas: log axes and the fitted exponent.

    python benchmarks/scaling.py [--device cpu] [--picture scaling.svg]

IDEC without augmentation, batch 256, network d-1024-512-256-k. One quantity varies at a time, the others stay at their middle.
An exponent of 1 means proportional, of 0 that it costs nothing. Where a GPU is not busy, more replicas or features cost little.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from _epochs import epoch_seconds
from _records import write_record

from reclust import Execution, IDECObjective, KMeans, Recluster, Schedule, Settings
from reclust.data.inputs import ResidentInputs

MIDDLE = {"samples": 8_000, "clusters": 10, "features": 256, "replicas": 2}
RANGES = {
    "cpu": {"samples": (2_000, 4_000, 8_000, 16_000), "clusters": (5, 10, 20, 40, 80), "features": (64, 128, 256, 512, 1024),
            "replicas": (1, 2, 4, 8)},
    "cuda": {"samples": (8_000, 16_000, 32_000, 64_000, 128_000), "clusters": (10, 20, 40, 80, 160),
             "features": (128, 256, 512, 1024, 2048), "replicas": (1, 2, 5, 10, 20, 40)},
}


def seconds(execution: Execution, *, samples: int, clusters: int, features: int, replicas: int) -> float:
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(clusters, features, generator=generator)
    X = means[torch.arange(samples) % clusters] + torch.randn(samples, features, generator=generator)
    settings = Settings(n_clusters=clusters, objective=IDECObjective(), pretraining=None, clustering=Schedule(3),
                        first_centers=Recluster(KMeans(n_init=1, max_iter=2)))
    return epoch_seconds(ResidentInputs(X), settings, replicas=replicas, execution=execution)


def picture(measured: dict[str, dict], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3), layout="constrained")
    for axes, (name, seen) in zip(figure.subplots(1, len(measured), sharey=True), measured.items(), strict=True):
        axes.loglog(seen["values"], seen["seconds"], "o-")
        axes.set(xlabel=name, title=f"exponent {seen['exponent']:.2f}")
        axes.grid(visible=True, which="both", alpha=0.3)
    figure.axes[0].set_ylabel("seconds an epoch")
    figure.savefig(path)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=list(RANGES))
    options.add_argument("--picture", type=Path)
    arguments = options.parse_args()
    execution, measured = Execution(device=arguments.device, precision="auto"), {}
    for name, values in RANGES[arguments.device].items():
        times = [seconds(execution, **{**MIDDLE, name: value}) for value in values]
        # The last three points: at the small end fixed costs hide how it grows.
        exponent = float(np.polyfit(np.log(values[-3:]), np.log(times[-3:]), 1)[0])
        measured[name] = {"values": values, "seconds": times, "exponent": exponent}
        print(f"{name:9} exponent {exponent:.2f}   " + ", ".join(f"{v}: {t:.3f} s" for v, t in zip(values, times, strict=True)))
    if arguments.picture is not None:
        picture(measured, arguments.picture)
    print(f"record: {write_record(f'scaling_{arguments.device}', {'middle': MIDDLE}, measured)}")


if __name__ == "__main__":
    main()
