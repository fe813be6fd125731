"""How long a plain `IDEC(n_clusters=10).fit(X)` takes on 10,000 rows of 50 numbers, nothing set but the seed.

    python benchmarks/everyday.py
"""

from __future__ import annotations

import time

from _records import write_record
from sklearn.datasets import make_blobs

from reclust import IDEC, metrics

ROWS, FEATURES = 10_000, 50


def main() -> None:
    X, y = make_blobs(ROWS, FEATURES, centers=10, cluster_std=6.0, random_state=0)
    started = time.perf_counter()
    model = IDEC(n_clusters=10, random_state=0, device="cpu").fit(X)
    seconds = time.perf_counter() - started
    measured = {"seconds": seconds, "parts": model.result_.seconds, "accuracy": metrics.accuracy(y, model.labels_)}
    path = write_record("everyday", {"rows": ROWS, "features": FEATURES}, measured)
    print(f"{seconds:.0f} s, accuracy {measured['accuracy']:.3f}")
    print(f"record: {path}")


if __name__ == "__main__":
    main()
