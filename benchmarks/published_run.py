"""Whole published runs, ten seeds at once, from the data file to the score.

    RECLUST_DATA=folder python benchmarks/published_run.py [--sets optdigits usps] [--algorithm idec]

250 epochs of pretraining and 400 of clustering with BRB, in both precisions. Times include everything after reading the file.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from _records import write_record

from reclust import Execution, metrics, presets, train
from reclust.data import load


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sets", nargs="+", default=["optdigits", "usps"])
    options.add_argument("--algorithm", default="idec")
    options.add_argument("--precisions", nargs="+", default=["auto", "float32"])
    options.add_argument("--device", default="auto")
    given = options.parse_args()
    measured = {}
    for name in given.sets:
        data = load(name, download=False)
        for precision in given.precisions:
            started = time.perf_counter()
            result = train(presets.paper_data(data), presets.paper(name, given.algorithm), seeds=presets.PAPER_SEEDS,
                           execution=Execution(device=given.device, precision=precision))
            scores = np.array([100 * metrics.accuracy(data.labels, labels) for labels in result.labels])
            seconds = time.perf_counter() - started
            error = scores.std(ddof=1) / np.sqrt(len(scores))
            measured[f"{name}, {precision}"] = {
                "seconds": seconds, "accuracy": scores.tolist(), "mean": scores.mean(), "standard_error": error,
                "parts": result.seconds, "provenance": result.provenance,
            }
            print(f"{name:10} {precision:8} {seconds:5.1f} s   ACC {scores.mean():.1f} ± {error:.1f}")
    print(f"record: {write_record(f'published_run_{given.algorithm}', vars(given), measured)}")


if __name__ == "__main__":
    main()
