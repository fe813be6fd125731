"""One clustering epoch of DEC, IDEC and DCN against ClustPy 0.0.3, on the CPU.

    make bench-clustpy        an environment of its own for ClustPy, then this file in it

Same data (10,000 × 784 numbers), network 784-1024-512-256-10, batch 256, no augmentation, Adam, no clipping of
gradients, which ClustPy does not have. Whole fits of one and three clustering epochs are timed in turns in one process; their
difference over two is an epoch without any setting up.
"""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Callable
from typing import Any

import torch
from _records import best_times, write_record

from reclust import (
    Autoencoder,
    DCNObjective,
    DECObjective,
    Execution,
    IDECObjective,
    KMeans,
    Recluster,
    Schedule,
    Settings,
    train,
)

OBJECTIVES = {"DEC": DECObjective(), "IDEC": IDECObjective(), "DCN": DCNObjective()}
HIDDEN = (1024, 512, 256)
OPERATORS = ("nms", "qnms")
LIBRARIES: list[torch.library.Library] = []


def import_clustpy() -> Any:
    """ClustPy imports torchvision, which does not load beside every build of torch for want of operators; names are enough."""
    names = torch.library.Library("torchvision", "FRAGMENT")
    for operator in OPERATORS:
        names.define(f"{operator}(Tensor x) -> Tensor")
    LIBRARIES.append(names)  # what it defined would go with it
    import clustpy.deep

    return clustpy.deep


def theirs(deep: Any, name: str, X: torch.Tensor, epochs: int) -> None:
    network = deep.neural_networks.FeedforwardAutoencoder([784, *HIDDEN, 10])
    network.fitted = True  # no pretraining: its epochs are the same on both sides
    model = getattr(deep, name)(
        n_clusters=10, batch_size=256, neural_network=network, embedding_size=10, clustering_epochs=epochs,
        initial_clustering_params={"n_init": 1, "max_iter": 1}, device=torch.device("cpu"), random_state=0,
    )
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        model.fit(X.numpy())


def ours(name: str, X: torch.Tensor, epochs: int, precision: str) -> None:
    settings = Settings(
        n_clusters=10, objective=OBJECTIVES[name], representation=Autoencoder(HIDDEN), pretraining=None,
        clustering=Schedule(epochs, clip_norm=None), first_centers=Recluster(KMeans(n_init=1, max_iter=1)),
    )
    train(X, settings, seeds=[0], execution=Execution(device="cpu", precision=precision))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=10_000)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    options.add_argument("--precisions", nargs="+", default=["float32"], help="of our side: float32, bf16")
    arguments = options.parse_args()
    torch.set_num_threads(arguments.threads)
    deep = import_clustpy()
    X = torch.randn(arguments.rows, 784, generator=torch.Generator().manual_seed(0))
    measured = {}
    for name in OBJECTIVES:
        sides: dict[str, Callable[[int], None]] = {"ClustPy": lambda epochs, name=name: theirs(deep, name, X, epochs)}
        for precision in arguments.precisions:
            sides[precision] = lambda epochs, name=name, precision=precision: ours(name, X, epochs, precision)
        calls = [lambda side=side, epochs=epochs: side(epochs) for side in sides.values() for epochs in (1, 3)]
        times = best_times(*calls, repeats=arguments.repeats)
        epoch = {side: (times[2 * i + 1] - times[2 * i]) / 2 for i, side in enumerate(sides)}
        faster = {side: epoch["ClustPy"] / seconds for side, seconds in epoch.items() if side != "ClustPy"}
        measured[name] = {"seconds_per_epoch": epoch, "times_clustpys_speed": faster}
        print(f"{name:5} ClustPy {epoch['ClustPy']:.2f} s an epoch; reclust " +
              ", ".join(f"{side} {epoch[side]:.2f} s, {ratio:.2f} times as fast" for side, ratio in faster.items()))
    print(f"record: {write_record('clustpy_epoch', vars(arguments), measured)}")


if __name__ == "__main__":
    main()
