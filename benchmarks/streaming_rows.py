"""Ten million rows of 32 features: memory of the whole process, streamed from a mapped file and held in memory, and whether
prediction keeps its rate from the first row to the last.

    python benchmarks/streaming_rows.py [--rows 10000000] [--columns 32] [--folder DIR]

They are streamed unless asked otherwise (`resident_limit`); here each way is asked for, in a process of its own: IDEC
for one epoch on all rows, then `predict` of them in ten parts. Peak memory is that of the whole process, the interpreter, torch
and the pages of the mapped file included, as the system counts it (VmHWM). Rates are by the processor's own seconds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from _records import status_gb, write_record
from streaming import fit, make_file, predict_rates

from reclust.estimators import deep_clustering

BATCH, MEMORY_LIMIT, COST_LIMIT, FLATNESS_LIMIT = 2048, 3.0, 1.2, 1.3
WAYS = {"streamed": 0.0, "in memory": float("inf")}
"""Way -> bytes that may be held."""


def one_way(path: Path, way: str) -> dict[str, object]:
    deep_clustering.resident_limit = lambda device: WAYS[way]
    rows = np.load(path, mmap_mode="r")
    model, microseconds, seconds = fit(rows, batch_size=BATCH)
    rates = predict_rates(model, rows)
    return {"peak_gb": status_gb("VmHWM"), "fit_seconds": seconds, "microseconds_a_row": microseconds,
            "predicted_rows_a_second": rates, "fastest_over_slowest_part": max(rates) / min(rates)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--columns", type=int, default=32)
    options.add_argument("--folder", type=Path, default=None)
    options.add_argument("--one", nargs=2, metavar=("FILE", "WAY"), help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.one:
        print(json.dumps(one_way(Path(arguments.one[0]), arguments.one[1])))
        return
    measured = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "rows.npy"
        make_file(path, arguments.rows, arguments.columns)
        for way in WAYS:
            command = [sys.executable, __file__, "--one", str(path), way]
            seen = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            print(f"{way}: at most {seen['peak_gb']:.2f} GB (limit {MEMORY_LIMIT} where streamed), "
                  f"fit {seen['fit_seconds']:.0f} s, prediction's fastest tenth {seen['fastest_over_slowest_part']:.2f} times "
                  f"the slowest (limit {FLATNESS_LIMIT})", flush=True)
            measured[way] = seen
    streamed, resident = (seen["microseconds_a_row"] for seen in measured.values())
    print(f"a streamed row costs {streamed / resident:.2f} times as much as one in memory (limit {COST_LIMIT})")
    settings = {"rows": arguments.rows, "columns": arguments.columns, "batch_size": BATCH,
                "gigabytes": arguments.rows * arguments.columns * 4 / 1e9}
    print(f"record: {write_record('streaming_rows', settings, measured)}")


if __name__ == "__main__":
    main()
