"""preset="best" on the embedded digits with a CPU alone: accuracy and seconds, five whole fits.

    python benchmarks/digits_cpu.py [--repetitions 5]

No labels are used in training or in choosing; they only score what was kept.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from _records import write_record
from sklearn.datasets import load_digits

from reclust import IDEC, metrics

SECONDS = 300


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repetitions", type=int, default=5)
    given = options.parse_args()
    X, y = load_digits(return_X_y=True)
    kept, best, mean, seconds = [], [], [], []
    for seed in range(given.repetitions):
        started = time.perf_counter()
        model = IDEC(10, image_shape=(8, 8), preset="best", device="cpu", random_state=seed).fit(X)
        seconds.append(time.perf_counter() - started)
        replicas = [100 * metrics.accuracy(y, one.labels) for one in model.replicas_]
        kept.append(100 * metrics.accuracy(y, model.labels_))
        best.append(max(replicas))
        mean.append(float(np.mean(replicas)))
        print(f"repetition {seed}: kept {kept[-1]:.1f}, best {best[-1]:.1f}, mean {mean[-1]:.1f}, {seconds[-1]:.0f} s",
              flush=True)
    error = float(np.std(kept, ddof=1) / np.sqrt(len(kept))) if len(kept) > 1 else None
    measured = {"kept": kept, "mean": float(np.mean(kept)), "standard_error": error, "best_replica": best, "mean_replica": mean,
                "seconds": seconds, "limit_seconds": SECONDS}
    print(f"record: {write_record('digits_cpu', vars(given), measured)}")


if __name__ == "__main__":
    main()
