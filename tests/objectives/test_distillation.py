"""Distillation: targets reach the loss row by row, alone and stacked, and are learned."""

import numpy as np
import pytest
import torch
from support import blobs

from reclust import Execution, Neighbors, Schedule, Settings, train
from reclust.objectives import DistillationObjective

EXACT = Execution(device="cpu", precision="float64")
SETTINGS = Settings(3, DistillationObjective(), Neighbors((16,), 4, "student"), pretraining=None,
                    clustering=Schedule(60, batch_size=20, lr=1e-2, views=("clean",)))


def test_the_loss_is_the_cross_entropy_of_a_softmax_of_negative_squared_distances():
    generator = torch.Generator().manual_seed(0)
    z, centers = torch.randn(1, 5, 2, generator=generator), torch.randn(3, 2, generator=generator)
    targets = torch.rand(5, 3, generator=generator).softmax(-1)
    expected = 0.0
    for i in range(5):
        logits = torch.stack([-(z[0, i] - center).square().sum() for center in centers])
        expected -= float((targets[i] * logits.log_softmax(0)).sum()) / 5
    assert float(DistillationObjective().loss({"centers": centers}, z, targets)) == pytest.approx(expected, rel=1e-5)


def test_given_labels_are_learned_stacked_as_alone():
    X, y = blobs(60, k=3)
    targets = np.eye(3)[y]
    together = train(X, SETTINGS, seeds=[0, 1], targets=targets, execution=EXACT)
    assert (together.labels == y).mean() > 0.99
    alone = train(X, SETTINGS, seeds=[1], targets=targets, execution=EXACT)
    for name, stack in alone.parameters.items():
        torch.testing.assert_close(together.parameters[name][1], stack[0], rtol=1e-7, atol=1e-9)
