"""Networks are built without the global random state, and blocks hold what belongs together."""

import numpy as np
import pytest
import torch
from support import blobs
from torch import nn
from torch.nn.utils import parametrizations

from reclust import BRB, Autoencoder, Target, value
from reclust.representations.base import build_network, encoder_blocks

X = blobs(80)[0].astype(np.float32)


class Drawing(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(12, 4)
        self.register_buffer("frequencies", torch.randn(3))
        self.order, self.some, self.more = torch.randperm(4), torch.rand_like(torch.ones(2)), torch.randint(0, 9, (3,))
        nn.init.sparse_(self.linear.weight, 0.5)

    def forward(self, x):
        return self.linear(x)


def test_networks_are_built_without_the_callers_random_state():
    @value
    class Building(Autoencoder):
        def build(self, sample_shape, n_clusters):
            return nn.ModuleDict({"encoder": Drawing(), "decoder": nn.Linear(4, 12)})

    before = torch.get_rng_state()
    first, second = (build_network(Building(), (12,), 4, torch.float32) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first.encoder.frequencies, second.encoder.frequencies) and first.encoder.frequencies.std() > 0


class MyNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return self.scale * (x - x.mean(-1, keepdim=True)) + self.shift


@pytest.mark.parametrize("last", [
    lambda: [parametrizations.weight_norm(nn.Linear(8, 4))], lambda: [parametrizations.spectral_norm(nn.Linear(8, 4))],
    lambda: [parametrizations.weight_norm(nn.Linear(8, 4, bias=False))], lambda: [nn.Linear(8, 4), MyNorm(4)],
], ids=["weight norm", "spectral norm", "without a bias", "own norm"])
def test_the_embedding_layer_is_left_alone_with_all_that_belongs_to_it(last):
    encoder = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), *last())
    assert list(encoder_blocks(encoder)) == ["layer1", "embedding"]
    centers = torch.zeros(3, 4)
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    target = Target.of(encoder, centers, embed=lambda: encoder(torch.from_numpy(X)))
    BRB(20)(1, target)
    assert all(torch.equal(before[name], tensor) for name, tensor in encoder.state_dict().items())  # nothing fired
    BRB(20)(20, target)
    changed = {name for name, tensor in encoder.state_dict().items() if not torch.equal(before[name], tensor)}
    assert {"0.weight", "0.bias"} <= changed and not {name for name in changed if "original" in name or name.endswith(("scale", "2.weight"))}
