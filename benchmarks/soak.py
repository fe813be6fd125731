"""Two hundred fits in one process: does memory stay flat?

    python benchmarks/soak.py [--fits 200]

Fits, saves, loads and predicts in turn with all three objectives and several replicas, and samples the process's anonymous
memory after each. The first tenth warms up allocators and caches; after it memory may not grow by more than 5 %.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from _records import anonymous_memory, write_record

import reclust
from reclust import BRB, DCN, DEC, IDEC, Autoencoder, ReclustWarning

GROWTH_LIMIT = 1.05


def one_fit(number: int, X: np.ndarray, folder: Path) -> None:
    kind = (DEC, IDEC, DCN)[number % 3]
    model = kind(5, representation=Autoencoder((64, 32)), n_init=1 + number % 3, pretrain_epochs=3, epochs=9,
                 intervention=BRB(3), random_state=number, device="cpu")
    model.fit(X, checkpoint=folder / "run.ckpt", every=4)
    model.save(folder / "model.reclust")
    assert (reclust.load(folder / "model.reclust").predict(X) == model.labels_).all()
    for path in folder.iterdir():
        path.unlink()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--fits", type=int, default=200)
    fits = options.parse_args().fits
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20)) + 4 * rng.normal(size=(5, 20))[rng.integers(5, size=2000)]
    memory, started = [], time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ReclustWarning)
        for number in range(fits):
            one_fit(number, X, Path(folder))
            gc.collect()
            memory.append(anonymous_memory())
    warm = memory[fits // 10 :]
    tenth = max(1, len(warm) // 10)
    first, last = float(np.mean(warm[:tenth])), float(np.mean(warm[-tenth:]))
    measured = {"gb_after_warm_up": first, "gb_at_the_end": last, "growth": last / first, "peak_gb": max(memory),
                "seconds": time.perf_counter() - started}
    path = write_record("soak", {"fits": fits, "samples": len(X), "features": X.shape[1]}, measured)
    print(f"{fits} fits: {first:.3f} GB after warm-up, {last:.3f} GB at the end, {last / first:.3f} times "
          f"(at most {GROWTH_LIMIT})")
    print(f"record: {path}")


if __name__ == "__main__":
    main()
