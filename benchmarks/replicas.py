"""Epochs of 1, 10 and 40 stacked replicas on MNIST's shapes, and how far a step is from the least it can take.

    python benchmarks/replicas.py                 on a GPU: 70,000 images, both precisions
    python benchmarks/replicas.py --device cpu    fewer rows, 1 and 4 replicas, against one after another

IDEC with augmentation, batch 256, as published; DCN at ten replicas. On a GPU the floor of a step is measured beside it: its
matrix products alone, and one pass of Adam over weights and moments, each as a CUDA graph.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from _epochs import clustering_only, epoch_seconds, mnist_shaped
from _records import best_times, write_record

from reclust import Execution

SIZES = (784, 1024, 512, 256, 10)
ROWS, BATCH = 70_000, 256


def graph_ms(work: Callable[[], object], repeats: int = 50) -> float:
    """Milliseconds of some GPU work, replayed as a graph."""
    work()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()

    def replay() -> None:
        for _ in range(repeats):
            graph.replay()
        torch.cuda.synchronize()

    return 1e3 * best_times(replay, repeats=3)[0] / repeats


def floor_ms(replicas: int, dtype: torch.dtype) -> dict[str, float]:
    layers = [*pairwise(SIZES), *pairwise(SIZES[::-1])]
    arguments = {"device": "cuda", "dtype": dtype}
    tensors = [(torch.randn(replicas, 2 * BATCH, i, **arguments), torch.randn(replicas, o, i, **arguments),
                torch.randn(replicas, 2 * BATCH, o, **arguments)) for i, o in layers]

    def products() -> None:
        for number, (x, weight, grad) in enumerate(tensors):
            x @ weight.mT, grad.mT @ x
            if number:
                grad @ weight

    # Adam reads weights, gradients and two moments and writes all but the gradients: seven passes, a copy makes two.
    numbers = replicas * sum(i * o + o for i, o in layers)
    one, other = torch.zeros(2, numbers, device="cuda")
    torch.set_float32_matmul_precision("high")
    return {"products": graph_ms(products), "adam": 3.5 * graph_ms(lambda: one.copy_(other))}


def on_gpu() -> dict[str, Any]:
    data, measured = mnist_shaped(ROWS), {}
    for precision in ("bf16", "float32"):
        execution = Execution(device="cuda", precision=precision)
        for algorithm, replicas in (("idec", 1), ("idec", 10), ("idec", 40), ("dcn", 10)):
            seconds = epoch_seconds(data, clustering_only(algorithm, 4), replicas=replicas, execution=execution)
            step = 1e3 * seconds / (ROWS // BATCH)
            floor = floor_ms(replicas, torch.bfloat16 if precision == "bf16" else torch.float32)
            measured[f"{precision}, {algorithm}, {replicas}"] = {
                "seconds_per_epoch": seconds, "per_replica": seconds / replicas, "step_ms": step,
                "floor_ms": floor, "step_over_floor": step / sum(floor.values()),
            }
            print(f"{precision:8} {algorithm:5} {replicas:3} replicas   {seconds:.3f} s an epoch   step {step:.2f} ms, "
                  f"{step / sum(floor.values()):.1f} times its floor")
    return measured


def on_cpu(rows: int) -> dict[str, Any]:
    data, execution, measured = mnist_shaped(rows), Execution(device="cpu"), {}
    for algorithm in ("idec", "dcn"):
        settings = clustering_only(algorithm, 4)
        times = {r: epoch_seconds(data, settings, replicas=r, execution=execution) for r in (1, 4)}
        measured[algorithm] = {"seconds_per_epoch": times, "stacked_over_one_after_another": times[4] / (4 * times[1])}
        print(f"{algorithm:5} 1 replica {times[1]:.2f} s an epoch, 4 stacked {times[4]:.2f}: "
              f"{times[4] / (4 * times[1]):.2f} times what one after another takes")
    return measured


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--rows", type=int, default=5_000, help="on the CPU")
    arguments = options.parse_args()
    measured = on_gpu() if arguments.device == "cuda" else on_cpu(arguments.rows)
    rows = ROWS if arguments.device == "cuda" else arguments.rows
    print(f"record: {write_record(f'replicas_{arguments.device}', {'rows': rows, 'batch': BATCH}, measured)}")


if __name__ == "__main__":
    main()
