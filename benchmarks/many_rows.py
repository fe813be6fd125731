"""IDEC on a hundred million rows: one epoch of pretraining, two of clustering, and labels of all rows.

    python benchmarks/many_rows.py [--rows 100000000] [--columns 64] [--folder DIR]

Makes a float16 .npy file of eight groups of rows that touch (neighboring centers are 6 standard deviations apart), fits IDEC on
the file and compares its labels with the groups. Samples the process's anonymous memory, which mapped file pages are no part of.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from _records import anonymous_memory, write_record
from streaming import AnonymousMemory

from reclust import IDEC, metrics

GROUPS, DISTANCE, PART = 8, 6.0, 2**20
MEMORY_LIMIT, TIME_LIMIT, ARI_LIMIT = 4.0, 600, 0.95


def make_file(path: Path, rows: int, columns: int) -> np.ndarray:
    """Write the rows, and return the group of each."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    generator = torch.Generator(device).manual_seed(0)
    # Orthogonal directions, so that all pairs of centers have the same distance.
    axes = torch.linalg.qr(torch.randn(columns, GROUPS, generator=generator, device=device)).Q.T
    centers = axes * DISTANCE / 2**0.5
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(rows, columns))
    groups = np.empty(rows, dtype=np.uint8)
    for start in range(0, rows, PART):
        own = torch.randint(GROUPS, (min(PART, rows - start),), generator=generator, device=device)
        x = centers[own] + torch.randn(len(own), columns, generator=generator, device=device)
        mapped[start : start + PART] = x.half().cpu().numpy()
        groups[start : start + PART] = own.cpu().numpy()
    return groups


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=100_000_000)
    options.add_argument("--columns", type=int, default=64)
    options.add_argument("--folder", type=Path, default=None)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "rows.npy"
        started = time.perf_counter()
        groups = make_file(path, arguments.rows, arguments.columns)
        print(f"made in {time.perf_counter() - started:.0f} s", flush=True)
        before, started = anonymous_memory(), time.perf_counter()
        model = IDEC(GROUPS, pretrain_epochs=1, epochs=2, random_state=0)
        with AnonymousMemory() as memory:
            model.fit(path)
        seconds = time.perf_counter() - started
    table = np.zeros((GROUPS, GROUPS), dtype=np.int64)
    for start in range(0, arguments.rows, PART):
        part = slice(start, start + PART)
        np.add.at(table, (groups[part], model.labels_[part]), 1)
    ari = metrics.ari_of_table(table)
    trained = sum(model.result_.seconds.values())
    measured = {"seconds": seconds, "seconds_of_training": dict(model.result_.seconds), "ari": ari,
                "seconds_besides": seconds - trained, "gigabytes_before": before, "gigabytes_at_most": memory.peak}
    settings = {"rows": arguments.rows, "columns": arguments.columns, "pretrain_epochs": 1, "epochs": 2, "groups": GROUPS,
                "distance": DISTANCE, "batch_size": model.result_.settings[0].clustering.batch_size}
    name = f"many_rows_{'cuda' if torch.cuda.is_available() else 'cpu'}"
    print(f"fit {seconds:.0f} s (at most {TIME_LIMIT}), training {trained:.0f} s of them; anonymous memory {before:.2f} GB before, "
          f"at most {memory.peak:.2f} GB (limit {MEMORY_LIMIT}); ARI {ari:.4f} (at least {ARI_LIMIT})")
    print("seconds", model.result_.seconds, "samples per cluster", np.bincount(model.labels_).tolist())
    print(f"record: {write_record(name, settings, measured)}")


if __name__ == "__main__":
    main()
