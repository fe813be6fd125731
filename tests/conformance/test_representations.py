"""What every representation must do, whatever its layers. A new one is a line in the table."""

import pytest
import torch
from torch import nn

from reclust import Autoencoder, ConvAutoencoder, Embeddings, OwnAutoencoder, Representation, draws
from reclust.representations import Neighbors, OwnSimCLR, ResNet, SimCLR, build_network
from reclust.training.engine.replicas import Replicas

REPRESENTATIONS = {
    "autoencoder": Autoencoder((16, 8)),
    "autoencoder with BatchNorm": Autoencoder((16, 8), batch_norm=True),
    "autoencoder with its own embedding size": Autoencoder((16,), embedding=7),
    "embeddings": Embeddings((9,)),
    "embeddings, bent twice": Embeddings((9, 8), embedding=5),
    "convolutional": ConvAutoencoder((4, 5, 6)),
    "convolutional and residual": ConvAutoencoder((4,), residuals=2, embedding=5),
    "own modules": OwnAutoencoder(nn.Sequential(nn.Flatten(), nn.Linear(24, 9), nn.Tanh(), nn.Linear(9, 3)),
                                  nn.Sequential(nn.Linear(3, 9), nn.Tanh(), nn.Linear(9, 24))),
    "SimCLR": SimCLR(ResNet(width=2), hidden=(6,), embedding=4, projector=(8, 4)),
    "SimCLR, wider and apart": SimCLR(ResNet(50, width=2, stem="large"), hidden=(), embedding=4, projector=(4,), encoding="apart"),
    "neighbors": Neighbors((9,), embedding=5),
    "neighbors, Student kernel": Neighbors((9, 8), embedding=4, kernel="student"),
    "own contrastive encoder": OwnSimCLR(nn.Sequential(nn.Flatten(), nn.Linear(24, 9), nn.Tanh(), nn.Linear(9, 3))),
}
every = pytest.mark.parametrize("representation", REPRESENTATIONS.values(), ids=REPRESENTATIONS)
SHAPE, K = (1, 4, 6), 3


def made(representation):
    net = build_network(representation, SHAPE, K, torch.float64)
    weights = representation.initial_weights(net, draws.key(1), torch.float64)
    net.load_state_dict(weights, strict=False)
    return net, torch.randn(10, *SHAPE, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@every
def test_protocol(representation):
    assert isinstance(representation, Representation)


@every
def test_building_leaves_the_global_generator_alone(representation):
    before = torch.get_rng_state()
    build_network(representation, SHAPE, K, torch.float32)
    assert torch.equal(before, torch.get_rng_state())


@every
def test_encoding_does_not_depend_on_the_batch_in_eval_mode(representation):
    net, x = made(representation)
    z = representation.encode(net, x)
    assert z.ndim == 2 and len(z) == 10
    torch.testing.assert_close(torch.cat([representation.encode(net, row[None]) for row in x]), z)
    for view in representation.encode_views(net, torch.stack([x, x])):
        torch.testing.assert_close(view, z)


@every
def test_the_loss_is_a_scalar_and_reaches_every_weight(representation):
    net, x = made(representation)
    net.requires_grad_(True).train()
    views = torch.stack([x, x + 1])
    loss = representation.loss(net, views, representation.encode_views(net, views))
    assert loss.shape == ()
    loss.backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


@every
def test_blocks_name_existing_layers_once_and_end_with_the_embedding(representation):
    net, _ = made(representation)
    blocks = representation.blocks(net)
    names = [name for block in blocks.values() for name in block]
    assert "embedding" in blocks and len(names) == len(set(names))
    assert all(next(net.get_submodule(name).parameters(recurse=False), None) is not None for name in names)


@every
def test_replicas_have_the_weights_their_seed_has_alone(representation):
    given = {"device": torch.device("cpu"), "dtype": torch.float64}
    together = Replicas.create(representation, SHAPE, K, seeds=(3, 1), **given)
    alone = Replicas.create(representation, SHAPE, K, seeds=(1,), **given)
    assert all(torch.equal(together.parameters[name][1], alone.parameters[name][0]) for name in alone.parameters)
    assert any(not torch.equal(stack[0], stack[1]) for stack in together.parameters.values())
