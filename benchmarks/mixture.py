"""The Gaussian mixture that reclusters against scikit-learn's: 10,000 × 10, ten components, ten restarts.

    python benchmarks/mixture.py [--device cpu]

Both start every restart from k-means, have full covariances and stop at the same change of likelihood. How far their means
lie from those that the data was drawn with, over several draws, says whether the faster one finds as much.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np
import torch
from _records import best_times, write_record
from scipy.optimize import linear_sum_assignment
from sklearn.mixture import GaussianMixture as Peer

from reclust import draws
from reclust.interventions import GaussianMixture

ROWS, DIMS, COMPONENTS, DRAWS = 10_000, 10, 10, 10
APART = {"separated": 5.0, "overlapping": 0.6}
"""Standard deviation of the means; samples have 1 around them."""


def drawn(apart: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples and the means that they were drawn around."""
    rng = np.random.default_rng(seed)
    means = apart * rng.normal(size=(COMPONENTS, DIMS))
    return means[rng.integers(COMPONENTS, size=ROWS)] + rng.normal(size=(ROWS, DIMS)), means


def error(found: np.ndarray, means: np.ndarray) -> float:
    """Mean distance between means after the best match."""
    distances = np.linalg.norm(found[:, None] - means, axis=-1)
    return float(distances[linear_sum_assignment(distances)].mean())


def compare(apart: float, own: GaussianMixture, device: str) -> dict[str, Any]:
    """Seconds of the first draw, errors of all."""
    seconds, errors = [], []
    for seed in range(DRAWS):
        x, means = drawn(apart, seed)
        z, key = torch.from_numpy(x).to(device), draws.key(seed, device=device)
        peer = Peer(COMPONENTS, n_init=own.restarts, reg_covar=own.regularization, tol=own.tol, max_iter=own.max_iter,
                    random_state=seed)
        found = own(z, COMPONENTS, key).cpu().numpy(), peer.fit(x).means_
        errors.append([error(one, means) for one in found])
        if seed == 0:
            seconds = best_times(partial(own, z, COMPONENTS, key), partial(peer.fit, x), repeats=3)
    names = ("reclust", "scikit-learn")
    return {"seconds": dict(zip(names, seconds, strict=True)), "times_as_fast": seconds[1] / seconds[0],
            "errors_of_means": dict(zip(names, zip(*errors, strict=True), strict=True))}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    device, own, measured = options.parse_args().device, GaussianMixture(restarts=10), {}
    for name, apart in APART.items():
        measured[name] = compare(apart, own, device)
        print(name, measured[name], flush=True)
    settings = {"rows": ROWS, "dims": DIMS, "components": COMPONENTS, "draws": DRAWS, "apart": APART, "mixture": repr(own)}
    print(f"record: {write_record(f'mixture_{device}', settings, measured)}")


if __name__ == "__main__":
    main()
