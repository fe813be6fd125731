"""Whole published runs, ten seeds at once, from the data file to the score.

    RECLUST_DATA=folder python benchmarks/published_run.py [--sets optdigits usps] [--algorithm idec]

250 epochs of pretraining and 400 of clustering with BRB, in both precisions. Times include everything after reading the file.
On a CPU this takes an hour or more; with `--checkpoint FOLDER` it can be stopped and called again, and `seconds` are those of
the last call.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from _records import write_record

from reclust import Checkpoint, Execution, metrics, presets, train
from reclust.data import load


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sets", nargs="+", default=["optdigits", "usps"])
    options.add_argument("--algorithm", default="idec")
    options.add_argument("--precisions", nargs="+", default=["auto", "float32"])
    options.add_argument("--device", default="auto")
    options.add_argument("--checkpoint", type=Path, help="a folder")
    given = options.parse_args()
    measured = {}
    for name in given.sets:
        data = load(name, download=False)
        for precision in given.precisions:
            started = time.perf_counter()
            kept = given.checkpoint and Checkpoint(given.checkpoint / f"{name}_{precision}", seconds=60)
            result = train(presets.paper_data(data), presets.paper(name, given.algorithm), seeds=presets.PAPER_SEEDS,
                           execution=Execution(device=given.device, precision=precision), checkpoint=kept)
            scores = np.array([100 * metrics.accuracy(data.labels, labels) for labels in result.labels])
            seconds = time.perf_counter() - started
            error = scores.std(ddof=1) / np.sqrt(len(scores))
            measured[f"{name}, {precision}"] = {
                "seconds": seconds, "accuracy": scores.tolist(), "mean": scores.mean(), "standard_error": error,
                "parts": result.seconds, "provenance": result.provenance,
            }
            print(f"{name:10} {precision:8} {seconds:5.1f} s   ACC {scores.mean():.1f} ± {error:.1f}")
    record = f"published_run_{given.algorithm}" + ("_cpu" if given.device == "cpu" else "")
    settings = {key: option for key, option in vars(given).items() if key != "checkpoint"}
    print(f"record: {write_record(record, settings, measured, device=given.device)}")


if __name__ == "__main__":
    main()
