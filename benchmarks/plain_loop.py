"""One clustering epoch of IDEC against the same loop written by hand in plain PyTorch.

    python benchmarks/plain_loop.py [--rows 10000]

Autoencoder 784-1024-512-256-10, batch 256, no augmentation. The hand-written loop does what the method needs and no more: no
clipping, no history, no keyed draws. It is timed with torch's default Adam and with the fused one that reclust uses.
Whole fits of one and three epochs are timed in turns; their difference over two is an epoch without any setting up.
"""

from __future__ import annotations

import argparse

import torch
from _records import best_times, write_record
from torch import Tensor, nn

from reclust import (
    Autoencoder,
    Execution,
    IDECObjective,
    KMeans,
    Recluster,
    Schedule,
    Settings,
    train,
)

SIZES = (784, 1024, 512, 256, 10)


def mlp(sizes: tuple[int, ...]) -> nn.Sequential:
    layers = [m for i, o in zip(sizes, sizes[1:], strict=False) for m in (nn.Linear(i, o), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def by_hand(X: Tensor, epochs: int, *, fused: bool) -> None:
    encoder, decoder, centers = mlp(SIZES), mlp(SIZES[::-1]), nn.Parameter(torch.randn(10, 10))
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), centers], lr=1e-3, fused=fused)
    for _ in range(epochs):
        order = torch.randperm(len(X))
        for rows in order[: len(X) // 256 * 256].split(256):
            x = X[rows]
            z = encoder(x)
            q = 1 / (1 + (z[:, None] - centers).pow(2).sum(-1))
            q = q / q.sum(1, keepdim=True)
            p = (q**2 / q.sum(0)).detach()
            p = p / p.sum(1, keepdim=True)
            loss = nn.functional.mse_loss(decoder(z), x) - 0.1 * (p * torch.log(q + 1e-8)).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def ours(X: Tensor, epochs: int) -> None:
    settings = Settings(
        n_clusters=10, objective=IDECObjective(), representation=Autoencoder(SIZES[1:-1]), pretraining=None,
        clustering=Schedule(epochs), first_centers=Recluster(KMeans(n_init=1, max_iter=1), subsample=1000),
    )
    train(X, settings, seeds=[0], execution=Execution(device="cpu"))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=10_000)
    options.add_argument("--repeats", type=int, default=3)
    arguments = options.parse_args()
    X = torch.randn(arguments.rows, 784, generator=torch.Generator().manual_seed(0))
    sides = {
        "reclust": lambda epochs: ours(X, epochs),
        "by hand, default Adam": lambda epochs: by_hand(X, epochs, fused=False),
        "by hand, fused Adam": lambda epochs: by_hand(X, epochs, fused=True),
    }
    calls = [lambda side=side, epochs=epochs: side(epochs) for side in sides.values() for epochs in (1, 3)]
    times = best_times(*calls, repeats=arguments.repeats)
    epoch = {name: (times[2 * i + 1] - times[2 * i]) / 2 for i, name in enumerate(sides)}
    ratios = {name: epoch["reclust"] / seconds for name, seconds in epoch.items()}
    path = write_record("plain_loop", vars(arguments), {"seconds_per_epoch": epoch, "reclust_over": ratios})
    for name, seconds in epoch.items():
        print(f"{name:24} {seconds:.3f} s an epoch   reclust takes {ratios[name]:.2f} times as long")
    print(f"record: {path}")


if __name__ == "__main__":
    main()
