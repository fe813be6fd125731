"""What every benchmark shares: timing in turns, and a record of what was measured where."""

from __future__ import annotations

import json
import os
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import reclust
from reclust.studies.outcome import commit

RECORDS = Path(__file__).parent / "records"


def best_times(*sides: Callable[[], object], repeats: int) -> list[float]:
    """Least seconds of each side, run in turns, which other work on the machine disturbs least."""
    times: list[list[float]] = [[] for _ in sides]
    for side in sides:
        side()
    for _ in range(repeats):
        for side, taken in zip(sides, times, strict=True):
            start = time.perf_counter()
            side()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


def processor() -> str:
    """The processor's name where Linux tells it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def status_gb(field: str) -> float:
    """What Linux says of this process's memory, in GB: VmHWM is all of it at its largest, mapped file pages included."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024 / 1e9


def anonymous_memory() -> float:
    """This process's own memory now, in GB, without mapped file pages (Linux)."""
    return status_gb("RssAnon")


def processor_seconds_of_children() -> float:
    """Of all processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_record(name: str, settings: dict[str, Any], measured: dict[str, Any], *, folder: Path = RECORDS) -> Path:
    """One JSON file, beside the benchmarks unless said otherwise: settings, versions, machine and numbers."""
    record = {
        "benchmark": name,
        "settings": settings,
        "measured": measured,
        "versions": {"reclust": reclust.__version__, "torch": torch.__version__, "numpy": np.__version__,
                     "python": platform.python_version()},
        "machine": {"processor": processor(), "cores": os.cpu_count(), "threads": torch.get_num_threads(),
                    "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None},
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
