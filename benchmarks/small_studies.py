"""Every named study in its small form, one after the other, as a user would run it: seconds, failures, figures, the report.

    python benchmarks/small_studies.py [--folder DIR] [--only NAME ...] [--threads N]

Each study has a store of its own under the folder, so none profits from another's runs; all are then merged into one, from
which the tables, all figures and the report are made. Called again with the same folder, it goes on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _records import processor_seconds_of_children, write_record

from reclust.studies import StoreReader, names


def reclust(*arguments: object) -> tuple[dict[str, float], int, str]:
    """Seconds, exit code and output of one call of the command line; the processor's own seconds tell what it takes where
    nothing else is running."""
    begun, before = time.perf_counter(), processor_seconds_of_children()
    done = subprocess.run([sys.executable, "-m", "reclust", *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    own = processor_seconds_of_children() - before
    return {"seconds": time.perf_counter() - begun, "processor_seconds": own}, done.returncode, done.stdout


def ran(name: str, folder: Path, threads: int) -> dict[str, Any]:
    store, kept = folder / f"{name}.sqlite", folder / f"{name}.json"
    if not kept.exists():
        seconds, code, said = reclust("study", "run", name, "--mini", "--store", store, "--threads", threads, "--device", "cpu",
                                      "--json")
        (told,) = json.loads(said)
        kept.write_text(json.dumps({"runs": told["finished"], "failed": told["failed"], **seconds, "exit_code": code}))
    return json.loads(kept.read_text())


def shown(stores: list[Path], folder: Path) -> dict[str, dict[str, float]]:
    """Seconds for what is made from one store of all studies."""
    merged = folder / "all.sqlite"
    merged.unlink(missing_ok=True)
    calls = {"merge": ("study", "merge", *stores, "--store", merged)} | {
        what: (what.removesuffix("s"), merged, "-o", folder / name)
        for what, name in (("tables", "tables.md"), ("figures", "figures"), ("report", "report.html"))}
    made = {}
    for what, arguments in calls.items():
        made[what], code, _ = reclust(*arguments)
        if code:
            raise SystemExit(f"{what} ended with exit code {code}")
    return made


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--folder", type=Path, default=None)
    options.add_argument("--only", nargs="+", default=names(), metavar="NAME")
    options.add_argument("--threads", type=int, default=1)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        studies = {}
        for name in arguments.only:
            studies[name] = ran(name, folder, arguments.threads)
            print(f"{name}: {studies[name]['runs']} runs, {studies[name]['failed']} failed, {studies[name]['seconds']:.0f} s, "
                  f"{studies[name]['processor_seconds']:.0f} s of a processor", flush=True)
        stores = [folder / f"{name}.sqlite" for name in studies]
        measured: dict[str, Any] = {"studies": studies, "from_all": shown(stores, folder)}
        with StoreReader(folder / "all.sqlite") as store:
            measured["runs"] = sum(status.finished for status in store.status())
        measured["figures"] = len(list((folder / "figures").glob("*.pdf")))
    if list(arguments.only) == names():
        print(f"record: {write_record('small_studies', {'threads': arguments.threads}, measured)}")


if __name__ == "__main__":
    main()
