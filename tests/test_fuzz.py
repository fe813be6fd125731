"""Files with one thing changed anywhere in their structure are read or refused, quickly and with little memory."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

for needed in ("pandas", "pyarrow", "h5py", "PIL"):
    pytest.importorskip(needed)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured the way Linux does")


def broken_laws(first, count):
    """Run cases in a process of their own, and in another one after a case that ends it."""
    environment, found, end = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}, [], first + count
    while first < end:
        ran = subprocess.run([sys.executable, Path(__file__).with_name("fuzzing.py"), str(first), str(end - first)], env=environment, capture_output=True, text=True)
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
        assert lines, ran.stderr
        found += [line for line in lines if "wrong" in line]
        first = lines[-1]["case"] + 1
        if ran.returncode:
            found.append({"case": first - 1, "wrong": f"the process ended with {ran.returncode}: {ran.stderr[-500:]}"})
    return found


def test_changed_files_are_read_or_refused():
    assert broken_laws(0, 500) == []


@pytest.mark.slow
def test_many_changed_files_are_read_or_refused():
    first = random.randrange(10**9)
    print(f"cases from {first}")
    assert broken_laws(first, 20_000) == []
