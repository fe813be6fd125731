"""Custom parts with wrong shapes are reported before training."""

from typing import ClassVar

import pytest
import torch
from support import blobs, small_settings
from torch import nn

from reclust import OwnAutoencoder, train, value
from reclust.objectives import GradientOnly

X = blobs(n=40)[0].astype("float32")


@value
class Wrong(GradientOnly):
    """An objective with one wrong shape."""

    part: str
    weight: float = 1.0
    representation_weight: float = 0.0
    trainable: ClassVar = frozenset({"centers"})
    per_cluster: ClassVar = frozenset({"centers"})

    def init(self, centers):
        return {"centers": centers[:-1] if self.part == "init" else centers}

    def loss(self, state, z):
        each = torch.cdist(z, state["centers"]).amin(-1)
        return each if self.part == "loss" else each.mean()

    def assign(self, state, z):
        distances = torch.cdist(z, state["centers"])
        return distances if self.part == "assign" else distances.argmin(-1)


@pytest.mark.parametrize(("part", "message"), [
    ("init", r"shape \(4, 4\), got \(3, 4\)"), ("loss", r"Wrong.loss must return a tensor of shape \(\).*\.mean\(\)"),
    ("assign", r"Wrong.assign must return a tensor of shape \(40,\).*argmin"),
])
def test_objectives_with_wrong_shapes_are_refused(part, message):
    with pytest.raises(ValueError, match=message):
        train(X, small_settings(objective=Wrong(part)), seeds=[0])


def test_draws_from_the_global_generator_are_refused():
    encoder = nn.Sequential(nn.Linear(12, 8), nn.AlphaDropout(), nn.Linear(8, 4))
    with pytest.raises(ValueError, match="The encoder draws from torch's global generator, as dropout does, so a seed"):
        train(X, small_settings(representation=OwnAutoencoder(encoder, nn.Linear(4, 12))), seeds=[0])
