"""State dicts of SimCLR networks with other names, made from the architecture."""

import pytest
import torch
from torch import nn

from reclust import ResNet, SimCLR
from reclust.representations import build_network, convert

SMALL = SimCLR(ResNet(width=4), hidden=(16, 8), embedding=6, projector=(10, 5))


class Block(nn.Module):
    """torchvision's basic block."""

    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False), nn.BatchNorm2d(n_out)
        self.conv2, self.bn2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False), nn.BatchNorm2d(n_out)
        self.downsample = None
        if stride > 1 or n_in != n_out:
            self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x):
        out = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (out + (x if self.downsample is None else self.downsample(x))).relu()


class Theirs(nn.Module):
    """ResNet-18 with a 3 x 3 stem, an MLP with BatchNorm and a projector, as other programs write them."""

    def __init__(self, width=4):
        super().__init__()
        self.projector = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 5))  # registered first
        self.backbone = nn.Module()
        self.backbone.conv1, self.backbone.bn1 = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        n_in = width
        for i in range(4):
            n_out = width * 2**i
            setattr(self.backbone, f"layer{i + 1}", nn.Sequential(Block(n_in, n_out, 2 if i else 1), Block(n_out, n_out, 1)))
            n_in = n_out
        self.mlp = nn.Sequential(nn.Linear(n_in, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 6))

    def forward(self, x):
        x = self.backbone.bn1(self.backbone.conv1(x)).relu()
        for i in range(4):
            x = getattr(self.backbone, f"layer{i + 1}")(x)
        return self.mlp(x.mean((-2, -1)))


def trained():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = Theirs()
        for _ in range(3):  # moves BatchNorm's statistics
            net(torch.randn(8, 3, 8, 8))
    return net.eval()


@pytest.mark.parametrize("prefix", ["", "module.", "encoder.", "model.encoder."])
def test_a_converted_network_computes_the_same(prefix):
    net, x = trained(), torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    ours = build_network(SMALL, (3, 8, 8), 3, torch.float32)
    ours.load_state_dict(convert({prefix + name: tensor for name, tensor in net.state_dict().items()}, SMALL, (3, 8, 8)))
    with torch.no_grad():
        z = ours.encoder(x)
        torch.testing.assert_close(z, net(x))
        torch.testing.assert_close(ours.projector(z), net.projector(z))


def test_the_published_architecture_is_the_default():
    wide = {name: torch.full_like(tensor, i) for i, (name, tensor) in enumerate(
        build_network(SimCLR(), (3, 32, 32), 10, torch.float32).state_dict().items())}
    converted = convert({f"net.{name}": tensor for name, tensor in wide.items()})
    assert converted.keys() == wide.keys() and all(torch.equal(converted[name], wide[name]) for name in wide)


@pytest.mark.parametrize("change", ["missing", "shape", "other"])
def test_other_networks_are_refused_in_one_sentence(change):
    state = trained().state_dict()
    if change == "missing":
        del state["mlp.6.weight"], state["mlp.6.bias"]
    elif change == "shape":
        state["mlp.6.weight"] = torch.zeros(7, 8)
    else:
        state = nn.Linear(3, 2).state_dict()
    with pytest.raises(ValueError, match=r"The state dict has other layers than SimCLR\(.*: \d+ with weights, 47 are needed"):
        convert(state, SMALL, (3, 8, 8))
