"""Write requirements-dev.lock: what development installs here, every archive pinned by version and hash.

    python tools/lock.py

Hashes are those of the archives that pip chooses on this platform, so another platform makes a lock of its own.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def resolved() -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed",
                        "--report", str(report), "-c", "constraints.txt", ".[dev,cli,study,onnx]"], cwd=ROOT, check=True)
        return json.loads(report.read_text())["install"]


def main() -> None:
    lines = [f"# Made by tools/lock.py on {platform.system()} {platform.machine()}, Python {platform.python_version()}.",
             "# pip install --require-hashes -r requirements-dev.lock && pip install --no-deps -e ."]
    for one in sorted(resolved(), key=lambda found: found["metadata"]["name"].lower()):
        name, version = one["metadata"]["name"], one["metadata"]["version"].partition("+")[0]
        if name != "reclust":
            digest = one["download_info"]["archive_info"]["hashes"]["sha256"]
            lines.append(f"{name}=={version} --hash=sha256:{digest}")
    (ROOT / "requirements-dev.lock").write_text("\n".join(lines) + "\n")
    print(f"{len(lines) - 2} packages")


if __name__ == "__main__":
    main()
