"""Whole published runs, ten seeds at once, from the data file to the score.

    RECLUST_DATA=folder python benchmarks/published_run.py [--sets optdigits usps] [--algorithm idec]
    RECLUST_DATA=folder python benchmarks/published_run.py --device cpu --sets optdigits --processes 10 --checkpoint FOLDER

250 epochs of pretraining and 400 of clustering with BRB, in both precisions. Times include all of it.
On a CPU this takes long: there the seeds train in processes of their own with one thread each, and with `--checkpoint FOLDER`
it can be stopped and called again; `seconds` are then those of the last call.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _records import write_record

from reclust import Checkpoint, Execution, metrics, train
from reclust.data import load
from reclust.estimators import presets


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sets", nargs="+", default=["optdigits", "usps"])
    options.add_argument("--algorithm", default="idec")
    options.add_argument("--precisions", nargs="+", default=["auto", "float32"])
    options.add_argument("--device", default="auto")
    options.add_argument("--processes", type=int, default=1, help="with more than one, each seed in one of its own")
    options.add_argument("--checkpoint", type=Path, help="a folder")
    arguments = options.parse_args()
    measured = {}
    for name in arguments.sets:
        for precision in arguments.precisions:
            started = time.perf_counter()
            run = partial(published, arguments, name, precision)
            if arguments.processes == 1:
                parts = [run(presets.PAPER_SEEDS)]
            else:
                with ProcessPoolExecutor(arguments.processes, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
                    parts = list(pool.map(run, [(seed,) for seed in presets.PAPER_SEEDS]))
            seconds = time.perf_counter() - started
            scores = np.concatenate([part.pop("accuracy") for part in parts])
            error = scores.std(ddof=1) / np.sqrt(len(scores))
            measured[f"{name}, {precision}"] = {
                "seconds": seconds, "accuracy": scores.tolist(), "mean": scores.mean(), "standard_error": error, **parts[0]}
            print(f"{name:10} {precision:8} {seconds:5.1f} s   ACC {scores.mean():.1f} ± {error:.1f}", flush=True)
    record = f"published_run_{arguments.algorithm}" + ("_cpu" if arguments.device == "cpu" else "")
    settings = {key: option for key, option in vars(arguments).items() if key != "checkpoint"}
    print(f"record: {write_record(record, settings, measured)}")


def published(arguments: argparse.Namespace, name: str, precision: str, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Scores of these seeds, stacked, and where the time went."""
    data = load(name, download=False)
    kept = arguments.checkpoint and Checkpoint(arguments.checkpoint / f"{name}_{precision}_{seeds[0]}", seconds=60)
    result = train(presets.paper_data(data), presets.paper(name, arguments.algorithm), seeds=seeds,
                   execution=Execution(device=arguments.device, precision=precision), checkpoint=kept)
    assert result.labels is not None
    return {"accuracy": [100 * metrics.accuracy(data.labels, labels) for labels in result.labels],
            "parts": result.seconds, "provenance": result.provenance}


if __name__ == "__main__":
    main()
