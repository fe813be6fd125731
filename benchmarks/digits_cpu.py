"""preset="best" on the bundled digits with a CPU alone: accuracy and seconds of whole fits, two threads each.

    python benchmarks/digits_cpu.py [--repetitions 5] [--processes 1]

No labels are used in training or in choosing; they only score what was kept. Where there are cores for it, repetitions can run
side by side in processes of their own, which makes none of them faster.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from _records import write_record
from sklearn.datasets import load_digits

from reclust import IDEC, metrics

SECONDS, THREADS = 300, 2


def repetition(seed: int) -> dict[str, Any]:
    X, y = load_digits(return_X_y=True)
    started = time.perf_counter()
    model = IDEC(10, image_shape=(8, 8), preset="best", device="cpu", random_state=seed, progress=False).fit(X)
    seconds = time.perf_counter() - started
    replicas = [100 * metrics.accuracy(y, one.labels) for one in model.replicas_]
    found = {"kept": 100 * metrics.accuracy(y, model.labels_), "best_replica": max(replicas),
             "mean_replica": float(np.mean(replicas)), "seconds": seconds}
    print(f"repetition {seed}: " + ", ".join(f"{name} {number:.1f}" for name, number in found.items()), flush=True)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repetitions", type=int, default=5)
    options.add_argument("--processes", type=int, default=1)
    arguments = options.parse_args()
    torch.set_num_threads(THREADS)  # for the record, which says how many this process has
    with ProcessPoolExecutor(arguments.processes, get_context("spawn"), torch.set_num_threads, (THREADS,)) as pool:
        each = list(pool.map(repetition, range(arguments.repetitions)))
    measured: dict[str, Any] = {name: [one[name] for one in each] for name in each[0]}
    kept = measured["kept"]
    error = float(np.std(kept, ddof=1) / np.sqrt(len(kept))) if len(kept) > 1 else None
    measured |= {"mean": float(np.mean(kept)), "standard_error": error, "limit_seconds": SECONDS}
    print(f"record: {write_record('digits_cpu', vars(arguments), measured)}")


if __name__ == "__main__":
    main()
