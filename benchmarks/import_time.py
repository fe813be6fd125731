"""How long `import reclust` takes, alone and with all its names, against `import torch, sklearn.cluster`, in turns.

Each is measured in a process of its own, as is `reclust --help`.

    python benchmarks/import_time.py
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path

from _records import write_record

SOURCE = str(Path(__file__).parents[1] / "src")
THEIRS = "torch and scikit-learn"
STATEMENTS = {
    THEIRS: "import torch, sklearn.cluster",
    "reclust": "import reclust",
    "all names of reclust": "from reclust import *",
    "reclust --help": "from reclust.cli import main; main(['--help'])",
}
LIMIT = 1.5


def processor_seconds(statement: str) -> float:
    """Of a fresh interpreter that runs the statement; other programs on the machine disturb this less than the clock."""
    environment = {**os.environ, "PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeats", type=int, default=5)
    arguments = options.parse_args()
    times: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for turn in range(arguments.repeats + 1):
        for name, statement in STATEMENTS.items():
            seconds = processor_seconds(statement)
            if turn:  # the first one reads files that nobody has read yet
                times[name].append(seconds)
    least = {name: min(taken) for name, taken in times.items()}
    ratio = least["all names of reclust"] / least[THEIRS]
    for name, seconds in least.items():
        print(f"{name}: {seconds:.2f} s of processor time, {seconds / least[THEIRS]:.2f} times `{STATEMENTS[THEIRS]}`")
    print(f"record: {write_record('import_time', vars(arguments), {'processor_seconds': least, 'ratio': ratio, 'limit': LIMIT})}")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
