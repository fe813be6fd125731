"""Small data and small models for tests."""

import numpy as np

from reclust import BRB, Autoencoder, IDECObjective, KMeans, Schedule, Settings


def blobs(n=100, features=12, k=4, seed=0, spread=1.0):
    """k Gaussian groups: samples (n, features) in float64 and labels (n,)."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    return rng.normal(size=(n, features)) * spread + 4 * rng.normal(size=(k, features))[labels], labels


def small_settings(**changes):
    """Four clusters, a tiny autoencoder, BRB that fires at epochs 2 and 4 of 5."""
    given = {
        "n_clusters": 4,
        "objective": IDECObjective(),
        "representation": Autoencoder(hidden=(16, 8)),
        "intervention": BRB(interval=2, method=KMeans(n_init=2)),
        "pretraining": Schedule(epochs=2, batch_size=50, views=("clean",)),
        "clustering": Schedule(epochs=5, batch_size=50),
    }
    return Settings(**{**given, **changes})


class Stop(Exception):
    """What `stop_at` raises."""


def stop_at(phase, epoch):
    """A monitor that ends a run at the end of this epoch, before its checkpoint is written."""

    def monitor(snapshot):
        if (snapshot.phase, snapshot.moment, snapshot.epoch) == (phase, "epoch", epoch):
            raise Stop

    return monitor


def resident(peak=False):
    """Memory of this process in bytes, or its peak since `forget_peak`."""
    line = "VmHWM" if peak else "VmRSS"
    with open("/proc/self/status") as status:
        return 1024 * int(next(one for one in status if one.startswith(line)).split()[1])


def forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def memory_of(call):
    """Bytes that a call takes beyond those taken before it, and what it returns or raises."""
    forget_peak()
    before = resident()
    try:
        made = call()
    except (ValueError, OSError) as error:
        made = error
    return resident(peak=True) - before, made
