"""DEC and IDEC with BRB in one file of plain PyTorch, to read from top to bottom.

No stacking, no options, no reclust: what the library computes, in its simplest form. It clusters
scikit-learn's digits with and without BRB.
"""

import copy
from itertools import pairwise

import torch
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from torch import Tensor, nn


def network(sizes: list[int]) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    layers = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def soft_assignment(z: Tensor, centers: Tensor) -> Tensor:
    """(B, d), (k, d) -> (B, k): Student-t similarity to each center, rows sum to one."""
    similarity = 1 / (1 + torch.cdist(z, centers).pow(2))
    return similarity / similarity.sum(dim=1, keepdim=True)


def target_distribution(q: Tensor) -> Tensor:
    """(B, k) -> (B, k): q sharpened, large clusters weighted down; no gradient."""
    sharpened = q.detach() ** 2 / q.detach().sum(dim=0)
    return sharpened / sharpened.sum(dim=1, keepdim=True)


def cluster_loss(z: Tensor, centers: Tensor) -> Tensor:
    """Cross-entropy from the sharpened assignments to the assignments."""
    q = soft_assignment(z, centers)
    return -(target_distribution(q) * torch.log(q + 1e-8)).sum(dim=1).mean()


@torch.no_grad()
def find_centers(encoder: nn.Module, X: Tensor, k: int, seed: int) -> Tensor:
    """(k, d): k-means on the embeddings."""
    kmeans = KMeans(k, n_init=10, random_state=seed).fit(encoder(X).numpy())
    return torch.from_numpy(kmeans.cluster_centers_).to(X.dtype)


@torch.no_grad()
def soft_reset_(encoder: nn.Sequential, keep: float) -> None:
    """Move every layer but the last toward fresh weights: keep × old + (1 - keep) × fresh."""
    fresh = copy.deepcopy(encoder)
    for layer in fresh:
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()
    for old, new in zip(encoder[:-1].parameters(), fresh[:-1].parameters(), strict=True):
        old.mul_(keep).add_(new, alpha=1 - keep)


def reset_momentum_(optimizer: torch.optim.Optimizer, centers: Tensor) -> None:
    """Clear the optimizer's moments of the centers."""
    for name, moment in optimizer.state[centers].items():
        if name != "step":
            moment.zero_()


def fit(X: Tensor, k: int, *, epochs: int = 40, interval: int | None = 10, keep: float = 0.8,
        reconstruction: float = 1.0, weight: float = 0.1, seed: int = 0) -> Tensor:
    """Cluster the rows of X (n, features), which should be standardized: labels (n,).

    interval: epochs between resets, None for no resets.
    reconstruction, weight: of the two losses; 1 and 0.1 are IDEC, 0 and 1 are DEC.
    """
    torch.manual_seed(seed)
    sizes = [X.shape[1], 256, 128, 64, k]
    encoder, decoder = network(sizes), network(sizes[::-1])
    centers = nn.Parameter(find_centers(encoder, X, k, seed))
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), centers], lr=1e-3)
    for epoch in range(epochs):
        if interval is not None and epoch > 0 and epoch % interval == 0:  # BRB, in three steps
            soft_reset_(encoder, keep)
            centers.data.copy_(find_centers(encoder, X, k, seed + epoch))
            reset_momentum_(optimizer, centers)
        for rows in torch.randperm(len(X)).split(64):
            z = encoder(X[rows])
            loss = weight * cluster_loss(z, centers)
            if reconstruction:
                loss = loss + reconstruction * nn.functional.mse_loss(decoder(z), X[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return soft_assignment(encoder(X), centers).argmax(dim=1)


def main() -> None:
    from sklearn.metrics import adjusted_rand_score

    images, y = load_digits(return_X_y=True)
    X = torch.tensor((images - images.mean()) / images.std(), dtype=torch.float32)
    for name, interval in (("without BRB", None), ("with BRB", 10)):
        labels = [fit(X, 10, interval=interval, seed=seed) for seed in range(3)]
        print(f"{name:12} ARI", *(f"{adjusted_rand_score(y, run):.3f}" for run in labels))


if __name__ == "__main__":
    main()
