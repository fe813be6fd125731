"""Neighbor networks: the loss against a transcription, and training on pairs of neighbors."""

import numpy as np
import pytest
import torch
from support import blobs

from reclust import (
    DEC,
    DECObjective,
    Execution,
    Neighbors,
    Schedule,
    Settings,
    draws,
    metrics,
    train,
)
from reclust.representations import build_network

EXACT = {"device": "cpu", "precision": "float64"}


@pytest.mark.parametrize("kernel", ["cosine", "student"])
def test_the_loss_is_the_cross_entropy_of_finding_the_neighbor(kernel):
    representation = Neighbors((6,), embedding=4, kernel=kernel, temperature=0.3)
    net = build_network(representation, (5,), 3, torch.float64)
    a, b = torch.randn(2, 7, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = 0.0
    for i in range(7):
        if kernel == "cosine":
            similarities = torch.stack([a[i] @ other / 0.3 for other in b])
        else:
            similarities = torch.stack([-torch.log(1 + (a[i] - other).square().sum()) for other in b])
        expected -= float(similarities.log_softmax(0)[i]) / 7
    assert float(representation.loss(net, None, torch.stack([a, b]))) == pytest.approx(expected)


def test_cosine_embeddings_lie_on_the_unit_sphere():
    representation = Neighbors((6,), embedding=4)
    net = build_network(representation, (5,), 3, torch.float64)
    net.load_state_dict(representation.initial_weights(net, draws.key(0), torch.float64))
    z = representation.encode(net, torch.randn(8, 5, dtype=torch.float64))
    torch.testing.assert_close(z.norm(dim=1), torch.ones(8, dtype=torch.float64))


def settings(**changes):
    schedule = Schedule(epochs=3, batch_size=20, views=("clean", "neighbor"), neighbors=4, decay="cosine")
    return Settings(3, DECObjective(), Neighbors((8,), 4, "student"), pretraining=schedule, clustering=Schedule(2, batch_size=20, **changes))


def test_stacked_networks_equal_separate_ones():
    X = blobs(60, k=3)[0]
    together = train(X, settings(), seeds=[0, 1], execution=Execution(**EXACT))
    apart = [train(X, settings(), seeds=[seed], execution=Execution(**EXACT)) for seed in (0, 1)]
    for i, alone in enumerate(apart):
        for name, stack in alone.parameters.items():
            torch.testing.assert_close(together.parameters[name][i], stack[0], rtol=1e-8, atol=1e-10)
        assert (together.labels[i] == alone.labels[0]).all()


def test_pairs_are_nearest_neighbors_and_augmented():
    X, pairs = np.repeat(np.arange(20.0)[:, None], 3, 1), []

    def record(x, keys):
        pairs.append(x.clone())
        return x

    both = Schedule(epochs=5, batch_size=20, views=("augmented", "neighbor"), neighbors=2)
    only = Settings(3, DECObjective(), Neighbors((4,), 2), pretraining=both, clustering=None, augment=record)
    train(X, only, seeds=[0], execution=Execution(**EXACT))
    batches = [x for x in pairs if x.ndim == 4]
    assert len(batches) == 10
    for first, second in zip(batches[::2], batches[1::2], strict=True):
        distance = (first - second)[..., 0].abs()
        inner = (first[..., 0] > 0) & (first[..., 0] < 19)
        assert (distance[inner] == 1).all() and (distance <= 2).all() and (distance >= 1).all()


@pytest.mark.parametrize("kernel", ["cosine", "student"])
def test_deep_clustering_on_top_of_it(kernel):
    X, y = blobs(150, k=3)
    model = DEC(3, representation=Neighbors((32,), 8, kernel), random_state=0, device="cpu").fit(X)
    assert metrics.accuracy(y, model.labels_) > 0.9
    assert (model.predict(X) == model.labels_).all()
