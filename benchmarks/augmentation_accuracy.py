"""What augmentation is worth: IDEC with BRB on OPTDIGITS from scratch, with and without random affine views.

    python benchmarks/augmentation_accuracy.py [--folder DIR]

The 5,620 images stay at their own 8 x 8 and training is short, so that two cores do it in a few minutes. OPTDIGITS is read from
the folder (or RECLUST_DATA, or downloaded); without any of these the benchmark says so and ends.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from _records import write_record

from reclust import BRB, Autoencoder, IDECObjective, Schedule, Settings, metrics, train
from reclust.data import DataError, load, prepare
from reclust.data.augmentation.affine import Affine


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--folder", type=Path, default=None)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--epochs", type=int, default=40)
    options.add_argument("--batch", type=int, default=64)
    arguments = options.parse_args()
    try:
        dataset = load("optdigits", folder=arguments.folder)
    except DataError as error:
        sys.exit(f"skipped: {error}")
    settings = Settings(
        n_clusters=10, objective=IDECObjective(), representation=Autoencoder((256, 128, 64)), intervention=BRB(interval=10),
        pretraining=None, clustering=Schedule(arguments.epochs, batch_size=arguments.batch), augment=Affine(),
    )
    measured = {}
    for name, variant in (("with augmentation", settings), ("without", replace(settings, augment=None))):
        result = train(prepare(dataset, size=(8, 8)), variant, seeds=range(arguments.seeds))
        assert result.labels is not None
        accuracy = [100 * metrics.accuracy(dataset.labels, labels) for labels in result.labels]
        measured[name] = {"accuracy": accuracy, "mean": np.mean(accuracy), "seconds": sum(result.seconds.values())}
        print(f"{name:18} {np.mean(accuracy):.1f} ± {np.std(accuracy, ddof=1) / np.sqrt(arguments.seeds):.1f}")
    path = write_record("augmentation_accuracy", {"seeds": arguments.seeds, "settings": repr(settings)}, measured)
    print(f"record: {path}")


if __name__ == "__main__":
    main()
