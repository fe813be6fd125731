"""Residual networks: shapes, sizes, first weights, and the same numbers as torchvision's where that can be imported."""

import math

import pytest
import torch

from reclust import draws
from reclust.representations import ResNet, weights
from reclust.representations.contrastive import SimCLR
from reclust.representations.resnet import Conv

# Of torchvision's models without their last layer; their 7 × 7 stem has 40 pixels more for each of 3 × 64 pairs of channels.
PARAMETERS = {18: 11_689_512 - 513_000, 34: 21_797_672 - 513_000, 50: 25_557_032 - 2_049_000}


@pytest.mark.parametrize("depth", PARAMETERS)
@pytest.mark.parametrize("stem", ["small", "large"])
def test_parameters_and_features(depth, stem):
    with torch.device("meta"):
        net = ResNet(depth, stem=stem).build((3, 32, 32))
    extra = 0 if stem == "large" else 3 * 64 * (49 - 9)
    assert sum(parameter.numel() for parameter in net.parameters()) == PARAMETERS[depth] - extra
    assert net.features == (2048 if depth == 50 else 512)


@pytest.mark.parametrize(("stem", "sides"), [("small", (32, 32, 16, 8, 4)), ("large", (8, 8, 4, 2, 1))])
@pytest.mark.parametrize("depth", [18, 50])
def test_every_block_halves_the_image_and_doubles_the_channels(depth, stem, sides):
    net, found = ResNet(depth, width=4, stem=stem).build((3, 32, 32)), {}
    for name, stage in net.named_children():
        stage.register_forward_hook(lambda module, given, made, name=name: found.update({name: tuple(made.shape[1:])}))
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, net.features)
    wide = 4 if depth == 50 else 1
    assert found == {"stem": (4, sides[0], sides[0]),
                     **{f"block{i + 1}": (wide * (4 << i), side, side) for i, side in enumerate(sides[1:])}}


def test_convolutions_may_begin_as_those_of_torch():
    net = ResNet(weights="uniform", width=32).build((3, 8, 8))
    drawn = weights.initial_weights(net, draws.key(0), dtype=torch.float64)
    convolutions = {name: own for name, own in drawn.items() if own.ndim == 4}
    assert len(convolutions) == 20
    for own in convolutions.values():
        bound = 1 / math.sqrt(own[0].numel())
        assert bound * 0.9 < own.abs().max() < bound and own.std() == pytest.approx(bound / math.sqrt(3), rel=0.1)


def test_convolutions_begin_as_he_and_others_say_of_outputs():
    layer = Conv(16, 32, 3, 2)
    assert weights.initial_distributions(layer) == {"weight": weights.Normal(math.sqrt(2 / (32 * 9)))}
    drawn = weights.initial_weights(layer, draws.key(0), dtype=torch.float64)["weight"]
    assert drawn.std().item() == pytest.approx(math.sqrt(2 / (32 * 9)), rel=0.05) and abs(drawn.mean()) < 0.005


def test_images_pass_through_channels_last():
    net, found = ResNet(width=4).build((3, 8, 8)), []
    net.block2.register_forward_hook(lambda module, given, made: found.append(made.is_contiguous(memory_format=torch.channels_last)))
    net(torch.rand(2, 3, 8, 8))
    assert found == [True]


def torchvision_names(name):
    """Our name of a tensor in theirs."""
    for ours, theirs in (("stem.0", "conv1"), ("stem.1", "bn1"), ("block", "layer"), ("norm", "bn"), ("shortcut", "downsample")):
        name = name.replace(ours, theirs)
    return name


@pytest.mark.parametrize("depth", [18, 34, 50])
def test_equals_torchvision(depth):
    models = pytest.importorskip("torchvision.models", reason="torchvision cannot be imported here", exc_type=ImportError)
    net, theirs = ResNet(depth, stem="large").build((3, 64, 64)), models.get_model(f"resnet{depth}")
    theirs.fc = torch.nn.Identity()
    theirs.load_state_dict({torchvision_names(name): tensor for name, tensor in net.state_dict().items()})
    x = torch.randn(4, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(net(x), theirs(x))
    torch.testing.assert_close(net.eval()(x), theirs.eval()(x))


@pytest.mark.parametrize(("changes", "message"), [
    ({"depth": 19}, "depth must be one of 18, 34, 50, got 19"), ({"stem": "huge"}, "stem must be"), ({"width": 0}, "width must be"),
])
def test_mistakes(changes, message):
    with pytest.raises(ValueError, match=message):
        ResNet(**changes)


def test_tables_are_refused():
    with pytest.raises(ValueError, match="ResNet needs images"):
        SimCLR().build((12,), 3)
