"""What BRB adds to training: its parts, by how many samples are reclustered and by which method.

    python benchmarks/brb_overhead.py [--device cpu --rows 5000 --replicas 1]

IDEC on MNIST's shapes. BRB fires at every second epoch here to be measured often; the overhead is given for an interval of
20 epochs, (20 × epoch + BRB) / (20 × epoch) - 1.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import mean, median
from typing import Any

import torch
from _epochs import Stopwatch, clustering_only, mnist_shaped
from _records import write_record

from reclust import Every, Execution, Recluster, ResetMomentum, Schedule, SoftReset, train
from reclust.data.inputs import Inputs
from reclust.interventions import GaussianMixture, KMeansPlusPlus, KMedoids, RandomCenters

INTERVAL, FIRINGS = 20, 3
PARTS = ("reset", "embedding", "clustering", "momentum")
METHODS = {"k-means++": KMeansPlusPlus(), "k-medoids": KMedoids(), "mixture": GaussianMixture(),
           "random": RandomCenters()}


def overhead(data: Inputs, recluster: Recluster, *, replicas: int, execution: Execution) -> dict[str, Any]:
    """Seconds of an epoch and of one firing, and what its parts take: means over the firings of a run, behind a short run
    that loads what is used for the first time."""
    settings = replace(clustering_only("idec", 3), intervention=Every(2, (SoftReset(0.8), recluster, ResetMomentum())))
    train(data, settings, seeds=range(replicas), execution=execution)
    watch = Stopwatch()
    result = train(data, replace(settings, clustering=Schedule(1 + 2 * FIRINGS)), seeds=range(replicas), monitors=[watch],
                   execution=execution)
    # Odd epochs train with nothing before them; epoch 0 also captures graphs.
    epoch = median(watch.epochs[1::2])
    firing = mean(watch.epochs[2::2]) - epoch
    spent = {part: result.seconds.get(f"clustering.{part}", 0.0) / FIRINGS for part in PARTS}
    return {"epoch": epoch, "firing": firing, "parts": spent, "overhead": firing / (INTERVAL * epoch)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--rows", type=int, default=70_000)
    options.add_argument("--replicas", type=int, nargs="+", default=[1, 40])
    options.add_argument("--precision", default="auto")
    arguments = options.parse_args()
    data, execution = mnist_shaped(arguments.rows), Execution(device=arguments.device, precision=arguments.precision)
    measured = {}
    for replicas in arguments.replicas:
        ways = {f"k-means, {size or 'all'}": Recluster(subsample=size) for size in (arguments.rows // 100, 10_000, None)}
        ways |= {f"{name}, 10000": Recluster(method) for name, method in METHODS.items()
                 if replicas == min(arguments.replicas) or name in ("k-means++", "random")}
        for name, recluster in ways.items():
            seen = overhead(data, recluster, replicas=replicas, execution=execution)
            measured[f"{replicas} replicas, {name}"] = seen
            parts = ", ".join(f"{part} {1e3 * seconds:.1f}" for part, seconds in seen["parts"].items())
            print(f"{replicas:3} replicas {name:16} adds {100 * seen['overhead']:.2f} %   epoch {seen['epoch']:.3f} s   "
                  f"one firing, ms: {parts}")
    print(f"record: {write_record(f'brb_overhead_{arguments.device}', vars(arguments), measured)}")


if __name__ == "__main__":
    main()
