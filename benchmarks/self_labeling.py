"""Self-labeling after IDEC on the bundled digits, by evenness: accuracy, and whether classes die.

    python benchmarks/self_labeling.py [--seeds 5] [--epochs 40]

The estimators' defaults on a CPU; every evenness goes on from the same clusterings. No labels are used but to score.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import torch
from _records import write_record
from sklearn.datasets import load_digits

from reclust import IDEC, ReclustWarning, SelfLabeling, metrics

EVENNESS = (0.0, 0.5, 2.0, 5.0)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--epochs", type=int, default=40)
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = options.parse_args()
    torch.set_num_threads(arguments.threads)
    X, y = load_digits(return_X_y=True)
    names = ["clustering", *(f"evenness {evenness:g}" for evenness in EVENNESS)]
    measured: dict[str, dict[str, list]] = {name: {"accuracy": [], "classes": []} for name in names}
    for seed in range(arguments.seeds):
        models = [IDEC(10, image_shape=(8, 8), random_state=seed, device="cpu", progress=False).fit(X)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReclustWarning)  # of dying classes, which are counted here
            models += [SelfLabeling(models[0], evenness=evenness, epochs=arguments.epochs, device="cpu", progress=False).fit(X)
                       for evenness in EVENNESS]
        for name, model in zip(names, models, strict=True):
            measured[name]["accuracy"].append(100 * metrics.accuracy(y, model.labels_))
            measured[name]["classes"].append(len(np.unique(model.labels_)))
        print(f"seed {seed}: " + ", ".join(f"{name} {seen['accuracy'][-1]:.1f} in {seen['classes'][-1]} classes"
                                           for name, seen in measured.items()), flush=True)
    print(f"record: {write_record('self_labeling', vars(arguments), measured)}")


if __name__ == "__main__":
    main()
