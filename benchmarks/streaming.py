"""Fitting a file larger than what the process may keep: its own memory, and the cost of a row against a resident fit.

    python benchmarks/streaming.py [--gigabytes 6] [--columns 300] [--folder DIR]

Makes a float32 .npy file with ten groups of rows, fits IDEC on it for one epoch, and samples the process's anonymous
memory (mapped file pages do not count) all the while. The resident side is the same fit on the first rows held in memory. Rows
are compared by the time that training takes for each, gathering and scaling included. Then all rows are predicted in ten parts:
the slowest part should take about as long as the fastest.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _records import anonymous_memory, write_record

from reclust import IDEC, Autoencoder, ReclustWarning

RESIDENT_ROWS, PARTS = 200_000, 10
MEMORY_LIMIT, RATIO_LIMIT, FLATNESS_LIMIT = 2.0, 1.3, 1.3


def make_file(path: Path, rows: int, columns: int) -> None:
    groups = np.random.default_rng(0).normal(size=(10, columns)).astype(np.float32)
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, columns))
    for start in range(0, rows, 50_000):
        stop = min(start + 50_000, rows)
        rng = np.random.default_rng(start)
        mapped[start:stop] = groups[rng.integers(10, size=stop - start)]
        mapped[start:stop] += rng.standard_normal((stop - start, columns), dtype=np.float32)
    mapped.flush()


class AnonymousMemory:
    """The largest anonymous memory of this process, in GB, sampled ten times a second while the block runs."""

    def __enter__(self) -> AnonymousMemory:
        self.peak, self._stop = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            self.peak = max(self.peak, anonymous_memory())


def fit(X: np.ndarray, **changes: Any) -> tuple[IDEC, float, float]:
    """The model, microseconds of training for each row and epoch, and seconds in all."""
    model = IDEC(10, representation=Autoencoder((128, 64)), pretrain_epochs=0, epochs=1, intervention=None, random_state=0,
                 device="cpu", **changes)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReclustWarning)  # one epoch finds no clusters worth the name
        model.fit(X)
    return model, 1e6 * model.result_.seconds["clustering.training"] / len(X), time.perf_counter() - started


def predict_rates(model: IDEC, X: np.ndarray) -> list[float]:
    """Rows a second of the processor, whatever else it does meanwhile, in each of ten parts of X."""
    rates = []
    for part in np.array_split(np.arange(len(X)), PARTS):
        started = time.process_time()
        model.predict(X[part[0] : part[-1] + 1])
        rates.append(len(part) / (time.process_time() - started))
    return rates


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--gigabytes", type=float, default=6.0)
    options.add_argument("--columns", type=int, default=300)
    options.add_argument("--folder", type=Path, default=None)
    arguments = options.parse_args()
    columns = arguments.columns
    rows = int(arguments.gigabytes * 1e9 / (4 * columns))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        make_file(Path(folder) / "large.npy", rows, columns)
        large = np.load(Path(folder) / "large.npy", mmap_mode="r")
        resident = np.array(large[:RESIDENT_ROWS])
        fit(resident[:20_000])
        _, resident_row, _ = fit(resident)
        del resident
        with AnonymousMemory() as memory:
            model, streamed_row, seconds = fit(large)
            rates = predict_rates(model, large)
    measured = {
        "rows": rows, "peak_anonymous_gb": memory.peak, "seconds_in_all": seconds,
        "microseconds_a_row": {"streamed": streamed_row, "resident": resident_row},
        "streamed_over_resident": streamed_row / resident_row, "predicted_rows_a_second": rates,
        "fastest_over_slowest_part": max(rates) / min(rates),
    }
    settings = {"gigabytes": arguments.gigabytes, "columns": columns, "resident_rows": RESIDENT_ROWS}
    path = write_record("streaming", settings, measured)
    print(f"{rows} rows, {arguments.gigabytes:g} GB, {seconds:.0f} s in all")
    print(f"peak anonymous memory {memory.peak:.2f} GB (at most {MEMORY_LIMIT})")
    print(f"a streamed row costs {streamed_row / resident_row:.2f} times a resident one (at most {RATIO_LIMIT})")
    print(f"prediction: {min(rates):.0f} to {max(rates):.0f} rows a second, {max(rates) / min(rates):.2f} times "
          f"(at most {FLATNESS_LIMIT})")
    print(f"record: {path}")


if __name__ == "__main__":
    main()
