"""Five hundred photos of uneven light in a folder, and the default command: ARI, number of clusters and seconds.

    python benchmarks/photos.py gtsrb.npz [--draws 3]           images (n, h, w, 3) and labels; needs pillow
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas
from _records import write_record
from PIL import Image

from reclust import metrics

PHOTOS = 500


def fit(images: np.ndarray, classes: np.ndarray, *options: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        photos, output = Path(folder, "photos"), Path(folder, "output")
        photos.mkdir()
        for i, image in enumerate(images):
            Image.fromarray(image).save(photos / f"{i:04}.png")
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "reclust", "fit", str(photos), "-o", str(output), *options], check=True)
        seconds = time.perf_counter() - started
        table = pandas.read_csv(output / "labels.csv")
    rows = [int(Path(name).stem) for name in table.iloc[:, 0]]
    return {"ari": 100 * metrics.ari(classes[rows], table["cluster"].to_numpy()), "clusters": int(table["cluster"].nunique()),
            "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=3)
    arguments = parser.parse_args()
    stored = np.load(arguments.data)
    classes, measured = np.unique(stored["labels"], return_inverse=True)[1], {}
    for draw in range(arguments.draws):
        rows = np.random.default_rng(draw).permutation(len(classes))[:PHOTOS]
        measured[f"draw {draw}"] = fit(stored["images"][rows], classes[rows])
        print(f"draw {draw}: {measured[f'draw {draw}']}", flush=True)
    settings = {"photos": PHOTOS, "classes": int(classes.max()) + 1, "data": arguments.data.stem}
    print(f"record: {write_record('photos', settings, measured)}")


if __name__ == "__main__":
    main()
