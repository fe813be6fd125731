"""A store of a hundred thousand finished runs: how long `status` and each kind of table take.

    python benchmarks/store_size.py [--runs 100000] [--folder DIR]

The runs are invented, their settings those of the paper, in groups of forty with curves and labels. Every answer is timed in a
reader of its own that was just opened, and as a whole call of the command line, which first has to start Python. Seconds are
the processor's own, whatever else it does meanwhile.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from _records import processor_seconds_of_children, write_record

from reclust.estimators.presets import paper
from reclust.studies import Outcome, PlannedRun, Store, StoreReader
from reclust.studies.tables import tables
from reclust.training.history import Curve

LIMIT, SEEDS, FIRED = 2.0, 40, np.arange(20, 400, 20)
VARIANTS, ALGORITHMS = ("none", "brb", "recluster", "reset"), ("dec", "idec", "dcn")
ASKED: dict[str, Callable[[StoreReader], object]] = {
    "status": StoreReader.status,
    "table of scores": lambda store: tables(store, "acc-table"),
    "table of times": lambda store: tables(store, "runtime"),
}
COMMANDS = {"status": ("study", "status", "--store"), "table of scores": ("table", "--study", "acc-table"),
            "table of times": ("table", "--study", "runtime")}


def key(*things: object) -> str:
    """As long and as far apart as those of a study."""
    return hashlib.sha256(repr(things).encode()).hexdigest()[:24]


def fill(path: Path, runs: int) -> None:
    sets = -(-runs // (SEEDS * len(VARIANTS) * len(ALGORITHMS)))
    rng, epochs = np.random.default_rng(0), np.arange(0, 400, 10)
    settings = {(algorithm, variant): paper("usps", algorithm, intervention=variant)
                for algorithm, variant in product(ALGORITHMS, VARIANTS)}
    cells = list(product([f"set {i}" for i in range(sets)], ALGORITHMS, VARIANTS))[: runs // SEEDS]
    groups = [key(*cell) for cell in cells]
    planned = [PlannedRun(key(group, seed), group, dataset, algorithm, variant, True, seed)
               for group, (dataset, algorithm, variant) in zip(groups, cells, strict=True) for seed in range(SEEDS)]
    parts = ("pretraining.training", "clustering.training", "clustering.reset", "clustering.embedding", "clustering.clustering")
    with Store(path) as store:
        for study in ("acc-table", "runtime"):
            store.plan(study, "invented", planned)
        for group, (_, algorithm, variant) in zip(groups, cells, strict=True):
            scores = {name: rng.random(SEEDS) for name in ("acc", "nmi", "ari", "purity")}
            history = {"clustering": {name: Curve(epochs, rng.random((len(epochs), SEEDS), dtype=np.float32))
                                      for name in ("loss", "accuracy")}}
            if variant != "none":
                history["clustering"]["fired"] = Curve(FIRED, np.ones((len(FIRED), SEEDS), dtype=np.float32))
            names = [key(group, seed) for seed in range(SEEDS)]
            store.add(Outcome(group, names, [settings[algorithm, variant]] * SEEDS, scores,
                              history, {"labels": rng.integers(10, size=(SEEDS, 500), dtype=np.int16)},
                              {part: float(rng.random()) for part in parts}, {"reclust": "invented"}))


def asked(path: Path, question: Callable[[StoreReader], object]) -> float:
    begun = time.process_time()
    with StoreReader(path) as store:
        question(store)
    return time.process_time() - begun


def called(path: Path, command: tuple[str, ...]) -> float:
    arguments = (*command, path) if command[-1] == "--store" else (command[0], path, *command[1:])
    begun = processor_seconds_of_children()
    subprocess.run([sys.executable, "-m", "reclust", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)
    return processor_seconds_of_children() - begun


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=100_000)
    options.add_argument("--folder", type=Path, default=None)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "store.sqlite"
        begun = time.perf_counter()
        fill(path, arguments.runs)
        measured = {"seconds_to_write": time.perf_counter() - begun, "megabytes": path.stat().st_size / 1e6,
                    "answers": {name: {"seconds": min(asked(path, question) for _ in range(3)),
                                       "whole_command": min(called(path, COMMANDS[name]) for _ in range(3))}
                                for name, question in ASKED.items()}}
        with StoreReader(path) as store:
            measured["runs"] = store.status("acc-table")[0].finished
    record = write_record("store_size", {"runs": arguments.runs}, measured)
    for name, seen in measured["answers"].items():
        print(f"{name}: {seen['seconds']:.2f} s, as a whole command {seen['whole_command']:.2f} s (at most {LIMIT})")
    print(f"record: {record}")
    return 0 if all(seen["whole_command"] < LIMIT for seen in measured["answers"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
